"""Every verb of a journal, written once as flows of named statements; a saver performs the statements.

1. `Sql` names a statement and gives its arguments; the reply is all its rows, in the field order of the row classes.
   No flow leaves a cursor open.
2. A reading flow runs in one snapshot, a writing flow in one transaction with the write lock held from its start. The
   saver's `read` and `write` see to that.
3. `Atomic` is a whole append: the guarded head, and what follows when it hit a row. It is one request, so that a
   saver can send it later, in one round trip, or together with those of other runs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import groupby
from operator import itemgetter
from typing import Any

from pregel.checkpoint.chains import CacheUnreadableError, Chains, Name, Wanted
from pregel.checkpoint.decode import Decoder, UnknownNameError, filters
from pregel.checkpoint.keys import Names, id_bytes, id_text, thread_digest
from pregel.checkpoint.logs import NAMING
from pregel.checkpoint.manifest import Read
from pregel.checkpoint.recent import RecentLists
from pregel.checkpoint.records import (
    Append,
    CheckpointRow,
    Hold,
    ItemRow,
    Load,
    Opened,
    Owner,
    Page,
    Receipt,
    Saved,
    ThreadRow,
    WriteRow,
)
from pregel.checkpoint.serde.metadata import metadata_of
from pregel.flow import Flow

Row = tuple[Any, ...]
_checkpoint_row = partial(tuple.__new__, CheckpointRow)  # a third of the cost of calling the class
_write_row = partial(tuple.__new__, WriteRow)
LAST = b"\xff" * 17  # above every id
PAGE = 64  # checkpoints that are fetched at a time where a filter decides which are kept


@dataclass(slots=True)
class Sql:
    """One statement; the reply is its rows."""

    name: str
    args: Row = ()


@dataclass(slots=True)
class Many:
    """One statement for many rows; no reply."""

    name: str
    rows: Sequence[Row]


@dataclass(slots=True)
class Atomic:
    """A guarded statement and, if it hit the thread's row, the rest with its tno before each of their rows.

    The reply is the row after that, without namespaces, owner and last_id; no row when the guard missed.
    """

    thread: str
    head: Sql
    rest: list[Many]


@dataclass(slots=True)
class Clock:
    """The store's time: unix seconds, and seconds since the boot that `boot` names."""

    now: float
    boot: str
    since_boot: float


def append_flow(append: Append, clock: Clock) -> Flow[Receipt]:
    """Store a run's records under the guard of its thread's row.

    A refused append that had landed before (its answer got lost) is told by its seq and mark.
    """
    rest = [
        Many(name, rows)
        for name, rows in (
            ("add_namespaces", append.namespaces),
            ("add_checkpoints", append.checkpoints),
            ("add_values", append.values),
            ("add_writes", append.writes),
            ("add_chunks", append.chunks),
            ("add_marks", append.marks),
        )
        if rows
    ]
    if append.claim is not None and append.claim.rouses:
        rest.append(Many("add_roused", [(1,)]))
    if append.claim is not None and append.claim.taken:
        rest.append(Many("add_taken", [(id,) for id in append.claim.taken]))
    if append.drops:
        rest.append(Many("add_dropped", [(1,)]))
    if append.release is not None and append.release.waits:
        rest.append(Many("add_waits", append.release.waits))
    if append.release is not None and append.release.withdraws:
        rest.append(Many("add_kept", [(kept(append.release.items),)]))
    if append.release is not None and append.release.items:
        rest.append(Many("add_items", append.release.items))
    rows = yield Atomic(append.thread, _head(append, clock), rest)
    if rows:
        return Receipt(True, thread_row(rows[0]))
    landed = yield Sql("standing", (append.thread, append.seq + append.k, append.mark))
    rows = yield Sql("thread", (append.thread,))
    return Receipt(bool(landed), thread_row(rows[0]) if rows else ThreadRow(append.thread))


def kept(items: Iterable[ItemRow]) -> str:
    """The ids of items as a JSON list."""
    return json.dumps([item.id for item in items])


def _head(append: Append, clock: Clock) -> Sql:
    claim, release = append.claim, append.release
    moved = (append.k, append.mark, append.last_id, clock.now, clock.since_boot, append.tno)
    if claim is None:
        guard = (append.epoch, append.run, append.seq)
        if release is None:
            return Sql("append", (*moved, *guard))
        return Sql("release", (*moved, *guard, release.status, release.reason, release.graph))
    graph = (release and release.graph) or claim.graph
    if release is None:
        holder = (append.run, owner_text(claim.owner), clock.boot)
        status, reason = "running", ""
    else:
        holder = (None, None, None)  # type: ignore[assignment]
        status, reason = release.status, release.reason
    if append.tno:
        guard = (claim.epoch, claim.gen, append.seq)  # type: ignore[assignment]
        return Sql(
            "claim",
            (
                *moved,
                *guard,
                *holder,
                claim.ttl,
                claim.dead,
                status,
                reason,
                graph,
                clock.boot,
                claim.pin,
                claim.heard,
            ),
        )
    run, owner, boot = holder
    return Sql(
        "create",
        (
            append.thread,
            thread_digest(append.thread),
            clock.now,
            run,
            append.k,
            append.mark,
            append.last_id,
            owner,
            boot,
            claim.ttl,
            clock.since_boot,
            status,
            reason,
            graph,
        ),
    )


def load_flow(decoder: Decoder, thread: str, loads: Sequence[Load]) -> Flow[Opened]:
    """What is stored for these loads."""
    rows = yield Sql("thread", (thread,))
    if not rows:
        return Opened(ThreadRow(thread), [None] * len(loads), {})
    row = thread_row(rows[0])
    opened = Opened(row, [], {})
    for load in loads:
        opened.saved.append((yield from _load_one(decoder, row, load, opened.heads)))
    return opened


def _load_one(decoder: Decoder, thread: ThreadRow, load: Load, heads: dict[str, str]) -> Flow[Saved | None]:
    where = thread.tno, load.ns
    newest = load.checkpoint is None and load.before is None
    if newest:
        rows = yield Sql("newest", where)
    elif load.checkpoint is not None:
        rows = yield Sql("checkpoint", (*where, id_bytes(load.checkpoint)))
    else:
        rows = yield Sql("newest_before", (*where, id_bytes(load.before or "")))
    head = [(rows[0][1],)] if newest and rows else [] if newest else (yield Sql("newest_id", where))
    if head:
        heads[load.ns] = id_text(head[0][0])
    if not rows:
        for (number,) in (yield Sql("namespace", where)):
            thread.namespaces[load.ns] = number
        return None
    thread.namespaces[load.ns] = rows[0][0]
    return (yield from _one_flow(decoder, thread.tno, load.ns, _checkpoint_row(rows[0])))


def look_flow(decoder: Decoder, thread: str, ns: str, checkpoint: str | None) -> Flow[Saved | None]:
    """One checkpoint, the newest of its namespace without an id, and nothing else of the thread."""
    wanted = None if checkpoint is None else id_bytes(checkpoint)
    below = LAST if wanted is None else wanted + b"\0"  # the first id after it that there could be
    rows = yield Sql("look", (thread, ns, below))
    if not rows or (wanted is not None and rows[0][2] != wanted):
        return None
    found = rows[0]
    row = _checkpoint_row(found[1:12])
    base = None if row.base is None or found[12] is None else (row.base, found[12])
    return (yield from _one_flow(decoder, found[0], ns, row, base, has_writes=found[13]))


def _one_flow(
    decoder: Decoder,
    tno: int,
    ns: str,
    row: CheckpointRow,
    base: tuple[bytes, bytes] | None = None,
    *,
    has_writes: bool = True,
) -> Flow[Saved]:
    """A checkpoint with its writes, and with what is not in its row where there is such a thing."""
    writes: Sequence[WriteRow] = ()
    if has_writes:
        writes = [_write_row(found) for found in (yield Sql("writes", (tno, row.ns, row.id, row.id)))]
    if row.base is None or base is not None:
        saved = decoder.short(ns, row, base, writes)
        if saved is not None:
            return saved
    return (yield from saved_flow(decoder, tno, ns, [row], writes=writes, recent=decoder.recent))[0]


def saved_flow(
    decoder: Decoder,
    tno: int,
    ns_text: str,
    rows: Sequence[CheckpointRow],
    *,
    writes: Sequence[WriteRow] | None = None,
    caches: bool = True,
    recent: RecentLists | None = None,
) -> Flow[list[Saved]]:
    """Checkpoints of one namespace, with bases, values and writes; the values without the help of `caches` if so.

    With `recent` it is one checkpoint, of which some lists may have been read before; `writes` are known already.
    """
    ns = rows[0].ns
    bases: dict[bytes, bytes] = {}
    for base in {row.base for row in rows if row.base is not None}:
        for (blob,) in (yield Sql("manifest", (tno, ns, base))):
            bases[base] = blob
    reads = [
        Read(row.id, row.manifest, None)
        if row.base is None
        else decoder.manifest(row, (row.base, bases[row.base]) if row.base in bases else None)
        for row in rows
    ]
    chains = Chains(caches=caches)
    wanted = {one for read in reads if not read.is_short for one in decoder.wanted(read)}
    under: dict[bytes, list[WriteRow]] = {row.id: [] for row in rows}
    if writes is None:
        writes = [_write_row(found) for found in (yield Sql("writes", (tno, ns, min(under), max(under))))]
    for write in writes:
        if write.checkpoint in under:
            under[write.checkpoint].append(write)
    named = _names_in(write for found in under.values() for write in found)
    if recent is not None and wanted:
        yield from _recall(recent, tno, rows[0], wanted, chains)
    while True:
        while wanted and (spans := chains.missing(wanted)):
            chains.add((yield Sql("values", (tno, ns, spans, None))))
        if named and (spans := chains.named(named)):
            chains.add((yield Sql("values", (tno, ns, spans, None))))
        try:
            saved = [
                decoder.saved(ns_text, row, read, chains, under[row.id])
                for row, read in zip(reversed(rows), reversed(reads), strict=True)  # newer ones stand on older ones
            ]
            if recent is not None and wanted and reads[0].foreign is None:
                recent.keep(tno, ns, rows[0].id, reads[0].logs, chains.given)
            return saved[::-1]
        except CacheUnreadableError as error:
            chains.drop(error.address)
        except UnknownNameError as error:
            found = yield Sql("names", (decoder.names.last, *error.args))
            if not found:
                raise
            decoder.names.learn(found)


def _names_in(writes: Iterable[WriteRow]) -> set[Name]:
    """The rows that writes name instead of saying their value."""
    return {(write.type, write.channel, int(write.blob)) for write in writes if write.type in NAMING}


def _recall(recent: RecentLists, tno: int, row: CheckpointRow, wanted: Iterable[Wanted], chains: Chains) -> Flow[None]:
    """Let lists that were read before stand in for their rows, and ask for what came since."""
    kept = recent.find(tno, row.ns)
    found = {} if kept is None else kept.standing_in(wanted)
    if kept is None or not found:
        return
    is_there = kept.checkpoint == row.id or kept.checkpoint == row.parent
    spans = [
        (channel, lines.at, at, 1)
        for (channel, at, base), lines in found.items()
        if base is not None and (lines.at < at or not is_there)
    ]
    if spans:
        since = yield Sql("values", (tno, row.ns, spans, None if is_there else kept.checkpoint))
        if not since:  # its thread is another one now, or was pruned
            recent.drop(tno, row.ns)
            return
        chains.add(since)
    elif not is_there:
        return
    for (channel, _, _), lines in found.items():
        chains.stand_in(channel, lines)


def page_flow(decoder: Decoder, thread: str | None, page: Page) -> Flow[list[tuple[str, Saved]]]:
    """(thread, checkpoint) newest first; of all threads when `thread` is None."""
    found: list[tuple[str, Saved]] = []
    before = None if page.before is None else id_bytes(page.before)
    limit = page.limit
    while limit is None or len(found) < limit:
        # ids are unique in a thread only, so a page over all threads cannot be continued by id: it is read at once
        size = limit if not page.filter else None if thread is None else PAGE
        rows = yield _page(thread, page.ns, before, size)
        kept = [row for row in rows if not page.filter or filters(_shown_metadata(row), page.filter)]
        found += yield from _decode_page(decoder, kept if limit is None else kept[: limit - len(found)])
        if size is None or len(rows) < size:
            break
        before = rows[-1][4]
    return found


def _page(thread: str | None, ns: str | None, before: bytes | None, size: int | None) -> Sql:
    older, limit = LAST if before is None else before, -1 if size is None else size
    if thread is None:
        return Sql("page_all", (ns, older, limit))
    if ns is None:
        return Sql("page_thread", (thread, older, limit))
    return Sql("page_namespace", (thread, ns, older, limit))


def _shown_metadata(row: Row) -> dict[str, Any]:
    checkpoint = _checkpoint_row(row[3:])
    return {"source": checkpoint.source, "step": checkpoint.step, **metadata_of(checkpoint.metadata)}


def _decode_page(decoder: Decoder, rows: Sequence[Row]) -> Flow[list[tuple[str, Saved]]]:
    """Decode (thread, tno, namespace, *CheckpointRow) rows, each namespace in one go, in the order given."""
    if len({(row[1], row[3]) for row in rows}) == 1:
        thread, tno, ns = rows[0][:3]
        decoded = yield from saved_flow(decoder, tno, ns, [_checkpoint_row(row[3:]) for row in rows])
        return [(thread, saved) for saved in decoded]
    order = {(row[1], row[3], row[4]): i for i, row in enumerate(rows)}
    found: list[tuple[str, Saved]] = [None] * len(rows)  # type: ignore[list-item]
    by_namespace = itemgetter(1, 3)
    for _, group in groupby(sorted(rows, key=by_namespace), by_namespace):
        members = list(group)
        thread, tno, ns = members[0][:3]
        checkpoints = [_checkpoint_row(row[3:]) for row in members]
        decoded = yield from saved_flow(decoder, tno, ns, checkpoints)
        for checkpoint, saved in zip(checkpoints, decoded, strict=True):
            found[order[tno, checkpoint.ns, checkpoint.id]] = thread, saved
    return found


def threads_flow(status: str | None, limit: int | None) -> Flow[list[ThreadRow]]:
    """Threads, the last written first."""
    rows = yield Sql("threads", (status, limit))
    return [thread_row(row) for row in rows]


def pending_flow(after: tuple[float, int], limit: int) -> Flow[list[ThreadRow]]:
    """Threads that were started and that nobody has run, the longest untouched first; those behind one of them."""
    return [thread_row(row) for row in (yield Sql("pending", (*after, limit)))]


def intern_flow(names: Names, texts: Sequence[str]) -> Flow[None]:
    """Give each of these names a number."""
    yield Many("intern", [(text,) for text in texts])
    for text in texts:
        names.learn((yield Sql("name", (text,))))


def renew_flow(holds: Sequence[Hold], keep: bool) -> Flow[dict[bytes, str]]:
    """Renew leases, or let them lapse; what is asked of the runs that hold their threads still."""
    kept: dict[bytes, str] = {}
    for hold in holds:
        yield Sql("renew", (*hold, 1.0 if keep else -1.0))
        for (asked,) in (yield Sql("held", hold)):
            kept[hold.run] = asked
    return kept


def ask_flow(hold: Hold, asked: str) -> Flow[bool]:
    """Leave word for the run that holds a thread, or a ticket (`Claim.heard`) for the next; whether it still does."""
    yield Sql("ask", (asked, *hold))
    return bool((yield Sql("held", hold)))


def delete_flow(thread: str, digest: bytes, now: float) -> Flow[None]:
    """Remove everything about a thread and leave a tombstone without its name."""
    rows = yield Sql("lock_thread", (thread,))
    if rows:
        tno, epoch = rows[0]
        yield Sql("add_tombstone", (digest, epoch, now))
        for name in DELETES:
            yield Sql(name, (tno,))


DELETES = (
    "delete_waits",
    "delete_events",
    "delete_items",
    "delete_chunks",
    "delete_writes",
    "delete_values",
    "delete_checkpoints",
    "delete_namespaces",
    "delete_thread",
)
"""One statement for each table that has a tno."""


def thread_row(row: Row) -> ThreadRow:
    """A row of the statements `thread` and `threads`."""
    tno, thread, epoch, run, seq, gen, last_id, status, reason, owner, expires, lapsed, asked, inbox, *rest = row
    graph, updated_at, next_ns, pin, crashes = rest
    return ThreadRow(
        thread,
        tno,
        epoch,
        run,
        seq,
        gen,
        "" if last_id is None else id_text(last_id),
        status,
        reason,
        None if owner is None else owner_of(owner),
        expires,
        bool(lapsed),
        asked,
        inbox,
        graph,
        updated_at,
        {},
        next_ns,
        "" if pin is None else id_text(pin),
        crashes,
    )


@lru_cache(64)
def owner_text(owner: Owner) -> str:
    """An owner as one text."""
    return "|".join((owner.boot, str(owner.pidns), str(owner.pid), str(owner.ticks), owner.host))


@lru_cache(64)
def owner_of(text: str) -> Owner:
    """The owner that `owner_text` was given."""
    boot, pidns, pid, ticks, host = text.split("|", 4)
    return Owner(boot, int(pidns), int(pid), int(ticks), host)
