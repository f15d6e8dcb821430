"""The barrier of one superstep: it starts the tasks, hears what became of each, and knows when all are in.

1. A finished task's writes are stored when it finishes, except those of the last one to come in: they ride with the
   checkpoint that applies them, or go out with the rows that say why there is none.
2. The first failure cancels the tasks that still run; their news is kept as it comes.
3. A question, and a command for the parent graph, stop nobody: all of the step's are gathered.
4. News of an attempt that is over is dropped by identity.
5. An attempt that passed a limit has failed once it has unwound, or was left behind: then it is not tried again.
6. A node that failed for good and has an error handler is finished without writes; the handler runs in its place. What
   it is to handle is stored before it starts, so no node runs again whose failure is being handled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pregel.checkpoint.records import ATTEMPT, ERROR, ERROR_SOURCE, INTERRUPT, NO_WRITES, REJECTED, RESUME, TaskWrites
from pregel.engine.apply import tracked
from pregel.engine.calls import Calls
from pregel.engine.clock import left_behind, timed_out
from pregel.engine.effects import (
    Begun,
    CameOut,
    Cancel,
    Done,
    Drain,
    Dropped,
    Due,
    Event,
    Failed,
    Flow,
    Gone,
    Noted,
    Paused,
    Pushed,
    Step,
    Timeout,
    more,
)
from pregel.engine.frame import Frame
from pregel.engine.ids import TICKS
from pregel.engine.task import Task, Tries, handling
from pregel.engine.trace import show_end
from pregel.engine.watch import show_finished, show_paused
from pregel.errors import (
    ContinueAsNew,
    GraphBubbleUp,
    GraphDrained,
    InternalError,
    NodeTimeoutError,
    OutcomeUnknownError,
    ParentCommand,
    StepTimeoutError,
    rejected_in,
    told,
)
from pregel.types import Command, Interrupt, RetryPolicy, seconds

TOLD = 20  # errors of one step that are told with the first one
WROTE_NOTHING = ((NO_WRITES, None),)
_task_writes = partial(tuple.__new__, TaskWrites)  # a third of the cost of calling the class


class Barrier:
    """The tasks of one superstep, on their way in."""

    cancelled = ""
    draining = ""
    is_torn = False  # a task was cancelled or drained before it finished
    calls: Calls | None = None  # made when the first task calls something
    anew: tuple[Task, ContinueAsNew] | None = None  # the first in task order that wants a new execution
    stops: bool | None = None  # this batch stops all that is out; true: and leaves behind what does not end

    def __init__(self, frame: Frame, tasks: Sequence[Task], ready: Sequence[Task]) -> None:
        self.frame = frame
        self.ready = ready
        self.open = set(ready)
        self.finished: list[Task] = []
        self.failed: list[tuple[Task, BaseException]] = []
        self.cut_short: set[Task] = set()  # failed once the step had: else tried again, or handled
        self.paused: list[tuple[Task, tuple[Interrupt, ...]]] = []
        self.commands: list[tuple[Task, ParentCommand]] = []
        self.late: dict[Task, BaseException] = {}  # attempts that passed a limit and have not ended yet
        self.unsaved: list[TaskWrites] = []
        if ready is not tasks:
            self.finished = [task for task in tasks if task.writes_stored]
            self.paused = [(task, task.asleep) for task in tasks if task.asleep]

    def gather(self, step: Step, heard: Sequence[Event] | None) -> Flow[Step]:
        """Start what must run and hear of all of it; the step that carries what is still to be stored.

        `heard`: of a single task that was started already.
        """
        if heard is not None:
            self.feed(heard, step)
        elif all(task.node.pure for task in self.ready):
            self.feed([run_pure(task) for task in self.ready], step)
        else:
            step.start += self.ready
            if self.frame.plan.policed:
                self.watch(self.ready, step)
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

    def feed(self, events: Sequence[Event], step: Step) -> None:
        """Take in what happened; wishes that follow from it go into the step."""
        for event in events:
            if self.calls is not None:
                heard = self.calls.passed(event, step)
                if heard is None:
                    continue
                event = heard
            _FEEDERS[type(event)](self, event, step)
        if step.cancel or self.stops is not None:
            self._cancels(step)
        if self.open and self.unsaved:  # somebody is still out: what came in so far is stored now
            step.writes += self.unsaved
            self.unsaved = []

    def _cancels(self, step: Step) -> None:
        """News of one batch: what ended is not cancelled, what is cancelled does not start."""
        if self.stops is not None:
            held = self.calls.held if self.calls is not None else ()  # these have ended, and wait for their calls only
            step.cancel = more(step.cancel, [(task, self.stops) for task in self.open if task not in held])
            self.stops = None
        pairs: Iterable[tuple[Task, bool]] = step.cancel
        if self.calls is not None:
            pairs = self.calls.running(pairs)
        wanted: dict[Task, bool] = {}
        for task, abandon in pairs:  # a call may be cancelled with its caller and by itself
            if task in self.open:
                wanted[task] = wanted.get(task, False) or abandon
        step.cancel = [*wanted.items()]
        step.start = [task for task in step.start if task not in wanted]

    @property
    def in_order(self) -> list[Task]:
        """The finished tasks in task order."""
        return self.finished if len(self.finished) < 2 else sorted(self.finished, key=_order)

    @property
    def first_error(self) -> BaseException | None:
        """The error of the first task in task order that failed for good; the others are in its notes.

        One that would have gone on (tried again, handled) comes after these: when it failed depends on the clock.
        """
        if not self.failed:
            return None
        (_, first), *others = sorted(self.failed, key=lambda pair: (pair[0] in self.cut_short, _order(pair[0])))
        with suppress(Exception):  # one that takes no note is raised as it is
            for task, error in others[:TOLD]:
                first.add_note(f"In the same step {task.name!r} (task {task.id}) failed with {told(error)}")
            if len(others) > TOLD:
                first.add_note(f"In the same step {len(others) - TOLD} more tasks failed.")
        return first

    @property
    def told(self) -> list[Command[Any]]:
        """What the tasks send to the parent graph, in task order."""
        pairs = sorted(self.commands, key=lambda pair: _order(pair[0]))
        return [command for _, error in pairs for command in error.commands]

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

    def watch(self, tasks: Sequence[Task], step: Step) -> None:
        """Set the timers of attempts that start now, and note when those that may come again were first tried."""
        plan, timers = self.frame.plan, list[tuple[float, bool, Event]]()
        for task in tasks:
            node = task.node
            if node.retry_policy:
                task.began = task.began or self.frame.run.ids.clock() / TICKS
            if node.timeout is not None:
                for kind, limit in (("run", node.timeout.run_timeout), ("idle", node.timeout.idle_timeout)):
                    if (after := seconds(limit)) is not None:
                        timers.append((after, False, Timeout(task, kind)))  # type: ignore[arg-type]  # one of two
            if plan.step_timeout is not None and tasks is self.ready:
                timers.append((plan.step_timeout, False, Timeout(task, "step")))
        step.after = more(step.after, timers)

    def _done(self, event: Done, step: Step) -> None:
        task = event.task
        if not self._ends(task):
            return
        if task in self.late:
            self._failure(task, self.late[task], step)
            return
        self.finished.append(task)
        kept = take_in(self.frame, task, event.writes, step)
        if kept is not None:
            self.unsaved.append(row_of(self.frame, task, kept))

    def _paused(self, event: Paused, step: Step) -> None:
        if self._ends(event.task):
            self._pause(event.task, event.asked, step)

    def _pause(self, task: Task, asked: tuple[Interrupt, ...], step: Step) -> None:
        self.paused.append((task, asked))
        rows: list[tuple[str, Any]] = [(INTERRUPT, list(asked))]
        if task.answers:
            rows.append((RESUME, dict(task.answers)))
        self.keep(task, rows)
        show_paused(self.frame, step, task, asked)

    def _failed(self, event: Failed, step: Step) -> None:
        task, error = event.task, event.error
        if not self._ends(task):
            return
        if isinstance(error, ParentCommand) and (self.frame.ns or self.frame.home):
            self.commands.append((task, error))
            return
        if isinstance(error, GraphDrained):  # of a graph inside: the step ends with its siblings and is not applied
            self.draining, self.is_torn = error.reason, True
            return
        if isinstance(error, ContinueAsNew):  # its siblings end as in any other step
            if self.anew is None or _order(task) < _order(self.anew[0]):
                self.anew = (task, error)
            return
        self._failure(task, self.late.get(task, error), step)

    def _failure(self, task: Task, error: BaseException, step: Step) -> None:
        """Try again, hand over to an error handler, or fail."""
        stopping = bool(self.cancelled or self.failed)
        policy = _policy_for(task, error)
        handled = bool(task.node.error_handler) and _is_failure(error)
        if not stopping and policy is not None:
            self._try_again(task, error, policy, step)
            return
        if not stopping and handled:
            self.keep(task, [(ERROR, error), (ERROR_SOURCE, task.name)])
            task.writes = []
            self.finished.append(task)
            if self.frame.traced:
                show_end(self.frame, step, task, error=error)
            self._begin(handling(task, error), step)
            return
        self.failed.append((task, error))
        if stopping and (policy is not None or handled):
            self.cut_short.add(task)
        if task.error is not None and _is_failure(error):
            _chain(error, task.error.error)
        if not isinstance(error, ParentCommand):
            self.keep(task, [(ERROR, error), *reopened(task, error)])
        if self.frame.traced:
            show_end(self.frame, step, task, error=error)
        self._stop()

    def _try_again(self, task: Task, error: BaseException, policy: RetryPolicy, step: Step) -> Task:
        again = task.again()
        again.tries = (task.tries or Tries()).failed(told(error), task.began)
        self.keep(task, [(ATTEMPT, list(again.tries))])
        self.open.add(again)
        step.after = more(step.after, [(policy.wait(again.tries.failures), policy.jitter, Due(again))])
        return again

    def _begin(self, task: Task, step: Step) -> None:
        self.open.add(task)
        step.start.append(task)
        if self.frame.plan.policed or task.node.timeout is not None:
            self.watch([task], step)

    def retry(self, event: Failed, step: Step) -> Task | None:
        """The next attempt of a call, which starts after its backoff; None when there is none."""
        task = event.task
        policy = None if self.cancelled or self.failed else _policy_for(task, event.error)
        return None if policy is None else self._try_again(task, event.error, policy, step)

    def _pushed(self, event: Pushed, step: Step) -> None:
        self.calls = self.calls or Calls(self)
        self.calls.push(event, step)

    def _dropped(self, event: Dropped, step: Step) -> None:
        if self.calls is not None:
            self.calls.drop(event, step)

    def _noted(self, event: Noted, step: Step) -> None:
        self.calls = self.calls or Calls(self)
        self.calls.note(event, step)

    def _begun(self, event: Begun, step: Step) -> None:
        self.calls = self.calls or Calls(self)
        self.calls.begin(event, step)

    def _came_out(self, event: CameOut, step: Step) -> None:
        self.calls = self.calls or Calls(self)
        self.calls.come_out(event, step)

    def _gone(self, event: Gone, step: Step) -> None:
        task = event.task
        if not self._ends(task):
            return
        if task in self.late:
            self._over_late(task, event, step)
            return
        self.is_torn = True
        self.keep(task, [(ERROR, _cancelled())])
        if self.frame.traced:
            show_end(self.frame, step, task, error=_cancelled())

    def _over_late(self, task: Task, event: Gone, step: Step) -> None:
        """An attempt is over that passed a limit: a question that it had asked stands, else it failed."""
        error = self.late[task]
        if task.asked:
            self._pause(task, task.asked, step)
            return
        if event.lives and isinstance(error, NodeTimeoutError):
            left_behind(error)
        self._failure(task, error, step)

    def _timeout(self, event: Timeout, step: Step) -> None:
        task = event.task
        if task not in self.open or task in self.late:
            return
        if event.kind == "step":
            self.late[task] = _step_over(task)
            self._stop(abandon=True)
            return
        self.late[task] = timed_out(task, event.kind, event.elapsed)
        task.closed = True  # what it still streams is refused
        step.cancel = more(step.cancel, [(task, True)])

    def _due(self, event: Due, step: Step) -> None:
        if event.task in self.open:
            self._begin(event.task, step)

    def _cancel(self, event: Cancel, step: Step) -> None:
        if event.again or not self.cancelled:
            self.cancelled = self.cancelled or event.why
            self._stop()

    def _drain(self, event: Drain, step: Step) -> None:
        self.draining = event.why

    def _stop(self, *, abandon: bool = False) -> None:
        self.stops = self.stops or abandon


def run_pure(task: Task) -> Done | Failed:
    """Run a task that calls no user code here and now; START mostly, so that it shares the input's transaction."""
    writes: list[tuple[str, Any]] = []
    try:
        value = task.read()
        for writer in task.node.writers:
            writer.write(value, writes)  # type: ignore[union-attr]  # a pure node asks nothing
    except Exception as error:
        return Failed(task, error)
    return Done(task, writes)


def take_in(frame: Frame, task: Task, writes: list[tuple[str, Any]], step: Step) -> Sequence[tuple[str, Any]] | None:
    """A task came in: its writes are its own, its update shows; what the journal keeps of it, where there is one."""
    task.writes = writes
    if frame.shows:
        show_finished(frame, step, task)
    if frame.journal is None:
        return None
    kept, untracked = writes, frame.plan.untracked
    if untracked:
        kept = [(name, tracked(value, untracked)) for name, value in writes if name not in untracked]
    return kept or WROTE_NOTHING


def row_of(frame: Frame, task: Task, writes: Sequence[tuple[str, Any]]) -> TaskWrites:
    """What a task wrote, as the journal keeps it."""
    return _task_writes((frame.ns, task.checkpoint, task.key, task.name, task.path_text, tuple(writes), 0, None))


def _order(task: Task) -> tuple[Any, ...]:
    return task.order


def reopened(task: Task, error: BaseException) -> list[tuple[str, Any]]:
    """The rows that open questions again whose answers did not fit: all other answers stay."""
    rejected = rejected_in(error) & task.answers.keys()
    if not rejected:
        return []
    kept = {id: answer for id, answer in task.answers.items() if id not in rejected}
    return [(RESUME, kept), (REJECTED, sorted(rejected))]


def _cancelled() -> BaseException:
    """asyncio's error; where the interpreter ends, and imports nothing any more, one that reads the same."""
    try:
        from asyncio import CancelledError  # importing asyncio costs as much as importing this package
    except ImportError:
        stand_in: type[BaseException] = type("CancelledError", (BaseException,), {})
        return stand_in()
    return CancelledError()


_NO_FAILURES = (GraphBubbleUp, InternalError, OutcomeUnknownError, StepTimeoutError)


def _is_failure(error: BaseException) -> bool:
    """Whether an error is a node's failure, which may be tried again and handled.

    Signals and our own bugs are not, nor is what only a person can settle.
    """
    return isinstance(error, Exception) and not isinstance(error, _NO_FAILURES)


def _chain(error: BaseException, handled: BaseException) -> None:
    """Show what an error handler was to handle behind its own failure, as a failing `except` block would."""
    chain = _shown_with(error)
    if {id(shown) for shown in chain}.isdisjoint(id(shown) for shown in _shown_with(handled)):  # else it made a circle
        with suppress(Exception):  # an exception that is frozen is raised as it is
            chain[-1].__context__ = handled


def _shown_with(error: BaseException) -> list[BaseException]:
    """An error and what a traceback shows before it, nearest first: its cause, or what it was raised in handling of."""
    chain = [error]
    while (before := error.__cause__ or error.__context__) is not None and all(before is not seen for seen in chain):
        chain.append(before)
        error = before
    return chain


def _policy_for(task: Task, error: BaseException) -> RetryPolicy | None:
    """The first policy that wants this error tried again, if it has attempts left."""
    policies = task.node.retry_policy
    if not policies or not _is_failure(error) or rejected_in(error) or getattr(error, "still_running", False):
        return None
    for policy in policies:
        if policy.wants(error):  # type: ignore[arg-type]  # a failure is an Exception
            failures = 1 + (task.tries.failures if task.tries is not None else 0)
            return policy if failures < policy.max_attempts else None
    return None


def _step_over(task: Task) -> StepTimeoutError:
    limit = task.frame.plan.step_timeout
    return StepTimeoutError(
        f"Timed out: step {task.step} took longer than the step_timeout of {limit} s.",
        thread=task.frame.run.thread or None,
        step=task.step,
    )


_FEEDERS: dict[type[Event], Callable[[Barrier, Any, Step], None]] = {
    Done: Barrier._done,
    Paused: Barrier._paused,
    Failed: Barrier._failed,
    Gone: Barrier._gone,
    Due: Barrier._due,
    Pushed: Barrier._pushed,
    Dropped: Barrier._dropped,
    Noted: Barrier._noted,
    Begun: Barrier._begun,
    CameOut: Barrier._came_out,
    Timeout: Barrier._timeout,
    Cancel: Barrier._cancel,
    Drain: Barrier._drain,
}
