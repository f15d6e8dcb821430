"""Checkpoint ids and the hashes that name tasks, interrupts and lineages.

1. A checkpoint id is a uuid6 greater than every id its thread ever had, whatever the clock says; the clock sequence
   holds the step, so ids of a thread sort as they were stored.
2. Hash inputs are joined with a NUL, which no part can contain, so no two different inputs meet.
3. A task id names the work (checkpoint, namespace, step, node, kind), never the thread: a copied thread keeps its work.
4. A lineage names the work that led to a checkpoint; it is equal again when a lost step is run again, which keeps
   idempotency keys stable over crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, SupportsBytes

from pregel.checkpoint.keys import hash16, lineage_after

TICKS = 10_000_000  # of a clock, a second: they are 100 ns each
EPOCH = 0x01B21DD213814000  # 100 ns ticks between 1582-10-15 and 1970-01-01
NULL_TASK = "00000000-0000-0000-0000-000000000000"
ROOT_LINEAGE = bytes(16)


class Ids:
    """Mints checkpoint ids for one claim of a thread; `clock` gives unix time in 100 ns ticks.

    Shared by a run's subgraphs and by nested runs on other threads.
    """

    __slots__ = ("_base", "_head", "_low", "_tail", "clock", "lock", "node")

    def __init__(self, clock: Callable[[], int], node: int) -> None:
        self.clock = clock
        self.node = node & 0xFFFFFFFFFFFF
        self._tail = f"-{self.node:012x}"
        self.lock = Lock()
        self._head, self._low, self._base = "", 0, -EPOCH

    @property
    def last(self) -> int:
        """The tick of the last id."""
        return self._base + EPOCH + self._low

    def follow(self, last_id: str) -> None:
        """Never go below an id that the thread has already."""
        if last_id and (ticks := ticks_of(last_id)) > self.last:
            self._stand_at(ticks)

    def next(self, step: int) -> str:
        """An id greater than all before it."""
        with self.lock:
            low = self.clock() - self._base
            if low <= self._low:
                low = self._low + 1
            if low <= 0xFFF:
                self._low = low
            else:  # every 0.4 ms at most
                self._stand_at(self._base + EPOCH + low)
                low = self._low
            head = self._head
        return "%s-6%03x-%x%s" % (head, low, 0x8000 | step & 0x3FFF, self._tail)  # noqa: UP031  # faster than an f-string

    def _stand_at(self, ticks: int) -> None:
        """Go on after this tick: the text of its upper bits, and the lower 12, a small number to reckon with."""
        self._head = f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}"
        self._low = ticks & 0xFFF
        self._base = ticks - self._low - EPOCH


def ticks_of(checkpoint_id: str) -> int:
    """The tick of an id, for comparing."""
    return int(checkpoint_id[:8] + checkpoint_id[9:13] + checkpoint_id[15:18], 16)


def uuid_text(digest: bytes) -> str:
    """16 bytes as 8-4-4-4-12 hex."""
    h = digest.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def interrupt_id(task: str, scope: str, index: int) -> str:
    """32 lowercase hex characters for the index-th question of a scope of a task."""
    return hash16((task, scope, str(index))).hex()


class Lineage:
    """The work that led to a checkpoint: what came before it, and the parts that came then. 16 bytes, hashed on demand.

    The parts are the path texts of the applied tasks; or, where something new starts, its kind and the counter.
    What waits to be hashed is plain tuples that stand in each other, which the garbage collector leaves alone.
    """

    __slots__ = ("_state",)

    def __init__(self, before: Lineage | bytes, parts: Sequence[str]) -> None:
        digest, waiting = before._state if isinstance(before, Lineage) else (before, ())
        self._state: tuple[bytes, tuple[Any, ...]] = digest, (waiting, parts)  # one attribute: others may be reading

    def __bytes__(self) -> bytes:
        digest, at = self._state
        if at:
            waiting: list[Sequence[str]] = []
            while at:
                at, parts = at
                waiting.append(parts)
            for parts in reversed(waiting):
                digest = lineage_after(digest, parts)
            self._state = digest, ()
        return digest


def idempotency_key(thread: str, lineage: SupportsBytes, path: str, n: int | str) -> str:
    """The key for the n-th outside effect of a task, or for a named one: the same after crash, resume and retry."""
    return hash16((thread, bytes(lineage).hex(), path, str(n))).hex()
