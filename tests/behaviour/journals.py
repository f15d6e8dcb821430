"""A hand-driven run: what the engine does to a journal, step by step, for tests of savers."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.lease import live_runs, this_owner
from pregel.checkpoint.records import Append, Claim, Load, Owner, Receipt, Release, Save, Saved, TaskWrites
from pregel.engine.ids import Ids

ids = Ids(lambda: time.time_ns() // 100, os.getpid())

NAMES = ["a", "b", "c", "n", "m", "", "__interrupt__", "__resume__", "__error__", "__no_writes__"]


def fresh_id() -> str:
    """A checkpoint id above all before it."""
    return ids.next(0)


class Run:
    """One run over one thread. `load` first; then claim with the first append."""

    def __init__(self, saver: JournalSaver, thread: str = "t", *, ns: str = "", owner: Owner | None = None) -> None:
        self.saver, self.thread, self.ns = saver, thread, ns
        self.owner = owner or this_owner()
        self.run = os.urandom(16)
        self.ledger = saver.ledger()
        self.opened = saver.load(thread, [Load(ns)], names=NAMES)
        self.ledger.open(self.opened)
        self.seq = self.opened.thread.seq
        self.epoch = 0
        self.tno = self.opened.thread.tno
        newest = self.opened.saved[0]
        self.checkpoint = newest.id if newest else None
        self.step = newest.step if newest else -2

    def blank(self, *, claim: bool = False, dead: bool = False, ttl: float = 30.0) -> Append:
        """An append with nothing in it."""
        append = Append(self.thread, self.tno, self.epoch, self.run, self.seq, 1, os.urandom(8))
        if claim:
            live_runs.add(self.run)
            row = self.opened.thread
            append.claim = Claim(row.epoch, row.gen, self.owner, dead, ttl)
        return append

    def send(self, append: Append) -> Receipt:
        """Append, and go on from the receipt when it landed."""
        receipt = self.saver.append(append)
        if receipt.landed:
            self.seq = append.seq + append.k
        if receipt.landed and receipt.row is not None:
            assert receipt.row.seq == self.seq
            self.epoch, self.tno = receipt.row.epoch, receipt.row.tno
        return receipt

    def claim(self, **options: Any) -> Receipt:
        """Take the thread, with nothing else."""
        return self.send(self.blank(claim=True, **options))

    def add_save(self, append: Append, changed: Mapping[str, Any], **fields: Any) -> str:
        """A checkpoint on top of the last one; its id comes back."""
        self.step += 1
        counter = self.step + 2
        fields = {
            "source": "loop",
            "metadata": {},
            "seen": {"n": {"a": counter - 1}},
            "updated": list(changed),
            **fields,
        }
        save = Save(
            ns=self.ns,
            id=fresh_id(),
            parent=self.checkpoint,
            step=self.step,
            lineage=bytes(16),
            changed={channel: (counter, value) for channel, value in changed.items()},
            **fields,
        )
        self.ledger.add_save(save, append, append.seq + append.k)
        self.checkpoint = save.id
        return save.id

    def save(self, changed: Mapping[str, Any], **fields: Any) -> str:
        """Append one checkpoint."""
        append = self.blank(claim=not self.epoch)
        checkpoint = self.add_save(append, changed, **fields)
        assert self.send(append).landed
        return checkpoint

    def write(self, writes: Sequence[tuple[str, Any]], task: str | None = None, path: str = "~p") -> Receipt:
        """Append what a task wrote, under the newest checkpoint."""
        append = self.blank(claim=not self.epoch)
        self.add_writes(append, writes, task, path)
        return self.send(append)

    def add_writes(
        self, append: Append, writes: Sequence[tuple[str, Any]], task: str | None = None, path: str = "~p"
    ) -> None:
        assert self.checkpoint is not None
        self.ledger.add_writes(
            TaskWrites(self.ns, self.checkpoint, task or str(uuid.uuid4()), "n", path, writes), append
        )

    def release(self, status: Any = "idle", reason: str = "") -> Receipt:
        """Give the thread back."""
        append = self.blank(claim=not self.epoch)
        append.release = Release(status, reason)
        receipt = self.send(append)
        live_runs.discard(self.run)
        return receipt


def newest(saver: JournalSaver, thread: str = "t", ns: str = "") -> Saved | None:
    """The newest checkpoint."""
    return saver.load(thread, [Load(ns)]).saved[0]


def everything(saver: JournalSaver) -> list[tuple[str, str, dict[str, Any], list[tuple[str, int, Any]]]]:
    """All that a saver shows, for comparing before with after."""
    from pregel.checkpoint.records import Page

    return [
        (thread, saved.id, saved.values, [(write.task, write.idx, write.value) for write in saved.writes])
        for thread, saved in saver.page(None, Page(ns=None))
    ]


def opened(saver: JournalSaver, *threads: str) -> list[Run]:
    """A run on each of these threads, with a first checkpoint stored: ``{"a": 1}``."""
    runs = [Run(saver, thread) for thread in threads]
    for run in runs:
        run.save({"a": 1})
    return runs


def next_append(run: Run, value: Any = 2) -> Append:
    """An append with the run's next checkpoint, not sent."""
    append = run.blank()
    run.add_save(append, {"a": value})
    return append


def value_of(saver: JournalSaver, thread: str) -> Any:
    """What the newest checkpoint of a thread has under "a"; None without one."""
    saved = saver.load(thread, [Load()]).saved[0]
    return None if saved is None else saved.values["a"]
