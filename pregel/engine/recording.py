"""The journal of a run that keeps what it shows (`engine.recorder`), for runs that block.

1. One turn for everything that goes into the journal: an append of the run, and one that brings only chunks, which a
   background thread sends once they have waited for a moment. So offsets and `seq` rise together.
2. What the background met is raised by the run's next append: a saver that fails, or a thread that was lost.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from pregel.checkpoint import lease
from pregel.checkpoint.chunks import ChunkedAppend
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Append
from pregel.engine.background import Background, background
from pregel.engine.journal import BlockingJournal, Journal
from pregel.engine.recorder import MANY, MOMENT, Recorder, ends_of

if TYPE_CHECKING:
    from pregel.checkpoint.records import Load, Lone, Mail, Page, Save, TaskWrites
    from pregel.engine.effects import Chunk, Loaded, Step
    from pregel.engine.frame import Post
    from pregel.engine.running import Running

moments = Background(MOMENT)
os.register_at_fork(after_in_child=moments.after_fork)


class Recording(Journal):
    """What both kinds share: everything but the waiting."""

    recorder: Recorder | None = None

    def records(self, modes: frozenset[str], run_id: str | None) -> None:
        """Keep what is shown in these modes."""
        self.recorder = Recorder(self.saver.serde, modes, run_id)
        self.ledger = JournalSaver.ledger(self.saver)  # rows at once: chunks are no part of what is told later

    def runs_as(self, run_id: str) -> None:
        self.record.run_id = run_id

    @property
    def record(self) -> Recorder:
        """The chunks of this run."""
        assert self.recorder is not None
        return self.recorder

    def records_of(self, step: Step) -> tuple[list[TaskWrites], Sequence[Save | Lone]]:
        """A step's general records: what a task wrote says which chunks land with it."""
        return step.records()

    def encode(self, step: Step, writes: list[TaskWrites], saves: Sequence[Save | Lone]) -> Append | None:
        failed = self.failure
        through, again = ends_of(writes)
        append = super().encode(step, writes, saves)
        if (
            append is None and again
        ):  # a retry is told of now: later nobody could tell its chunks from those it replaces
            append = self._blank()
            self.seq += 1
        held = self.durability == "exit" and step.release is None and not step.at_once
        return self.record.ride(step, append, through, again, held=held, refused=self.failure is not failed)

    def bare(self) -> Append:
        """An append that brings only what was shown."""
        made = ChunkedAppend.of(self._blank())
        self.record.fill(made)
        self.seq += 1
        return made

    def _blank(self) -> Append:
        return Append(self.thread, self.row.tno, self.epoch, self.token, self.seq, 1, lease.new_mark())

    def tapped(self, post: Post, shown: frozenset[str]) -> Post:
        """Where nodes show things: they go to the recorder, and to the driver in the modes that the caller sees."""
        recorder = self.record

        def tell(chunk: Chunk, task: Running) -> None:
            if chunk[1] in recorder.modes and (waiting := recorder.note(chunk, task)) in (1, MANY):
                self.remind(now=waiting == MANY)
            if chunk[1] in shown:
                post(chunk, task)

        return tell

    def remind(self, *, now: bool) -> None:
        """See to it that what waits is sent, in a moment or at once."""
        raise NotImplementedError

    def abandon(self) -> None:
        super().abandon()
        if self.recorder is not None:
            self.recorder.gate.close()


class RecordingJournal(Recording, BlockingJournal):
    """The recording journal of the blocking driver."""

    error: BaseException | None = None  # what the background met

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn = threading.RLock()

    def load(self, requests: Sequence[Load | Page | Mail]) -> Loaded:
        loaded = super().load(requests)
        if not self.claimed:
            self.record.starts_from(self.saver.chunk_tail(self.thread), self.row)
        return loaded

    def store(self, step: Step) -> None:
        with self._turn:
            self._check()
            super().store(step)

    def flush(self) -> None:
        with self._turn:
            self._check()
            super().flush()

    def _check(self) -> None:
        if self.error is not None:
            raise self.error

    def remind(self, *, now: bool) -> None:
        waiting = Waiting(self)
        if now:
            waiting.let_go(waiting.held)
        else:
            moments.watch(waiting)

    def send_shown(self, shown: object) -> None:
        """Send what was shown, unless an append has taken it along."""
        with self._turn:
            if self.record.fresh is not shown or not self.claimed or self.error is not None:
                return
            try:
                held = self._take()
                append = self.bare()
                self.send(append if held is None else held.followed_by(append))
            except BaseException as error:
                self.error = error
                self.record.gate.close()


class Waiting:
    """What a run has shown and not sent yet, as `Background` sees it."""

    def __init__(self, journal: RecordingJournal) -> None:
        self.journal = journal

    @property
    def held(self) -> Any:
        """What waits; None when an append has taken it along."""
        return self.journal.record.fresh or None

    def let_go(self, held: object) -> None:
        """Send it from a worker."""
        with suppress(RuntimeError):  # the interpreter ends
            background.submit(partial(self.journal.send_shown, held))

    def flush(self) -> None:
        """Send it now."""
        self.journal.send_shown(self.held)
