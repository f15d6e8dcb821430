"""Checkpoint ids and the hashes that name tasks, interrupts and lineages.

1. A checkpoint id is a uuid6 greater than every id its thread ever had, whatever the clock says; the clock sequence
   holds the step, so ids of a thread sort as they were stored.
2. Hash inputs are joined with a NUL, which no part can contain, so no two different inputs meet.
3. A task id names the work (checkpoint, namespace, step, node, kind), never the thread: a copied thread keeps its work.
4. A lineage names the work that led to a checkpoint; it is equal again when a lost step is run again, which keeps
   idempotency keys stable over crashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from threading import Lock

EPOCH = 0x01B21DD213814000  # 100 ns ticks between 1582-10-15 and 1970-01-01
NULL_TASK = "00000000-0000-0000-0000-000000000000"
ROOT_LINEAGE = bytes(16)


class Ids:
    """Mints checkpoint ids for one claim of a thread; `clock` gives unix time in 100 ns ticks.

    Shared by a run's subgraphs and by nested runs on other threads.
    """

    __slots__ = ("clock", "last", "lock", "node")

    def __init__(self, clock: Callable[[], int], node: int) -> None:
        self.clock = clock
        self.node = f"{node & 0xFFFFFFFFFFFF:012x}"
        self.last = 0
        self.lock = Lock()

    def follow(self, last_id: str) -> None:
        """Never go below an id that the thread has already."""
        if last_id:
            self.last = max(self.last, ticks_of(last_id))

    def next(self, step: int) -> str:
        """An id greater than all before it."""
        with self.lock:
            self.last = ticks = max(self.clock() + EPOCH, self.last + 1)
        return (
            f"{ticks >> 28:08x}-{ticks >> 12 & 0xFFFF:04x}-{0x6000 | ticks & 0xFFF:04x}"
            f"-{0x8000 | step & 0x3FFF:04x}-{self.node}"
        )


def ticks_of(checkpoint_id: str) -> int:
    """The tick of an id, for comparing."""
    return int(checkpoint_id[:8] + checkpoint_id[9:13] + checkpoint_id[15:18], 16)


def hash16(parts: Iterable[str]) -> bytes:
    """16 bytes that name the parts."""
    return blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def uuid_text(digest: bytes) -> str:
    """16 bytes as 8-4-4-4-12 hex."""
    h = digest.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


def task_id(checkpoint_id: str, ns: str, step: int, name: str, kind: str, *parts: str) -> str:
    """The id of a task: what runs, where, and from which checkpoint."""
    place = f"{ns}|{name}" if ns else name
    text = f"{checkpoint_id}\0{place}\0{step}\0{name}\0{kind}\0" + "\0".join(parts)
    return uuid_text(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest())


def interrupt_id(task: str, scope: str, index: int) -> str:
    """32 lowercase hex characters for the index-th question of a scope of a task."""
    return hash16((task, scope, str(index))).hex()


def next_lineage(lineage: bytes, paths: Iterable[str]) -> bytes:
    """The lineage after these tasks were applied."""
    return blake2b("\0".join(paths).encode(), digest_size=16, key=lineage).digest()


def salted_lineage(lineage: bytes, kind: str, counter: int) -> bytes:
    """The lineage after an input, an update or a fork, which start something new."""
    return blake2b(f"{kind}\0{counter}".encode(), digest_size=16, key=lineage).digest()


def idempotency_key(thread: str, lineage: bytes, path: str, n: int) -> str:
    """The key for the n-th outside effect of a task: the same after a crash, a resume and a retry."""
    return hash16((thread, lineage.hex(), path, str(n))).hex()
