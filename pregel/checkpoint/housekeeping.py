"""What removes or copies parts of a thread: prune, the deletion of runs, copies, as flows of named statements.

1. Each is one transaction a thread that takes the thread's row first, so it meets no append half way. It counts `gen`
   up, so that a run that loaded the thread before it loads it again.
2. A thread that a live run holds is left as it is: the run stands on rows that only it knows.
3. No value is decoded: rows go or stay by what the manifests that stay reach, so no class of the user's is needed.
4. What stays never loses what it reaches: its base, its value rows, the chain below a delta.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from pregel.checkpoint.chains import Address
from pregel.checkpoint.decode import Base, Decoder
from pregel.checkpoint.flows import LAST, Many, Row, Sql, delete_flow, thread_row
from pregel.checkpoint.keys import id_text, thread_digest, thread_text
from pregel.checkpoint.lease import is_dead
from pregel.checkpoint.logs import NAMED, NAMED_WHOLE
from pregel.checkpoint.manifest import Manifest, Read, pack
from pregel.checkpoint.records import CheckpointRow, ThreadRow
from pregel.checkpoint.serde.metadata import shown_of
from pregel.errors import InvalidInputError, ThreadBusy
from pregel.flow import Flow

STRATEGIES = ("keep_latest", "delete")
KEPT_TOMBSTONES = 30 * 86400.0  # seconds that an erased thread is remembered, without its name
PAGE = 500  # checkpoints that are looked at in one go


# -- prune -------------------------------------------------------------------------------------------------------------


def checked_prune(thread_ids: Sequence[str], strategy: str) -> list[str]:
    """The thread ids of a prune; an error for a text in their place, or a strategy that does not exist."""
    threads = [thread_text(thread) for thread in checked_ids("prune", "thread", thread_ids)]
    if strategy not in STRATEGIES:
        raise InvalidInputError(f"Unknown strategy {strategy!r}.", fix=f"Use one of {', '.join(STRATEGIES)}.")
    return threads


def checked_ids(verb: str, kind: str, ids: Sequence[str]) -> Sequence[str]:
    """The ids; TypeError for a text in their place, whose letters they would be."""
    if isinstance(ids, str):
        raise TypeError(f"{verb} takes a sequence of {kind} ids, got the text {ids!r}.")
    return ids


def prune_flow(thread: str, strategy: str, now: float, unless_after: float | None = None) -> Flow[bool | None]:
    """Remove a thread's history, or all of it: True. False when a live run holds the thread, and nothing was done.

    None when there is no such thread, or it was written after `unless_after` (unix seconds).
    """
    row = yield from _take(thread)
    if row is None or (unless_after is not None and row.updated_at > unless_after):
        return None
    if _is_held(row):
        return False
    if strategy == "delete":
        yield from delete_flow(thread, thread_digest(thread), now)
    else:
        yield from _keep_latest(row.tno)
    return True


def _keep_latest(tno: int) -> Flow[None]:
    rows = yield Sql("heads", (tno,))
    heads = {row[0]: CheckpointRow(*row[1:]) for row in rows}
    for text, head in heads.items():
        if _is_over(text, head, heads):
            yield Sql("prune_checkpoints", (tno, head.ns, LAST))
            yield Sql("prune_writes", (tno, head.ns, LAST))
            yield from _sweep_values(tno, head.ns, ())
            yield Sql("drop_namespace", (tno, head.ns))
            continue
        read = yield from _make_whole(tno, head)
        yield Many("set_parent", [(None, tno, head.ns, head.id)])
        yield Sql("prune_checkpoints", (tno, head.ns, head.id))
        yield Sql("prune_writes", (tno, head.ns, head.id))
        yield from _root_values(tno, head.ns, Decoder.addresses(read))
    yield from _empty_chunks(tno, None)
    yield Sql("bump_gen", (tno,))


def _is_over(text: str, head: CheckpointRow, heads: dict[str, CheckpointRow]) -> bool:
    """Whether a namespace belongs to one call of a subgraph, and its caller's checkpoint will be gone."""
    if ":" not in text or "" not in heads:
        return False
    stood_on = shown_of(head.metadata).get("parents") or {}
    newest = id_text(heads[""].id)
    return bool(stood_on.get("", newest) != newest)


def _make_whole(tno: int, row: CheckpointRow) -> Flow[Read]:
    """The manifest of a checkpoint, stored whole when it leaned on another."""
    if row.base is None:
        return Read(row.id, row.manifest, None)
    base: Base = row.base, (yield Sql("manifest", (tno, row.ns, row.base)))[0][0]
    read = Read(row.id, row.manifest, base)
    yield Sql("rewrite_checkpoint", (_whole(row, read), tno, row.ns, row.id))
    return read


def _whole(row: CheckpointRow, read: Read) -> bytes:
    alone = Manifest()
    alone.folds = read.manifest.folds
    tail = pack(read.updated) + pack(read.applied)
    _, packed = alone.advance(row.id, read.manifest.channels, read.manifest.seen, tail, pack(read.foreign))
    return packed


# -- values ------------------------------------------------------------------------------------------------------------


def _sweep_values(tno: int, ns: int, addresses: Iterable[Address]) -> Flow[None]:
    """Remove the value rows of a namespace that these addresses do not reach."""
    rows: list[Row] = yield Sql("value_keys", (tno, ns))
    kept = _reached(rows, addresses)
    for name in (NAMED, NAMED_WHOLE):
        kept.update((yield from _named(tno, ns, name)))
    gone = [(tno, ns, channel, at, kind) for channel, at, kind, _ in rows if (channel, at) not in kept]
    if gone:
        yield Many("delete_value", gone)


def _root_values(tno: int, ns: int, addresses: Iterable[Address]) -> Flow[None]:
    """The same where nothing else is left: what stands on a cache stands on it alone from now on."""
    rows: list[Row] = yield Sql("value_keys", (tno, ns))
    kinds: dict[Address, set[str]] = {}
    for channel, at, kind, _ in rows:
        kinds.setdefault((channel, at), set()).add(kind)
    below = {(channel, at): prev for channel, at, kind, prev in rows if kind == "delta"}
    roots: set[Address] = set()
    kept: set[tuple[int, int, str]] = {(*address, "delta") for address in (yield from _named(tno, ns, NAMED))}
    kept |= {(*address, "value") for address in (yield from _named(tno, ns, NAMED_WHOLE))}
    for address in addresses:
        while "delta" in kinds.get(address, ()) and "cache" not in kinds[address]:
            kept.add((*address, "delta"))
            address = address[0], below[address]
        if "cache" in kinds.get(address, ()):
            roots.add(address)
        kept.add((*address, "value"))
    kept |= {(*address, "cache") for address in roots}
    if gone := [(tno, ns, *row[:3]) for row in rows if tuple(row[:3]) not in kept]:
        yield Many("delete_value", gone)
    if roots:
        yield Many("promote_cache", [(tno, ns, *address) for address in roots])


def _named(tno: int, ns: int, name: str) -> Flow[list[Address]]:
    """The rows that writes name: these stay, whatever becomes of the checkpoint that they were made for."""
    return [(channel, int(blob)) for channel, blob in (yield Sql("named_places", (tno, ns, name)))]


def _reached(rows: Sequence[Row], addresses: Iterable[Address]) -> set[Address]:
    """The addresses, and below each delta its chain down to a whole value. Caches may be deleted: they end no chain."""
    whole = {(channel, at) for channel, at, kind, _ in rows if kind == "value"}
    below = {(channel, at): prev for channel, at, kind, prev in rows if kind == "delta" and prev is not None}
    reached: set[Address] = set()
    for address in addresses:
        while address not in reached:
            reached.add(address)
            if address in whole or address not in below:
                break
            address = address[0], below[address]
    return reached


# -- runs --------------------------------------------------------------------------------------------------------------


def threads_of_runs_flow(run_ids: Collection[str]) -> Flow[list[str]]:
    """The threads in which these runs made checkpoints."""
    found: dict[str, None] = {}
    for run_id in run_ids:
        rows = yield Sql("threads_of_run", (run_id,))
        found.update(dict.fromkeys(row[0] for row in rows))
    return list(found)


def delete_runs_flow(thread: str, run_ids: Collection[str]) -> Flow[bool]:
    """Remove what these runs made in a thread. False when a live run holds the thread, and nothing was done."""
    row = yield from _take(thread)
    if row is None:
        return True
    if _is_held(row):
        return False
    for ns, text in (yield Sql("namespaces", (row.tno,))):
        yield from _delete_in_namespace(thread, row.tno, ns, text, run_ids)
    for run_id in run_ids:
        yield from _empty_chunks(row.tno, run_id)
    yield Sql("bump_gen", (row.tno,))
    return True


def _delete_in_namespace(thread: str, tno: int, ns: int, text: str, run_ids: Collection[str]) -> Flow[None]:
    gone: dict[bytes, bytes | None] = {}  # id -> parent
    stays: dict[bytes, tuple[bytes | None, bytes | None]] = {}  # id -> parent, base
    kept: set[Address] = set()
    before = LAST
    while rows := (yield Sql("page_namespace", (thread, text, before, PAGE))):
        for row in (CheckpointRow(*row[3:]) for row in rows):
            if row.run_id in run_ids:
                gone[row.id] = row.parent
            else:
                stays[row.id] = row.parent, row.base
                kept.update(Decoder.addresses(Read(row.id, row.manifest, None)))
        before = rows[-1][4]
    if not gone:
        return
    for id, (_, base) in stays.items():
        if base in gone:
            found = yield Sql("checkpoint", (tno, text, id))
            kept.update(Decoder.addresses((yield from _make_whole(tno, CheckpointRow(*found[0])))))
    if moved := [(_survivor(parent, gone), tno, ns, id) for id, (parent, _) in stays.items() if parent in gone]:
        yield Many("set_parent", moved)
    yield Many("delete_checkpoint", [(tno, ns, id) for id in gone])
    yield Many("delete_writes_of", [(tno, ns, id) for id in gone])
    yield from _sweep_values(tno, ns, kept)


def _survivor(parent: bytes | None, gone: dict[bytes, bytes | None]) -> bytes | None:
    """The nearest ancestor that stays."""
    while parent in gone:
        parent = gone[parent]
    return parent


def _empty_chunks(tno: int, run_id: str | None) -> Flow[None]:
    """Forget the chunks of a run, or all that there are. Offsets go on from the last row, which stays, empty."""
    yield Sql("empty_chunks", (tno, run_id))
    yield Sql("drop_chunks", (tno,))


# -- copies, sweeps ----------------------------------------------------------------------------------------------------


def copy_flow(source: str, target: str, now: float) -> Flow[None]:
    """Copy a thread with its history under a name that is free. An unknown source changes nothing."""
    rows = yield Sql("lock_thread", (source,))
    if not rows:
        return
    if (yield Sql("lock_thread", (target,))):
        raise InvalidInputError(
            f"Thread {target!r} exists already; {source!r} was not copied.",
            fix="Copy to a new thread_id, or delete the old thread first.",
            thread=target,
        )
    tno = rows[0][0]
    yield Sql("copy_thread", (target, thread_digest(target), now, tno))
    copied = (yield Sql("lock_thread", (target,)))[0][0]
    for name in COPIES:
        yield Sql(name, (copied, tno))


COPIES = ("copy_namespaces", "copy_checkpoints", "copy_values", "copy_writes", "copy_chunks")
"""One statement for each table that has a tno; authority, timers and what is outside the journal stay behind."""


def stale_flow(before: float, now: float) -> Flow[list[str]]:
    """The threads that were last written before a time (unix seconds); forgets old tombstones on the way."""
    yield Sql("sweep_tombstones", (now - KEPT_TOMBSTONES,))
    rows = yield Sql("stale", (before,))
    return [row[0] for row in rows]


# -- shared ------------------------------------------------------------------------------------------------------------


def _take(thread: str) -> Flow[ThreadRow | None]:
    """The thread's row, held until the transaction ends."""
    if not (yield Sql("lock_thread", (thread,))):
        return None
    rows = yield Sql("thread", (thread,))
    return thread_row(rows[0])


def _is_held(row: ThreadRow) -> bool:
    return row.run is not None and not row.lapsed and not (row.owner is not None and is_dead(row.owner, row.run))


def check_left(threads: Sequence[str], done: str) -> None:
    """ThreadBusy when threads were left out because live runs hold them."""
    if threads:
        names = ", ".join(repr(thread) for thread in threads[:5]) + (" ..." if len(threads) > 5 else "")
        raise ThreadBusy(
            f"{names}: held by a live run, so nothing was {done} there; all other threads are done.",
            fix="Do it again when the run is over.",
            thread=threads[0],
        )
