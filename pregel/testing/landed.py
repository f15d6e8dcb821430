"""What a saver has acknowledged for one thread, append by append, and the laws that every append keeps.

1. ``seq`` rises by k, k >= 1, and only the run that holds the thread moves it.
2. A checkpoint id is greater than every id that the thread had before, in any namespace and by any clock.
3. A checkpoint's parent and base exist in its namespace, and so does the checkpoint that a write belongs to.
4. A write (task, position) is stored once; only control rows are replaced. What was stored can be read back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pregel.checkpoint.keys import id_bytes, id_text
from pregel.checkpoint.records import Append, CheckpointRow, Receipt, Saved
from pregel.engine.ids import NULL_TASK

NOBODY = id_bytes(NULL_TASK)


class Landed:
    """The acknowledged appends of one thread; `broken` is the first law that one of them broke, in plain words."""

    def __init__(self) -> None:
        self.count = 0  # of appends that landed
        self.refused = 0
        self.broken = ""
        self.seq = 0
        self.run: bytes | None = None
        self.last_id = b""
        self.checkpoints: set[tuple[int, bytes]] = set()
        self.writes: set[tuple[int, bytes, bytes, int]] = set()

    @property
    def finished(self) -> set[str]:
        """The ids of the tasks whose writes are stored."""
        return {id_text(task) for _, _, task, _ in self.writes if task != NOBODY}

    def watch(self, append: Append, send: Callable[[Append], Receipt]) -> Receipt:
        """Send an append, and take in the answer."""
        receipt = send(append)
        self.add(append, receipt)
        return receipt

    def add(self, append: Append, receipt: Receipt) -> None:
        """Take in the answer to an append."""
        if not receipt.landed:
            self.refused += 1
            return
        self.count += 1
        self._authority(append, receipt)
        for row in append.checkpoints:
            self._checkpoint(row)
        for write in append.writes:
            if (write.ns, write.checkpoint) not in self.checkpoints:
                self._break(f"a write of task {id_text(write.task)} belongs to no checkpoint")
            if write.idx >= 0:
                if write[:4] in self.writes:
                    self._break(f"write {write.idx} of task {id_text(write.task)} is stored twice")
                self.writes.add(write[:4])

    def _authority(self, append: Append, receipt: Receipt) -> None:
        seq = append.seq + append.k if receipt.row is None else receipt.row.seq
        if append.k < 1 or append.seq != self.seq or seq != append.seq + append.k:
            self._break(f"seq went from {self.seq} to {seq} by an append of {append.seq} + {append.k}")
        if append.claim is None and append.run != self.run:
            self._break("a run that does not hold the thread appended to it")
        self.seq = seq
        self.run = append.run if append.release is None else None

    def _checkpoint(self, row: CheckpointRow) -> None:
        name = id_text(row.id)
        if row.id <= self.last_id:
            self._break(f"checkpoint {name} is not greater than {id_text(self.last_id)}, which the thread had before")
        for kind, other in (("parent", row.parent), ("base", row.base)):
            if other is not None and (row.ns, other) not in self.checkpoints:
                self._break(f"checkpoint {name} has a {kind} that does not exist: {id_text(other)}")
        self.last_id = max(self.last_id, row.id)
        self.checkpoints.add((row.ns, row.id))

    def _break(self, law: str) -> None:
        self.broken = self.broken or law

    def compare(self, checkpoints: Iterable[Saved]) -> str:
        """Where these, all that the saver shows of the thread, are not what it acknowledged; empty when they are."""
        shown = {saved.id for saved in checkpoints}
        stored = {id_text(id) for _, id in self.checkpoints}
        if shown != stored:
            return (
                f"stored {sorted(stored - shown)} and cannot read them, reads {sorted(shown - stored)} and never stored"
            )
        return ""
