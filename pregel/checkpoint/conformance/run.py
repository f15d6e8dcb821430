"""A run that is driven by hand: what the engine does to a journal, step by step."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pregel.checkpoint.conformance.verbs import Verbs, config, fresh_id
from pregel.checkpoint.lease import live_runs, new_mark, this_owner
from pregel.checkpoint.records import (
    INTERRUPT,
    Append,
    Claim,
    Load,
    Receipt,
    Release,
    Save,
    Saved,
    Status,
    TaskWrites,
)

NAMES = ("", "a", "b", "n", INTERRUPT)


class Run:
    """One run over one thread: it claims with its first append, unless it has claimed before."""

    def __init__(self, verbs: Verbs, thread: str = "t", *, ns: str = "") -> None:
        self.verbs, self.thread, self.ns = verbs, thread, ns
        self.token = os.urandom(16)
        self.opened = verbs.call("load", thread, [Load(ns)], NAMES)
        self.ledger = verbs.saver.ledger()
        self.ledger.open(self.opened)
        row = self.opened.thread
        self.tno, self.seq, self.epoch, self.claimed = row.tno, row.seq, 0, False
        saved: Saved | None = self.opened.saved[0]
        self.head = None if saved is None else saved.id
        self.counter = 0 if saved is None else max(saved.counters.values(), default=0)

    def blank(self, *, dead: bool = False, ttl: float = 30.0) -> Append:
        """An append with nothing in it; with a claim when the run has none yet."""
        append = Append(self.thread, self.tno, self.epoch, self.token, self.seq, 1, new_mark())
        if not self.claimed:
            live_runs.add(self.token)
            row = self.opened.thread
            append.claim = Claim(row.epoch, row.gen, this_owner(), dead, ttl)
        return append

    def send(self, append: Append) -> Receipt:
        """Append, and go on from the receipt when it landed."""
        receipt: Receipt = self.verbs.call("append", append)
        if receipt.landed:
            self.seq, self.claimed = append.seq + append.k, append.release is None
            if receipt.row is not None:
                self.tno, self.epoch = receipt.row.tno, receipt.row.epoch
        return receipt

    def claim(self, **options: Any) -> Receipt:
        """Take the thread, with nothing else."""
        return self.send(self.blank(**options))

    def add_save(self, append: Append, values: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> str:
        """Add a checkpoint on top of the last one; its id comes back."""
        self.counter += 1
        save = Save(
            ns=self.ns,
            id=fresh_id(),
            parent=self.head,
            step=self.counter,
            source="loop",
            metadata=metadata or {},
            lineage=bytes(16),
            changed={channel: (self.counter, value) for channel, value in values.items()},
            seen={"n": {"a": self.counter}},
            updated=list(values),
        )
        self.ledger.add_save(save, append, append.seq + append.k)
        self.head = save.id
        return save.id

    def add_writes(self, append: Append, writes: list[tuple[str, Any]], task: str = "task") -> None:
        """Add what a task wrote under the last checkpoint."""
        self.ledger.add_writes(TaskWrites(self.ns, self.head or "", task, "n", "~", writes), append)

    def save(self, values: Mapping[str, Any], metadata: Mapping[str, Any] | None = None) -> str:
        """Append one checkpoint."""
        append = self.blank()
        checkpoint = self.add_save(append, values, metadata)
        if not self.send(append).landed:
            raise AssertionError("A run could not append to the thread that it holds.")
        return checkpoint

    def write(self, writes: list[tuple[str, Any]], task: str = "task") -> Receipt:
        """Append what a task wrote."""
        append = self.blank()
        self.add_writes(append, writes, task)
        return self.send(append)

    def release(self, status: Status = "idle", reason: str = "") -> Receipt:
        """Give the thread back."""
        receipt = self.send(self.blank().but(release=Release(status, reason)))
        live_runs.discard(self.token)
        return receipt


def values_of(verbs: Verbs, thread: str = "t") -> list[dict[str, Any]]:
    """The values of a thread's checkpoints, newest first."""
    return [found.checkpoint["channel_values"] for found in verbs.listed(config(thread, checkpoint_ns=""))]
