"""The rows of an append as sqlite3 binds them at once: bytes as bytearrays, and 0 where a statement says nullif(?, 0).

For an argument of any type but int, float, str and bytearray, Python 3.11 looks for an adapter, and makes and drops an
AttributeError on the way. A superstep has fifteen such arguments, which cost as much as all of its work in SQLite.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pregel.checkpoint.records import Append, CheckpointRow, WriteRow

Args = tuple[Any, ...]
SHORT = 4096  # bytes; a copy of a longer one costs more than it saves


def checkpoint_args(tno: int, row: CheckpointRow) -> Args:
    """The arguments of `add_checkpoints` before they are brought into their order."""
    ns, id, parent, base, lineage, step, source, run_id, made, metadata, manifest = row
    return (
        tno,
        ns,
        bytearray(id),
        0 if parent is None else bytearray(parent),
        0 if base is None else bytearray(base),
        bytearray(lineage),
        step,
        source,
        0 if run_id is None else run_id,
        made,
        bytearray(metadata),
        _blob(manifest),
    )


def write_args(tno: int, row: WriteRow) -> Args:
    """The arguments of `add_writes`."""
    ns, checkpoint, task, idx, channel, type, blob, path, name, child = row
    held = 0 if child is None else bytearray(child)
    return tno, ns, bytearray(checkpoint), bytearray(task), idx, channel, type, _blob(blob), path, name, held


BOUND: dict[str, Callable[[int, Any], Args]] = {"add_checkpoints": checkpoint_args, "add_writes": write_args}
"""By the name of the statement."""


def guard_args(append: Append, now: float, since_boot: float) -> Args:
    """The arguments of the guard `append`, or `release`, in the order of its places."""
    release = append.release
    last = 0 if append.last_id is None else bytearray(append.last_id)
    said = (since_boot, now) if release is None else (release.status, release.reason, release.graph)
    moved = append.k, bytearray(append.mark), last, now, *said
    return *moved, append.tno, append.epoch, bytearray(append.run), append.seq


def _blob(raw: bytes) -> bytes | bytearray:
    return bytearray(raw) if len(raw) <= SHORT else raw
