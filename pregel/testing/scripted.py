"""The scripted driver: performs a flow's Steps without threads, clocks or chance, and fails where it is told to.

1. A `Script` says in which order started tasks end, a `Fault` what goes wrong and where. The two are the whole run.
2. Each part of a Step is an effect, and so is each append that is sent and each run of a body; they are counted from 0.
3. The flow touches nothing between two effects, so dying after one is dying before the next.
4. A cancellation waits for the journal's part of a Step, as it does in the real drivers. Then the rest of the Step is
   not performed, and the flow is told what happened and to wind down.
5. A body runs whole, at the moment its task ends; one that waits for a call runs on when it is settled.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from heapq import heappop, heappush
from random import Random
from typing import Any, Literal, TypeVar

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.records import Append, Receipt
from pregel.engine.body import run_body
from pregel.engine.clock import Clock
from pregel.engine.effects import Cancel, Chunk, Dropped, Event, Flow, Gone, Noted, Pushed, Result, Step, Timeout
from pregel.engine.future import CallFuture
from pregel.engine.journal import BlockingJournal
from pregel.engine.task import Task
from pregel.errors import InternalError
from pregel.flow import Flow as SaverFlow
from pregel.testing.stage import Stage
from pregel.testing.trace import Trace, What

T = TypeVar("T")
FaultKind = Literal["crash", "raise", "lost", "cancel", "stubborn", "zombie"]
WIDTH = 5  # of so many tasks that are out, any may end next


@dataclass(frozen=True, slots=True)
class Script:
    """One way a run may go. At the n-th choice the task at `picks[n]` of those that are out ends; the first after that.

    - `inline`: a lone task runs where it is started, as it does in the real drivers when nothing else is out.
    - `together`: what is out ends in that order, and the flow hears of all of it at once.
    - `early`: an append in the background lands at once, not when it is waited for.
    - `stubborn`: a task that is cancelled by the flow runs to its end all the same, as a thread does.
    """

    picks: tuple[int, ...] = ()
    inline: bool = False
    together: bool = False
    early: bool = False
    stubborn: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong at the effect number `at`.

    - ``crash``: the process dies before it. ``raise``: the saver raises, and nothing of it is stored.
    - ``lost``: it is stored, then the saver raises. ``cancel``: after it the run is cancelled, what is out never runs.
    - ``stubborn``: the same, but what is out runs to its end. ``zombie``: before it the process is frozen and others
      act; then it goes on as if nothing had been.
    """

    kind: FaultKind
    at: int


class Died(BaseException):
    """The process of a scripted run died."""


class SaverFailed(Exception):
    """The saver of a scripted run raised, as the fault said."""


class Effect:
    """An effect that was performed: what it was, and how many tasks were out after it."""

    __slots__ = ("out", "what")

    def __init__(self, what: What, out: int) -> None:
        self.what, self.out = what, out


class Choices:
    """The choices of one run: those of a script, then the first of each, or any of them where there is `chance`."""

    def __init__(self, picks: Sequence[int] = (), chance: Random | None = None) -> None:
        self.picks, self.chance = picks, chance
        self.taken: list[int] = []
        self.widths: list[int] = []

    def pick(self, count: int) -> int:
        """Which of so many is next."""
        width, at = min(count, WIDTH), len(self.taken)
        if width < 2:
            return 0
        pick = self.chance.randrange(width) if self.chance is not None else 0
        if at < len(self.picks):
            pick = min(self.picks[at], width - 1)
        self.taken.append(pick)
        self.widths.append(width)
        return pick


def _settled(future: CallFuture[Any] | None) -> bool:
    return future is not None and future.done()


class _Cancelled(BaseException):
    """The run is cancelled here."""


class ScriptedDriver:
    """Drives one run by a script. `effects` are those that were performed, `trace` is all that happened."""

    def __init__(
        self,
        flow: Flow[Result],
        journal: ScriptedJournal | None = None,
        *,
        script: Script | None = None,
        choices: Choices | None = None,
        fault: Fault | None = None,
        meanwhile: Callable[[ScriptedJournal], None] | None = None,
        staged: bool = True,
    ) -> None:
        self.flow = flow
        self.journal = journal
        self.script = script = script or Script()
        self.fault = fault
        self.meanwhile = meanwhile
        self.choices = choices or Choices(script.picks)
        self.effects: list[Effect] = []
        self.trace = Trace(journal.durability if journal is not None else "sync")
        self.over: Result | None = None  # what the flow returned
        self.result: Result | None = None  # the same, once nothing can go wrong any more
        self.ready: list[Task] = []
        self.timers: list[tuple[float, int, Event]] = []
        self.timers_set = 0
        self.now = 0.0
        self.news: list[Event] = []
        self.sound = True
        self.struck = False  # the fault has happened
        self.stopping = False  # cancelled while the journal was at work
        self.stubborn = script.stubborn
        self.staged = staged  # bodies may call tasks and graphs
        self.called = False
        self.closed = False  # calls are withdrawn
        self.stage: Stage
        self.stages: dict[Task, Stage] = {}  # bodies that have begun
        self.waiting: list[Task] = []  # those of them that wait for a call
        self.pushed: list[Event] = []
        self.owed: set[CallFuture[Any]] = set()
        if journal is not None:
            journal.driver = self
            journal.saver = WatchedSaver(journal.saver, self._append)

    def run(self) -> Result:
        """How the run ended; `Died` and `SaverFailed` as the fault wants it, and what the real drivers raise."""
        try:
            self._drive()
        except _Cancelled:
            self._wind_down()
        finally:
            self.flow.close()
            self.closed = True
            self._withdraw()
            for stage in self.stages.values():  # those of a process that died end somewhere else
                while stage.waits_for is not None and stage.play() is None:
                    pass
            self.trace.add("end", self.result)
            if self.journal is not None:
                self.journal.abandon()
        assert self.result is not None
        return self.result

    def _drive(self) -> None:
        reply: list[Event] | None = None
        while True:
            try:
                step = self._send(reply)
            except StopIteration as stop:
                self.over = stop.value
                break
            self.news = reply = []
            self._perform(step, reply)
            while step.wait and not reply:
                self._wait(reply)
        if self.journal is not None:
            self.journal.flush()
        if self.fault is not None and self.fault.kind == "crash" and self.fault.at == len(self.effects):
            self.struck = True
            raise Died
        self.result = self.over

    def _send(self, reply: list[Event] | None) -> Step:
        for event in reply or ():
            self.trace.add("hear", event)
        return self.flow.send(reply)  # type: ignore[arg-type]  # None starts a flow

    # -- effects -----------------------------------------------------------------------------------------------------

    def _effect(self, what: What, act: Callable[[], None]) -> None:
        """Perform one effect."""
        fault = self.fault if self.fault is not None and self.fault.at == len(self.effects) else None
        if fault is not None:
            self.struck = True
            self._strike_before(fault)
        act()
        self.effects.append(Effect(what, len(self.ready)))
        if fault is not None:
            self._strike_after(fault)

    def _strike_before(self, fault: Fault) -> None:
        if fault.kind not in ("crash", "raise", "zombie"):
            return
        self.trace.add("fault", fault.kind)
        if fault.kind == "crash":
            raise Died
        if fault.kind == "raise":
            raise SaverFailed
        if self.meanwhile is not None and self.journal is not None:
            self.meanwhile(self.journal)

    def _strike_after(self, fault: Fault) -> None:
        if fault.kind == "lost":
            self.trace.add("fault", fault.kind)
            raise SaverFailed
        if fault.kind in ("cancel", "stubborn"):
            self.trace.add("fault", fault.kind)
            self.stubborn = fault.kind == "stubborn"
            if self.sound:
                raise _Cancelled
            self.stopping = True

    def _perform(self, step: Step, events: list[Event]) -> None:
        if self.journal is not None and (step.load or step.stores):
            self._journaled(self.journal, step, events)
        if step.emit:
            self._effect("emit", partial(self._emit, step.emit))
        for settled in step.settle:
            settled.future.settle(settled.value, settled.error)
            self.owed.discard(settled.future)
        self._wake()
        if step.cancel:
            self._effect("cancel", partial(self._cancel, step.cancel, events))
        if step.after:
            self._effect("after", partial(self._after, step))
        alone = self.script.inline and len(step.start) == 1 and not (self.ready or self.timers or self.waiting)
        if step.start:
            self._effect("start", partial(self._start, step.start))
        if alone:
            self._run(self.ready.pop(), events)

    def _journaled(self, journal: ScriptedJournal, step: Step, events: list[Event]) -> None:
        self.sound = False
        if step.load:
            journal.flush()  # a load waits for the append in the background, which is an effect of its own
            self._effect("load", partial(self._load, journal, step, events))
        if step.stores:
            self.trace.add("store", step)
            journal.store(step)
        self.sound = True
        if self.stopping:
            self.stopping = False
            raise _Cancelled

    def _load(self, journal: ScriptedJournal, step: Step, events: list[Event]) -> None:
        loaded = journal.load(step.load)
        self.trace.add("load", loaded)
        events.append(loaded)

    def _append(self, append: Append, send: Callable[[Append], Receipt]) -> Receipt:
        receipts: list[Receipt] = []

        def act() -> None:
            receipts.append(send(append))
            if receipts[0].landed:
                self.trace.add("append", append)

        self._effect("append", act)
        return receipts[0]

    def _emit(self, chunks: Sequence[Chunk]) -> None:
        for chunk in chunks:
            self.trace.add("emit", chunk)

    def _cancel(self, tasks: Sequence[tuple[Task, bool]], events: list[Event]) -> None:
        for task, abandon in tasks:
            self.trace.add("cancel", task)
            if task in self.stages:  # it has begun, as on a thread: its end will come
                continue
            if task in self.ready:
                if self.stubborn and not abandon:
                    continue
                self.ready.remove(task)
            _stop(task)
            events.append(Gone(task))

    def _after(self, step: Step) -> None:
        for seconds, _, event in step.after:
            if isinstance(event, Timeout) and event.task.clock is None:
                event.task.clock = Clock(event.task)
            self.trace.add("after", event)
            self.timers_set += 1  # which breaks ties the same way each time
            heappush(self.timers, (self.now + seconds, self.timers_set, event))

    def _start(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self.trace.add("start", task)
            self.ready.append(task)

    def _run(self, task: Task, events: list[Event]) -> None:
        def act() -> None:
            self.trace.add("run", task)
            _stop(task)
            if self.staged:
                self._play(task, events)
            else:
                events.append(copy_context().run(run_body, task))

        self._effect("run", act)

    def _play(self, task: Task, events: list[Event]) -> None:
        """Run a body to its end, or to where it waits for a call."""
        hand = task.call or task.frame.caller
        stage = self.stages.get(task) or Stage(task, copy_context() if hand is None else hand.context.copy())
        self.stages[task] = self.stage = stage
        event = stage.play()
        events += self.pushed
        self.pushed = []
        if event is None:  # what it waits for may be withdrawn already, when all is being closed
            (self.ready if _settled(stage.waits_for) else self.waiting).append(task)
        else:
            del self.stages[task]
            events.append(event)

    def _wake(self) -> None:
        """Who waited for a call that is settled now may run on."""
        for task in [task for task in self.waiting if _settled(self.stages[task].waits_for)]:
            self.waiting.remove(task)
            self.ready.append(task)

    # -- what tasks call ---------------------------------------------------------------------------------------------

    loop = None

    def push(self, event: Pushed | Dropped | Noted) -> None:
        """Hear what a task calls."""
        if not self.staged:
            raise InternalError("This run calls something, and the first one did not: it is not the same each time.")
        self.called = True
        self.owed.add(event.future)
        self.pushed.append(event)
        event.future.wait = partial(self.stage.wait, event.future)
        if self.closed:
            self._withdraw()

    def _withdraw(self) -> None:
        while self.owed:
            self.owed.pop().withdraw()
        self._wake()

    def _wait(self, events: list[Event]) -> None:
        """Let one more task end, or the next timer ring; all that is out where the script says together."""
        while True:
            while self.timers and isinstance(event := self.timers[0][2], Timeout) and event.task.clock.over:  # type: ignore[union-attr]  # it was made with its timers
                heappop(self.timers)
            count = len(self.ready) + bool(self.timers)
            if not count:
                raise InternalError("The flow waits, but nothing is out that could wake it.")
            pick = self.choices.pick(count)
            if pick < len(self.ready):
                self._run(self.ready.pop(pick), events)
            else:
                self.now, _, event = heappop(self.timers)
                events.append(event)
            if not self.script.together or not self.ready:
                return

    # -- the end -----------------------------------------------------------------------------------------------------

    def _wind_down(self) -> None:
        """As the real drivers do it: the flow hears what happened, and that it is over."""
        if inspect.getgeneratorstate(self.flow) != inspect.GEN_SUSPENDED:
            self.result = self.over or Result("cancelled")
            return
        self.closed = True
        self._withdraw()
        events: list[Event] = [*self.news, Cancel()]
        try:
            while True:
                step = self._send(events)
                events = []
                self._perform(step, events)
                while step.wait and not events:
                    self._wait(events)
        except StopIteration as stop:
            self.result = stop.value
        if self.journal is not None:
            self.journal.flush()


def _stop(task: Task) -> None:
    """The limits of an attempt are watched no more."""
    if task.clock is not None:
        task.clock.over = True


class ScriptedJournal(BlockingJournal):
    """The blocking journal, with its background in the hands of a scripted driver."""

    driver: ScriptedDriver

    def __init__(self, saver: JournalSaver, *args: Any, **kwargs: Any) -> None:
        super().__init__(saver, *args, **kwargs)
        self.ledger = Ledger(saver.serde, saver.names)  # which makes its rows at once: the nets look at them
        self.holds_back = self.durability == "async"

    def defer(self, append: Append) -> None:
        self.held = append
        if self.driver.script.early:  # the background is quick; else the next append comes first
            self.flush()


class WatchedSaver(JournalSaver):
    """Another saver's threads; each append goes through `watch`, which sends it on."""

    def __init__(self, saver: JournalSaver, watch: Callable[[Append, Callable[[Append], Receipt]], Receipt]) -> None:
        super().__init__(serde=saver.serde)
        self.names = saver.names
        self.saver = saver
        self.watch = watch

    def read(self, flow: SaverFlow[T]) -> T:
        return self.saver.read(flow)

    def write(self, flow: SaverFlow[T]) -> T:
        return self.saver.write(flow)

    def append(self, append: Append) -> Receipt:
        return self.watch(append, self.saver.append)
