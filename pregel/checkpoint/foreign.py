"""First-tier `put` and `put_writes` on a journal: records of an engine that has no authority.

1. They go in under the thread's row, with its epoch unchanged. A `put` on a thread that a live run holds is refused;
   writes are only added to what exists, which breaks no chain.
2. A `put` that names a checkpoint of an erased thread is refused while the tombstone stands.
3. What was put comes back word for word, whatever the versions look like; our own engine reads the counters in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pregel.checkpoint.base import WRITES_IDX_MAP as INDEX
from pregel.checkpoint.flows import Many, Sql, thread_row
from pregel.checkpoint.keys import Names, counter_of, id_bytes, thread_digest
from pregel.checkpoint.lease import is_dead
from pregel.checkpoint.manifest import INLINE, Manifest, Piece, Read, pack
from pregel.checkpoint.records import CheckpointRow, ThreadRow
from pregel.checkpoint.serde.base import SerializerProtocol
from pregel.checkpoint.serde.metadata import metadata_blob
from pregel.errors import ThreadBusy, ThreadDeleted, told
from pregel.flow import Flow


@dataclass(slots=True)
class Put:
    """What `put` was given."""

    thread: str
    ns: str
    parent: str | None
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    new_versions: Mapping[str, str | int | float]


@dataclass(slots=True)
class PutWrites:
    """What `put_writes` was given."""

    thread: str
    ns: str
    checkpoint: str
    writes: Sequence[tuple[str, Any]]
    task: str
    path: str

    def names(self) -> list[str]:
        """Every name that they use."""
        return ["", *(channel for channel, _ in self.writes)]


def names_in(checkpoint: Any) -> set[str]:
    """Every name that a checkpoint uses."""
    names = {*checkpoint["channel_versions"], *checkpoint["channel_values"], *checkpoint["versions_seen"]}
    for seen in checkpoint["versions_seen"].values():
        names.update(seen)
    return names


def put_flow(serde: SerializerProtocol, names: Names, put: Put, now: float) -> Flow[None]:
    """Store a checkpoint with a whole manifest. What cannot be stored is refused before anything is written."""
    encoded = {channel: serde.dumps_typed(value) for channel, value in put.checkpoint["channel_values"].items()}
    verbatim = {key: value for key, value in put.checkpoint.items() if key != "channel_values"}
    foreign = pack(pack(serde.dumps_typed(verbatim)))
    metadata = metadata_blob(put.metadata)
    thread = yield from _thread(put.thread, put.parent, now)
    if thread.run is not None and not thread.lapsed and not (thread.owner and is_dead(thread.owner, thread.run)):
        raise ThreadBusy(f"Thread {put.thread!r} is held by a run.", thread=put.thread)
    ns = yield from _namespace(thread, put.ns)
    known = yield from _pieces_of(thread.tno, put.ns, put.parent)
    at = thread.seq + 1
    channels, values = _channels(names, put, encoded, known, ns, at)
    seen = {
        names.ids[node]: pack((names.ids[node], {names.ids[c]: counter_of(v) for c, v in versions.items()}))
        for node, versions in put.checkpoint["versions_seen"].items()
    }
    updated = put.checkpoint.get("updated_channels")
    tail = pack(None if updated is None else [names.ids[c] for c in updated if c in names.ids]) + pack(())
    checkpoint = id_bytes(put.checkpoint["id"])
    _, manifest = Manifest().advance(checkpoint, channels, seen, tail, foreign)
    row = (
        ns,
        checkpoint,
        None if put.parent is None else id_bytes(put.parent),
        None,
        bytes(16),
        int(put.metadata.get("step") or 0),
        str(put.metadata.get("source") or ""),
        put.metadata.get("run_id"),
        now,
        metadata,
        manifest,
    )
    yield Sql("delete_checkpoint", (thread.tno, ns, checkpoint))
    yield Many("add_values", [(thread.tno, *value) for value in values])
    yield Many("add_checkpoints", [(thread.tno, *row)])
    yield Sql("touch", (checkpoint, now, thread.tno))


def put_writes_flow(serde: SerializerProtocol, names: Names, put: PutWrites, now: float) -> Flow[None]:
    """Store a task's writes."""
    encoded = [
        (channel, serde.dumps_typed(told(value) if isinstance(value, BaseException) else value))
        for channel, value in put.writes
    ]
    thread = yield from _thread(put.thread, put.checkpoint, now)
    ns = yield from _namespace(thread, put.ns)
    ids = names.ids
    where = (thread.tno, ns, id_bytes(put.checkpoint), id_bytes(put.task))
    yield Many(
        "add_writes",
        [
            (*where, INDEX.get(channel, position), ids[channel], kind, blob, put.path, ids[""], None)
            for position, (channel, (kind, blob)) in enumerate(encoded)
        ],
    )


def _thread(thread: str, checkpoint: str | None, now: float) -> Flow[ThreadRow]:
    """The thread's row, made when it does not exist and was not erased."""
    rows = yield Sql("thread", (thread,))
    if rows:
        return thread_row(rows[0])
    if checkpoint is not None and (yield Sql("tombstone", (thread_digest(thread),))):
        raise ThreadDeleted(
            f"Thread {thread!r} was deleted; what refers to its checkpoints is refused.",
            fix="Start the thread anew, without a checkpoint_id.",
            thread=thread,
        )
    yield Sql("make_thread", (thread, thread_digest(thread), now))
    rows = yield Sql("thread", (thread,))
    return thread_row(rows[0])


def _namespace(thread: ThreadRow, ns: str) -> Flow[int]:
    found = yield Sql("namespace", (thread.tno, ns))
    if found:
        number: int = found[0][0]
        return number
    yield Many("add_namespaces", [(thread.tno, thread.next_ns, ns)])
    return thread.next_ns


def _pieces_of(tno: int, ns: str, checkpoint: str | None) -> Flow[dict[int, Piece]]:
    """What the parent (without one: the newest checkpoint) holds, whose values need not be stored again."""
    if checkpoint is None:
        rows = yield Sql("newest", (tno, ns))
    else:
        rows = yield Sql("checkpoint", (tno, ns, id_bytes(checkpoint)))
    if not rows:
        return {}
    row = CheckpointRow(*rows[0])
    below = None
    if row.base is not None:
        manifest = yield Sql("manifest", (tno, row.ns, row.base))
        below = row.base, manifest[0][0]
    return Read(row.id, row.manifest, below).manifest.channels


def _channels(
    names: Names, put: Put, encoded: Mapping[str, tuple[str, bytes]], known: Mapping[int, Piece], ns: int, at: int
) -> tuple[dict[int, Piece], list[tuple[Any, ...]]]:
    """The manifest's channels, and the rows for long values."""
    pieces: dict[int, Piece] = {}
    rows: list[tuple[Any, ...]] = []
    versions = put.checkpoint["channel_versions"]
    for channel in {**versions, **encoded}:
        key, counter = names.ids[channel], counter_of(versions.get(channel, 0))
        if channel not in put.new_versions and key in known and known[key][1] == counter:
            pieces[key] = known[key]
        elif channel not in encoded:
            pieces[key] = (key, counter, at, None)
        else:
            kind, blob = encoded[channel]
            if len(blob) > INLINE:
                pieces[key] = (key, counter, at)
                rows.append((ns, key, at, "value", kind, blob, None, None, None, None))
            else:
                pieces[key] = (key, counter, at, blob, kind)
    return pieces, rows
