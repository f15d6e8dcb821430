"""The barrier of one superstep: it starts the tasks, hears what became of each, and knows when all are in.

1. A finished task's writes are stored when it finishes, except those of the last one to come in: they ride with the
   checkpoint that applies them, or go out with the rows that say why there is none.
2. The first failure cancels the tasks that still run; their news is kept as it comes.
3. A question, and a command for the parent graph, stop nobody: all of the step's are gathered.
4. News of an attempt that is over is dropped by identity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from pregel.checkpoint.records import ERROR, INTERRUPT, NO_WRITES, REJECTED, RESUME, TaskWrites
from pregel.engine.calls import Calls
from pregel.engine.effects import (
    Cancel,
    Done,
    Drain,
    Due,
    Event,
    Failed,
    Flow,
    Gone,
    Noted,
    Paused,
    Pushed,
    Step,
)
from pregel.engine.frame import Frame
from pregel.engine.task import Task
from pregel.engine.trace import show_end
from pregel.engine.watch import show_finished, show_paused
from pregel.errors import InternalError, ParentCommand, rejected_in, told
from pregel.types import Interrupt, RetryPolicy


class Barrier:
    """The tasks of one superstep, on their way in."""

    cancelled = ""
    draining = ""
    failed: Sequence[tuple[Task, BaseException]] = ()
    paused: Sequence[tuple[Task, tuple[Interrupt, ...]]] = ()
    commands: Sequence[tuple[Task, ParentCommand]] = ()
    calls: Calls | None = None  # made when the first task calls something

    def __init__(self, frame: Frame, tasks: Sequence[Task], ready: Sequence[Task]) -> None:
        self.frame = frame
        self.ready = ready
        self.open = set(ready)
        self.finished = [] if ready is tasks else [task for task in tasks if task.writes_stored]
        self.unsaved: list[TaskWrites] = []

    def gather(self, step: Step, heard: Sequence[Event] | None) -> Flow[Step]:
        """Start what must run and hear of all of it; the step that carries what is still to be stored.

        `heard`: of a single task that was started already.
        """
        if heard is not None:
            self.feed(heard, step)
        elif all(task.node.pure for task in self.ready):
            self.run_pure(step)
        else:
            step.start += self.ready
        step = yield from self._hear(step)
        if self.calls is not None:
            self.frame.recalled.clear()
        return step

    def _hear(self, step: Step) -> Flow[Step]:
        """Hear of all that is out."""
        while self.open:
            if self.calls is not None and self.calls.wants_family(step):
                return (yield from self.frame.run.multiplex(self._hear(step), self.open, self.frame))
            events = yield step
            step = Step()
            self.feed(events, step)
        return step

    def run_pure(self, step: Step) -> None:
        """Run tasks that call no user code here and now; START mostly, so that it shares the input's transaction."""
        for task in self.ready:
            writes: list[tuple[str, Any]] = []
            try:
                value = task.read()
                for writer in task.node.writers:
                    writer.write(value, writes)  # type: ignore[union-attr]  # a pure node asks nothing
            except Exception as error:
                self._failed(Failed(task, error), step)
            else:
                self._done(Done(task, writes), step)

    def feed(self, events: Sequence[Event], step: Step) -> None:
        """Take in what happened; wishes that follow from it go into the step."""
        for event in events:
            if self.calls is not None:
                heard = self.calls.passed(event, step)
                if heard is None:
                    continue
                event = heard
            _FEEDERS[type(event)](self, event, step)
        if step.cancel:  # news of one batch: what ended is not cancelled, what is cancelled does not start
            wanted = dict(step.cancel)  # a call may be cancelled with its caller and by itself
            step.cancel = [(task, abandon) for task, abandon in wanted.items() if task in self.open]
            stopped = {task for task, _ in step.cancel}
            step.start = [task for task in step.start if task not in stopped]
        if self.open and self.unsaved:  # somebody is still out: what came in so far is stored now
            step.writes += self.unsaved
            self.unsaved = []

    @property
    def in_order(self) -> list[Task]:
        """The finished tasks in task order."""
        return self.finished if len(self.finished) < 2 else sorted(self.finished, key=_order)

    @property
    def first_error(self) -> BaseException | None:
        """The error of the first failed task in task order; the others are in its notes."""
        if not self.failed:
            return None
        (_, first), *others = sorted(self.failed, key=lambda pair: _order(pair[0]))
        for task, error in others:
            with suppress(Exception):  # one that takes no note is raised as it is
                first.add_note(f"In the same step {task.name!r} (task {task.id}) failed with {told(error)}")
        return first

    @property
    def asked(self) -> list[tuple[Interrupt, ...]]:
        """The questions of each task that paused, in task order."""
        return [questions for _, questions in sorted(self.paused, key=lambda pair: _order(pair[0]))]

    def keep(self, task: Task, writes: Sequence[tuple[str, Any]]) -> None:
        """Queue rows of a task for the journal."""
        if self.frame.journal is not None:
            self.unsaved.append(row_of(self.frame, task, writes))

    def _ends(self, task: Task) -> bool:
        if task not in self.open:
            return False
        self.open.remove(task)
        return True

    def _done(self, event: Done, step: Step) -> None:
        if self._ends(event.task):
            self.finished.append(event.task)
            row = take_in(self.frame, event.task, event.writes, step)
            if row is not None:
                self.unsaved.append(row)

    def _paused(self, event: Paused, step: Step) -> None:
        task = event.task
        if not self._ends(task):
            return
        self.paused = [*self.paused, (task, event.asked)]
        rows: list[tuple[str, Any]] = [(INTERRUPT, list(event.asked))]
        if task.answers:
            rows.append((RESUME, dict(task.answers)))
        self.keep(task, rows)
        show_paused(self.frame, step, task, event.asked)

    def _failed(self, event: Failed, step: Step) -> None:
        task, error = event.task, event.error
        if not self._ends(task):
            return
        if isinstance(error, ParentCommand) and (self.frame.ns or self.frame.home):
            self.commands = sorted([*self.commands, (task, error)], key=lambda pair: _order(pair[0]))
            return
        if self.retry(event, step) is not None:
            return
        self.failed = [*self.failed, (task, error)]
        if not isinstance(error, ParentCommand):
            self.keep(task, [(ERROR, error), *reopened(task, error)])
        if self.frame.traced:
            show_end(self.frame, step, task, error=error)
        self._stop(step)

    def retry(self, event: Failed, step: Step) -> Task | None:
        """The next attempt, which starts after its backoff; None when there is none."""
        task = event.task
        policy = None if self.cancelled or self.failed else _policy_for(task, event.error)
        if policy is None:
            return None
        again = task.again()
        self.open.add(again)
        step.after = [*step.after, (_backoff(policy, task.attempt), policy.jitter, Due(again))]
        return again

    def _pushed(self, event: Pushed, step: Step) -> None:
        self.calls = self.calls or Calls(self)
        self.calls.push(event, step)

    def _noted(self, event: Noted, step: Step) -> None:
        self.calls = self.calls or Calls(self)
        self.calls.note(event, step)

    def _gone(self, event: Gone, step: Step) -> None:
        from asyncio import CancelledError  # importing asyncio costs as much as importing this package

        if self._ends(event.task):
            self.keep(event.task, [(ERROR, CancelledError())])
            if self.frame.traced:
                show_end(self.frame, step, event.task, error=CancelledError())

    def _due(self, event: Due, step: Step) -> None:
        if event.task in self.open:
            step.start.append(event.task)

    def _cancel(self, event: Cancel, step: Step) -> None:
        if not self.cancelled:
            self.cancelled = event.why
            self._stop(step)

    def _drain(self, event: Drain, step: Step) -> None:
        self.draining = event.why

    def _stop(self, step: Step) -> None:
        held = self.calls.held if self.calls is not None else ()  # these have ended, and wait for their calls only
        step.cancel = [*step.cancel, *((task, False) for task in self.open if task not in held)]


def take_in(frame: Frame, task: Task, writes: list[tuple[str, Any]], step: Step) -> TaskWrites | None:
    """A task came in: its writes are its own, its update shows; the row for the journal, where there is one."""
    task.writes = writes
    if frame.shows:
        show_finished(frame, step, task)
    if frame.journal is None:
        return None
    untracked = frame.plan.untracked
    rows = [write for write in writes if write[0] not in untracked] if untracked else writes
    return row_of(frame, task, rows or [(NO_WRITES, None)])


def row_of(frame: Frame, task: Task, writes: Sequence[tuple[str, Any]]) -> TaskWrites:
    """What a task wrote, as the journal keeps it."""
    return TaskWrites(frame.ns, task.checkpoint, task.key, task.name, task.path_text, writes)


def _order(task: Task) -> tuple[Any, ...]:
    return task.order


def reopened(task: Task, error: BaseException) -> list[tuple[str, Any]]:
    """The rows that open questions again whose answers did not fit: all other answers stay."""
    rejected = rejected_in(error) & task.answers.keys()
    if not rejected:
        return []
    kept = {id: answer for id, answer in task.answers.items() if id not in rejected}
    return [(RESUME, kept), (REJECTED, sorted(rejected))]


def _policy_for(task: Task, error: BaseException) -> RetryPolicy | None:
    """The first policy that wants this error tried again, if it has attempts left."""
    if not isinstance(error, Exception) or isinstance(error, InternalError) or rejected_in(error):
        return None
    for policy in task.node.retry_policy or task.frame.plan.retry_policy:
        if _matches(policy, error):
            return policy if task.attempt < policy.max_attempts else None
    return None


def _matches(policy: RetryPolicy, error: Exception) -> bool:
    wanted = policy.retry_on
    if isinstance(wanted, type):
        return isinstance(error, wanted)
    if isinstance(wanted, Sequence):
        return isinstance(error, tuple(wanted))
    return bool(wanted(error))


def _backoff(policy: RetryPolicy, attempt: int) -> float:
    return float(min(policy.max_interval, policy.initial_interval * policy.backoff_factor ** (attempt - 1)))


_FEEDERS: dict[type[Event], Callable[[Barrier, Any, Step], None]] = {
    Done: Barrier._done,
    Paused: Barrier._paused,
    Failed: Barrier._failed,
    Gone: Barrier._gone,
    Due: Barrier._due,
    Pushed: Barrier._pushed,
    Noted: Barrier._noted,
    Cancel: Barrier._cancel,
    Drain: Barrier._drain,
}
