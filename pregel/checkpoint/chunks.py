"""Journaled chunks: what a run showed, kept beside its steps, so that others can follow it.

1. A row holds chunks that stand side by side in the stream: `n` of them, the last at the offset `last`. Offsets count
   the chunks of a thread, over all of its runs, and are never given twice.
2. Chunks come in by an append, under the guard of the thread's row, so those of a worker that lost it are refused, and
   each append that brings some moves `seq`: a reader who has seen a seq has seen all chunks up to it.
3. `state` says whether the work that a chunk tells of is stored. One that is still pending when a later epoch holds the
   thread is superseded, whoever says so: the one who died could not.
4. Housekeeping empties rows, and leaves the last one: offsets go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgpack  # type: ignore[import-untyped]

from pregel.checkpoint.flows import Sql, thread_row
from pregel.checkpoint.records import Append, ThreadRow
from pregel.checkpoint.standing import info_of
from pregel.flow import Flow

PENDING, LANDED, SUPERSEDED = 0, 1, 2
PAGE = 100  # rows that a reader is given at once

Encoded = tuple[str, str, str, bytes]  # namespace, mode, type and blob of the payload
Loads = Callable[[tuple[str, bytes]], Any]


class ChunkRow(NamedTuple):
    """Chunks as a run appends them; the store adds thread and epoch."""

    last: int
    n: int
    attempt: int
    state: int
    node: str
    run_id: str | None
    at: float  # unix seconds
    blob: bytes

    def stored(self, epoch: int) -> StoredChunks:
        """The row as a store keeps it."""
        last, n, attempt, state, node, run_id, at, blob = self
        return StoredChunks(last, n, epoch, attempt, state, node, run_id, at, blob)


class StoredChunks(NamedTuple):
    """The same as the statement `chunks` gives it back."""

    last: int
    n: int
    epoch: int
    attempt: int
    state: int
    node: str
    run_id: str | None
    at: float
    blob: bytes


@dataclass(slots=True)
class ChunkTail:
    """Where a thread's chunks end, and which of them are pending, as (last, n)."""

    next: int
    pending: list[tuple[int, int]]


@dataclass(slots=True)
class ChunkPage:
    """A thread's row and chunks of it from an offset on, as of one moment; `more`: there may be others behind them.

    `end` is there when a first look found none: the offset of the thread's last chunk (-1: it never had one), and its
    attempt.
    """

    thread: ThreadRow
    rows: list[StoredChunks]
    more: bool
    end: tuple[int, int] | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether nobody holds the thread, and no worker is to take it up."""
        return self.thread.run is None and self.thread.status != "pending"

    @property
    def standing(self) -> dict[str, str]:
        """How the thread stands, in plain words."""
        info = info_of(self.thread)
        return {"status": info.status, "reason": info.reason}


class ChunkedAppend(Append):
    """An append that brings chunks as well, and says of earlier ones what became of them, as (last, state)."""

    __slots__ = ("chunks", "marks")

    chunks: list[ChunkRow]  # type: ignore[misc]  # the class says that others have none
    marks: list[tuple[int, int]]  # type: ignore[misc]

    @classmethod
    def of(cls, append: Append) -> ChunkedAppend:
        """The same append, with room for chunks."""
        made = cls.__new__(cls)
        for name in Append.__slots__:
            setattr(made, name, getattr(append, name))
        made.chunks, made.marks = [], []
        return made

    def followed_by(self, later: Append) -> Append:
        """This append with the next one of its run in it, which may say what became of chunks of this one."""
        super().followed_by(later)
        states = dict(later.marks)
        self.chunks = [
            row._replace(state=states.pop(row.last)) if row.last in states else row for row in self.chunks
        ] + list(later.chunks)
        self.marks = [*((last, state) for last, state in self.marks if last not in states), *states.items()]
        return self


def pack_chunks(chunks: Sequence[Encoded]) -> bytes:
    """The blob of a row."""
    return msgpack.packb(chunks)  # type: ignore[no-any-return]


def unpack_chunks(loads: Loads, row: StoredChunks) -> Iterator[tuple[int, str, str, Any]]:
    """(offset, namespace, mode, payload) of a row's chunks."""
    found = msgpack.unpackb(row.blob) if row.n else []
    if len(found) != row.n:
        raise ValueError(f"the row at {row.last} is said to hold {row.n} chunks, and holds {len(found)}")
    for offset, (ns, mode, kind, blob) in enumerate(found, row.last - row.n + 1):
        yield offset, ns, mode, loads((kind, blob))


def tail_flow(thread: str) -> Flow[ChunkTail]:
    """Where the chunks of a thread end."""
    rows = yield Sql("thread", (thread,))
    if not rows:
        return ChunkTail(0, [])
    tno = thread_row(rows[0]).tno
    last = yield Sql("chunk_end", (tno,))
    return ChunkTail(last[0][0] + 1 if last else 0, [(row[0], row[1]) for row in (yield Sql("pending_chunks", (tno,)))])


def chunks_flow(thread: str, offset: int, seen: int | None = None) -> Flow[ChunkPage]:
    """The chunks of a thread from an offset on; none are looked for while its seq is the one that was `seen`."""
    rows = yield Sql("thread", (thread,))
    if not rows:
        return ChunkPage(ThreadRow(thread), [], False)
    row = thread_row(rows[0])
    if row.seq == seen:
        return ChunkPage(row, [], False)
    found = yield Sql("chunks", (row.tno, offset, PAGE))
    if not found and seen is None:
        last = yield Sql("chunk_end", (row.tno,))
        return ChunkPage(row, [], False, tuple(last[0]) if last else (-1, 1))
    return ChunkPage(row, [StoredChunks(*one) for one in found], len(found) == PAGE)
