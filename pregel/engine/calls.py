"""The calls that tasks make while they run: functions (`@task`) and graphs, each a task of its own in the same step.

1. A call's id is made of what makes its caller's, of its name and its number, so the same call of a caller that runs
   again is known, and one that ended is not run again.
2. Its result is stored first, then its future is settled.
3. A task has ended when all its calls have: its end is held back until then. A failed or cancelled one cancels them.
4. Asked beats everything here too: a caller that returned although a call of its asked is paused.
5. What is stored is given to a call of the same name with the same arguments only. Another one in its place fails the
   caller, whatever the caller makes of that error: its code went another way than before (`engine.astray`).
6. A failure that the caller caught is told again, one that ended the caller is not (`engine.failure`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.keys import task_parts
from pregel.checkpoint.records import CONTROL, EFFECT, ERROR, MEMO, Write
from pregel.engine.astray import RETURN, Ended, astray, ended_calls
from pregel.engine.effects import (
    Begun,
    CameOut,
    Done,
    Dropped,
    Event,
    Failed,
    Gone,
    Noted,
    Paused,
    Pushed,
    Settled,
    Step,
    TaskEvent,
    more,
)
from pregel.engine.failure import Failure, comes_from, may_be_caught, packed, unpacked
from pregel.engine.future import CallFuture
from pregel.engine.ids import interrupt_id
from pregel.engine.intents import BEGUN, effect_id, record_of, unknown
from pregel.engine.memos import memo_record
from pregel.engine.node import ChannelWrite, ChannelWriteEntry, PregelNode
from pregel.engine.replaying import meet
from pregel.engine.task import PUSH, Task, path_text
from pregel.engine.trace import show_end, show_starts
from pregel.errors import (
    CallWithdrawn,
    GraphInterrupt,
    InvalidUpdateError,
    OutcomeUnknownError,
    OutsideRunError,
    PregelError,
    ReplayMismatchError,
)
from pregel.types import Interrupt
from pregel.waits import Wait

if TYPE_CHECKING:
    from pregel.engine.barrier import Barrier
    from pregel.engine.frame import Frame, Run
    from pregel.engine.pregel import Pregel
    from pregel.engine.streamed import CallStream

RETURNS = ChannelWrite([ChannelWriteEntry(RETURN)])
ENDS = (Done, Failed, Paused, Gone)


class CallTask(Task):
    """One call of a function from inside a task; `future` is what its caller waits for."""

    parent: Task
    fingerprint = ""  # of what it is called with, where results are stored
    behind: Sequence[CallTask] = ()  # the calls of its caller that had failed when it was made
    failed_at = 0  # how much its caller had come to when this failed

    def __init__(self, parent: Task, index: int | str, name: str, node: PregelNode, arg: Any) -> None:
        super().__init__(parent.frame, name, node, (PUSH, parent.path, index, True), (PUSH,))
        self.parent = parent
        self.arg = arg
        self.answers = parent.answers
        self.step, self.checkpoint, self.fresh = parent.step, parent.checkpoint, parent.fresh
        self.future: CallFuture[Any] = CallFuture(parent)
        self.call = self.future

    @property
    def parts(self) -> tuple[str, ...]:
        _, caller, index, _ = self.path
        return task_parts(
            self.checkpoint, self.frame.ns, self.step, self.name, PUSH, path_text(caller), str(index), "call"
        )

    def push(self) -> CallFuture[Any]:
        """Have it run; the future."""
        host = self.frame.run.host
        if host is None:
            raise OutsideRunError("The run of this task is over.", fix="Call tasks while their caller runs.")
        self.parent.node.calls = True
        if not self.parent.went_on and not meet(self):
            self.parent.goes_on()
        host.push(Pushed(self.parent, self))
        return self.future

    def question_id(self, scope: str, index: int) -> str:
        """The id of a question: the node that is answered, this call, the scope in it, and how many it asked before."""
        task: Task = self
        while isinstance(task, CallTask):
            task = task.parent
        return interrupt_id(task.id, f"{self.id} {scope}" if scope else self.id, index)

    def write(self, channel: str, value: Any) -> None:
        """Refused: what a call gives is what it returns, and its caller may be another one the next time."""
        raise InvalidUpdateError(
            f"A call of {self.name!r} wrote to {channel!r}, but a @task has no state to write to.",
            fix="Return it, and write it from the node that calls the task.",
            node=self.name,
            channel=channel,
        )

    def read(self) -> Any:
        """The arguments, as they were given."""
        return self.arg

    def again(self) -> CallTask:
        again: CallTask = object.__new__(type(self))
        again.__dict__.update(self.__dict__)
        again.fresh, again.asked, again.closed, again.clock = False, (), False, None
        again._counts = again._made = None
        again.went_on, again.met, again.ahead, again.owed = False, None, None, ()
        return again


class GraphCall(CallTask):
    """A call of a graph from inside a task: it runs as a subgraph that lives under its caller."""

    def __init__(self, parent: Task, number: int, graph: Pregel, input: Any, run: Run) -> None:
        node = PregelNode(channels=(), triggers=(), bound=graph, writers=(RETURNS,))
        super().__init__(parent, f"call:{number}", graph.get_name(), node, input)
        self.number = number
        self.inner_run = run  # as the call wants it: its config, context and limit
        self.output_keys: str | tuple[str, ...] | None = None
        self.stream: CallStream | None = None  # where what it shows goes, when its caller streams it

    @property
    def ns(self) -> str:
        """Where the called graph lives: under its caller, by number."""
        return f"{self.parent.ns}|call:{self.number}"


class Calls:
    """The calls of one superstep, on their way in."""

    def __init__(self, barrier: Barrier) -> None:
        self.barrier = barrier
        self.frame: Frame = barrier.frame
        self.out: dict[Task, set[CallTask]] = {}  # caller -> its calls that are out
        self.held: dict[Task, TaskEvent] = {}  # ends of callers whose calls are out
        self.asked: dict[Task, dict[str, tuple[Interrupt, ...]]] = {}  # caller -> what its calls asked, by path
        self.failures: dict[Task, dict[CallTask, Failure]] = {}  # caller -> what failed, and it may have caught
        self.passed_by: set[CallTask] = set()  # failed calls after which their caller has done something
        self.astray: dict[Task, PregelError] = {}  # tasks that fail with this, whatever they make of it
        self.ended: dict[str, Ended] = ended_calls(self.frame.recalled)  # path -> the call that ended there

    def push(self, event: Pushed, step: Step) -> None:
        """A task calls: the stored result, or one more task."""
        task, made = event.task, event.made
        if not self._open(task):
            settle(step, made.future, error=CallWithdrawn())
            return
        task.touch()
        if task in self.failures:
            made.behind = tuple(self.failures[task])
        stored = self.frame.recalled.get(made.id)
        if stored is not None and self._recall(made, stored, step):
            return
        if (ended := self.ended.get(made.path_text)) is not None and ended.name != made.name:
            self._go_astray(made, step)
            return
        self.out.setdefault(task, set()).add(made)
        self.barrier.open.add(made)
        step.start.append(made)
        if made.node.timeout is not None or made.node.retry_policy:
            self.barrier.watch([made], step)
        if self.frame.traced:
            show_starts(self.frame, step, [made])

    def drop(self, event: Dropped, step: Step) -> None:
        """A task wants a call no more."""
        if event.made in self.out.get(event.task, ()):
            step.cancel = more(step.cancel, [(event.made, False)])
        else:
            settle(step, event.future, error=CallWithdrawn())  # it has ended meanwhile

    def note(self, event: Noted, step: Step) -> None:
        """A task made a value once and for all."""
        if not self._open(event.task):
            settle(step, event.future, error=CallWithdrawn())
            return
        event.task.touch()
        record = memo_record(event.task, event.key, event.value)
        self.frame.recalled[str(record.task)] = [
            Write(str(record.task), -7, MEMO, event.value, record.path, record.name)
        ]
        if self.frame.journal is not None:
            step.writes.append(record)
        settle(step, event.future, event.value)

    def begin(self, event: Begun, step: Step) -> None:
        """A task wants to work outside: its intent is stored, unless it has begun that before and may not ask again."""
        task, intent = event.task, event.value
        if not self._open(task):
            settle(step, event.future, error=CallWithdrawn())
            return
        task.touch()
        rows = {row.channel: row.value for row in self.frame.recalled.get(effect_id(task, event.key), ())}
        if (before := rows.get(EFFECT)) is not None and before["state"] == BEGUN:
            if not before["idempotent"]:
                error = self.astray[task] = unknown(task, event.key)
                settle(step, event.future, error=error)
                return
            intent = {**intent, "idempotency_key": before["idempotency_key"], "idempotent": True}
        self._keep_effect(event, [(EFFECT, intent)], step)
        settle(step, event.future, intent["idempotency_key"])

    def come_out(self, event: CameOut, step: Step) -> None:
        """The work is over; also of a task that is being cancelled."""
        if event.task not in self.barrier.open:
            settle(step, event.future, error=CallWithdrawn())
            return
        event.task.touch()
        self._keep_effect(event, event.value, step)
        settle(step, event.future)

    def _keep_effect(self, event: Noted, rows: list[tuple[str, Any]], step: Step) -> None:
        record = record_of(event.task, event.key, rows)
        known = {row.channel: row for row in self.frame.recalled.get(str(record.task), ())}
        for channel, value in rows:
            known[channel] = Write(str(record.task), CONTROL[channel], channel, value, record.path, record.name)
        self.frame.recalled[str(record.task)] = list(known.values())
        if self.frame.journal is not None:
            step.writes.append(record)
            step.at_once = True

    def passed(self, event: Event, step: Step) -> Event | None:
        """The event as the barrier is to hear it; None for a call's, and for the end of one whose calls are out."""
        if not isinstance(event, ENDS) or event.task not in self.barrier.open:
            return event
        task = event.task
        if out := self.out.get(task):
            self.held[task] = event
            if isinstance(event, Failed | Gone):
                step.cancel = more(step.cancel, [(call, False) for call in out])
            return None
        wrong = self.astray.get(task)
        if wrong is not None and not isinstance(
            event, Gone if isinstance(wrong, OutcomeUnknownError) else Failed | Gone
        ):
            event = Failed(task, wrong)
        if isinstance(event, Failed) and (failures := self.failures.pop(task, None)) is not None:
            self._give_up(failures, event.error)
        if isinstance(event, Done) and (asked := self.asked.get(task)):
            event = Paused(task, tuple(question for path in sorted(asked) for question in asked[path]))
        elif isinstance(event, Paused) and (asked := self.asked.get(task)):
            event = Paused(task, _of_all(event.asked, asked))
        if isinstance(task, CallTask):
            self._ended(task, event, step)
            return None
        return event

    def running(self, wanted: Iterable[tuple[Task, bool]]) -> Iterator[tuple[Task, bool]]:
        """What is to be cancelled, with the calls of those that ended, and wait for their calls, in their place."""
        for task, abandon in wanted:
            if task in self.held:
                yield from self.running((call, abandon) for call in self.out[task])
            else:
                yield task, abandon

    def wants_family(self, step: Step) -> bool:
        """Whether a graph is to start in a run that has no family yet."""
        run = self.frame.run
        return not run.multiplexed and any(isinstance(task, GraphCall) for task in step.start)

    def _open(self, task: Task) -> bool:
        barrier = self.barrier
        return task in barrier.open and task not in self.held and not barrier.cancelled and not barrier.failed

    def _recall(self, made: CallTask, stored: Sequence[Write], step: Step) -> bool:
        """Tell a call that ended before how it did; False when it is to run again."""
        values = {write.channel: write.value for write in stored}
        kept = values.get(MEMO, made.fingerprint)
        failure = unpacked(kept) if isinstance(kept, list) else kept if isinstance(kept, Failure) else None
        if failure is None and RETURN not in values:
            return False
        if (kept if failure is None else failure.fingerprint) != made.fingerprint:
            self._go_astray(made, step)
        elif failure is not None:
            self._may_be_caught(made, failure)
            settle(step, made.future, error=failure.error)
        else:
            self.passed_by.update(made.behind)
            settle(step, made.future, values[RETURN])
        return True

    def _go_astray(self, made: CallTask, step: Step) -> None:
        error = self.astray[made.parent] = astray(made, self.ended)
        settle(step, made.future, error=error)

    def _ended(self, call: CallTask, event: TaskEvent, step: Step) -> None:
        """A call is over, or is tried again."""
        barrier, caller = self.barrier, call.parent
        caller.touch()
        if call in barrier.late:  # it passed a limit before it ended
            event = Failed(call, barrier.late[call])
        barrier.open.remove(call)
        out = self.out[caller]
        out.discard(call)
        if isinstance(event, Done):
            self._returned(call, event, step)
        elif isinstance(event, Paused):
            self.asked.setdefault(caller, {})[call.path_text] = event.asked
            settle(step, call.future, error=GraphInterrupt(event.asked))
            if self.frame.traced:
                show_end(self.frame, step, call, asked=event.asked)
        elif isinstance(event, Failed):
            again = None if caller in self.held else barrier.retry(event, step)
            if again is not None:
                out.add(again)  # type: ignore[arg-type]  # the next attempt of a call is one
                return
            self._failed(call, event.error)
            settle(step, call.future, error=event.error)
            if self.frame.traced:
                show_end(self.frame, step, call, error=event.error)
        else:
            settle(step, call.future, error=CallWithdrawn())
        if not out and (held := self.held.pop(caller, None)) is not None:
            barrier.feed([held], step)

    def _returned(self, call: CallTask, event: Done, step: Step) -> None:
        rows = [*event.writes, (MEMO, call.fingerprint)] if call.fingerprint else event.writes
        self.barrier.keep(call, rows)
        self.passed_by.update(call.behind)
        self.frame.recalled[call.id] = [
            Write(call.id, i, name, value, call.path_text, call.name) for i, (name, value) in enumerate(rows)
        ]
        self.ended[call.path_text] = Ended(call.name, call.fingerprint)
        value = event.writes[0][1] if event.writes else None
        if "updates" in self.frame.shows and not isinstance(call, GraphCall):
            step.emit.append((self.frame.ns, "updates", {call.name: value}))
        if self.frame.traced:
            show_end(self.frame, step, call, result={RETURN: value})
        settle(step, call.future, value)

    def _failed(self, call: CallTask, error: BaseException) -> None:
        """A call failed for good. A caller that is still there may catch it."""
        barrier, caller = self.barrier, call.parent
        rows: list[tuple[str, Any]] = [(ERROR, error)]
        if isinstance(error, ReplayMismatchError | OutcomeUnknownError):  # of a called graph, or of what it calls
            self.astray[caller] = error
        elif may_be_caught(error) and not (caller in self.held or barrier.cancelled or barrier.failed):
            failure = Failure(call.fingerprint, error)
            self._may_be_caught(call, failure)
            self.frame.recalled[call.id] = [Write(call.id, -7, MEMO, failure, call.path_text, call.name)]
            self.ended[call.path_text] = Ended(call.name, call.fingerprint)
            if self._replaces:
                rows.append((MEMO, packed(failure, self.frame.journal.saver.serde)))  # type: ignore[union-attr]  # it is there
        barrier.keep(call, rows)

    def _may_be_caught(self, call: CallTask, failure: Failure) -> None:
        self.failures.setdefault(call.parent, {})[call] = failure
        call.failed_at = call.parent.come_to

    def _give_up(self, failures: dict[CallTask, Failure], error: BaseException) -> None:
        """A caller failed: the calls that it failed of run again when it does."""
        for call, failure in failures.items():
            went_on = call in self.passed_by or call.parent.come_to > call.failed_at
            if not went_on or comes_from(error, failure.error):
                self.frame.recalled.pop(call.id, None)
                self.ended.pop(call.path_text, None)
                if self._replaces:
                    self.barrier.keep(call, [(MEMO, failure.fingerprint)])

    @property
    def _replaces(self) -> bool:
        """Whether what is stored of a call can be replaced: a saver with the reference's verbs only keeps the first."""
        return self.frame.journal is not None and self.frame.journal.renews


def settle(step: Step, future: CallFuture[Any], value: Any = None, error: BaseException | None = None) -> None:
    """Have a future settled once this step is stored."""
    step.settle = more(step.settle, [Settled(future, value, error)])


def _of_all(asked: Sequence[Interrupt], of_calls: Mapping[str, Sequence[Interrupt]]) -> tuple[Interrupt, ...]:
    """What a caller tells that paused because a call of its did: one question, and the waits of all its calls.

    In the order in which the calls were made: which of them was heard first depends on the clock.
    """
    of_a_call = {question.id for questions in of_calls.values() for question in questions}
    told = [question for question in asked if question.id not in of_a_call]
    asks = any(not isinstance(question.value, Wait) for question in told)
    for path in sorted(of_calls):
        told += [question for question in of_calls[path] if not asks or isinstance(question.value, Wait)]
        asks = asks or any(not isinstance(question.value, Wait) for question in of_calls[path])
    return tuple(told)
