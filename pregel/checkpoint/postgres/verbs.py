"""A saver's verbs as flows over the wire, written once for both kinds of savers.

1. An append is one statement, hence one transaction and one round trip; one above `CHUNK` bytes is a transaction of
   several. Sent again after an unclear answer, its guard lets it land once, and its mark tells whether it had.
2. A reading flow sees one snapshot: a transaction, or one statement. A thread's newest checkpoint comes with one
   statement, its long values with a second one; what was pruned in between is missing, and then the flow is run again
   in a transaction.
3. A writing flow holds the thread's row from the moment it looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from pregel.checkpoint.flows import Atomic, Clock, Many, Row, Sql, append_flow, thread_row
from pregel.checkpoint.keys import Names
from pregel.checkpoint.postgres import groups
from pregel.checkpoint.postgres.wire import SNAPSHOT, TRANSACTION, UNCLEAR, Ask, Known, said, settled, transaction
from pregel.checkpoint.postgres.words import CHUNK, locked
from pregel.checkpoint.records import Append, Hold, Load, Opened, Receipt, ValueRow, WriteRow
from pregel.errors import JournalDamaged, StoreError
from pregel.flow import Flow

T = TypeVar("T")
LIGHT = 64 << 10  # bytes: an append above it goes alone, so that those of other runs need not wait for it
LARGEST = (1 << 30) - (1 << 20)  # bytes: a message to the server ends below 1 GB
SERVERS_CLOCK = Clock(0.0, "", 0.0)  # the statements take the time from the server


def appending(append: Append, names: Names, chunk: int = CHUNK) -> Flow[Receipt]:
    """Store a run's records; every unclear answer is settled."""
    if weight(append) <= chunk:
        return settled(lambda: said(append_flow(append, SERVERS_CLOCK), alone=True))
    check_fields(append, names)
    return settled(lambda: transaction(TRANSACTION, said(_in_pieces(append_flow(append, SERVERS_CLOCK)))))


def appending_all(appends: Sequence[Append]) -> Flow[dict[int, Receipt]]:
    """Store records of several runs, in a statement for each kind of guard; what landed, by its place.

    What did not is to be sent again, alone: it is refused there, or waits, or fails, without the others.
    """
    kinds: dict[str, list[tuple[int, Atomic]]] = {}
    for place, append in enumerate(appends):
        request: Atomic = next(append_flow(append, SERVERS_CLOCK))
        kinds.setdefault(request.head.name, []).append((place, request))
    landed: dict[int, Receipt] = {}
    for members in kinds.values():
        if len(members) == 1:  # as good alone
            continue
        members.sort(key=lambda member: member[1].thread)  # in one order: of two that make threads none waits for ever
        text, args = groups.appends([request for _, request in members])
        for row in (yield Ask(text, args, True)):
            landed[members[row[-1] - 1][0]] = Receipt(True, thread_row(row[:-1]))
    return landed


def weight(append: Append) -> int:
    """The bytes of an append that may be many."""
    size = 0
    for value in append.values:
        size += len(value.blob)
    for write in append.writes:
        size += len(write.blob)
    for checkpoint in append.checkpoints:
        size += len(checkpoint.manifest)
    for chunk in append.chunks:
        size += len(chunk.blob)
    return size


def check_fields(append: Append, names: Names, largest: int = LARGEST) -> None:
    """StoreError for a value that no field holds."""
    rows: list[ValueRow | WriteRow] = [*append.values, *append.writes]
    for row in rows:
        if len(row.blob) > largest:
            channel = names.texts.get(row.channel)
            raise StoreError(
                f"The value of {channel!r} takes {len(row.blob):,} bytes, PostgreSQL keeps at most {largest:,} in a"
                " field; nothing was written.",
                fix="Keep it elsewhere, and a reference to it in the state.",
                thread=append.thread,
                channel=channel,
            )


def _in_pieces(flow: Flow[Receipt]) -> Flow[Receipt]:
    """An append inside a transaction: its guard, and if that hit, its rows, which are sent a chunk at a time."""
    try:
        request = next(flow)
        while True:
            if request.__class__ is Atomic:
                rows = yield Atomic(request.thread, request.head, [])
                for many in request.rest if rows else ():
                    yield Many(many.name, [(rows[0][0], *row) for row in many.rows])
            else:
                rows = yield request
            request = flow.send(rows)
    except StopIteration as stop:
        receipt: Receipt = stop.value
        return receipt


def reading(flow: Callable[[], Flow[T]]) -> Flow[T]:
    """Run a flow in one snapshot; from its start again when the connection was cut."""
    return settled(lambda: transaction(SNAPSHOT, said(flow())))


def reading_once(flow: Flow[T]) -> Flow[T]:
    """The same for a flow that cannot be run again."""
    return transaction(SNAPSHOT, said(flow))


def writing(flow: Flow[T]) -> Flow[T]:
    """Run a flow in one transaction."""
    return transaction(TRANSACTION, said(flow, locked))


def asking(request: Sql | Many) -> Flow[list[Row]]:
    """The rows of one statement."""
    return settled(lambda: said(_asked(request), alone=True))


def _asked(request: Sql | Many) -> Flow[list[Row]]:
    rows: list[Row] = yield request
    return rows


def interning(names: Names, texts: Sequence[str]) -> Flow[None]:
    """Learn the numbers of names, and number those that have none."""
    names.learn((yield from asking(Sql("numbers", (texts,)))))
    missing = [text for text in texts if text not in names.ids]
    if missing:
        yield from asking(Many("intern", [(text,) for text in missing]))
        names.learn((yield from asking(Sql("numbers", (missing,)))))


def renewing(holds: Sequence[Hold], keep: bool) -> Flow[dict[bytes, str]]:
    """Renew leases, or let them lapse; what is asked of the runs that hold their threads still."""
    rows = yield from asking(Sql("renew", (holds, 1.0 if keep else -1.0)))
    return dict(rows)


def requesting(hold: Hold, asked: str) -> Flow[bool]:
    """Leave word for the run that holds a thread; whether it still does."""
    return bool((yield from asking(Sql("ask", (asked, *hold)))))


# -- loading -----------------------------------------------------------------------------------------------------------


def loading(
    flow: Callable[[], Flow[Opened]], thread: str, loads: Sequence[Load], opened: Row | None = None
) -> Flow[Opened]:
    """Run a load flow in as few round trips as it takes; `opened`: what `openings` has told already."""
    if is_opening(loads):
        try:
            known = yield from _opening(thread, loads[0].ns, opened)
            return (yield from said(flow(), alone=True, known=known))
        except (JournalDamaged, *UNCLEAR):
            pass  # a snapshot tells whether it is damaged, or was pruned meanwhile
    return (yield from reading(flow))


def is_opening(loads: Sequence[Load]) -> bool:
    """Whether all that is asked for is the newest checkpoint of a namespace."""
    return len(loads) == 1 and loads[0].checkpoint is None and loads[0].before is None


def openings(places: Sequence[tuple[str, str]]) -> Flow[list[Row]]:
    """What one statement tells of several (thread, namespace); an empty row of a thread that does not exist."""
    found: list[Row] = [()] * len(places)
    text, args = groups.openings(places)
    for row in (yield Ask(text, args, True)):
        found[row[0] - 1] = row[1:]
    return found


def looking(flow: Callable[[], Flow[T]]) -> Flow[T]:
    """Run a flow that looks at one checkpoint in as few round trips as it takes."""
    try:
        return (yield from settled(lambda: said(flow(), alone=True)))
    except JournalDamaged:
        pass  # a snapshot tells whether it is, or was pruned meanwhile
    return (yield from reading(flow))


def _opening(thread: str, ns: str, row: Row | None) -> Flow[Known]:
    """What one statement tells of a thread and the newest checkpoint of a namespace; its row, if it has been asked."""
    if row is None:
        rows = yield from asking(Sql("opening", (thread, ns)))
        row = rows[0] if rows else ()
    if not row:
        return {"thread": ((thread,), [])}
    tno, number, checkpoint, base, writes = row[0], row[19], row[20:31], row[31], row[32]
    known: dict[str, tuple[Row, list[Row]]] = {"thread": ((thread,), [row[:19]])}
    if number is None or checkpoint[0] is None:
        known["newest"] = (tno, ns), []
        known["namespace"] = (tno, ns), [] if number is None else [(number,)]
        return known
    known["newest"] = (tno, ns), [checkpoint]
    if base is not None:
        known["manifest"] = (tno, number, checkpoint[3]), [(base,)]
    if not writes:
        known["writes"] = (tno, number, checkpoint[1], checkpoint[1]), []
    return known
