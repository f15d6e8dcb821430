"""A conversation with a graph, held again and again on new threads: undisturbed, or with one fault; and the nets.

Each process has a clock that is an hour behind that of the one before, and each run is compared with the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from pregel.channels import MISSING
from pregel.channels.batches import Batched, Unfolded
from pregel.channels.growth import Log
from pregel.checkpoint import lease
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import INTERRUPT, Load, Page, Saved, ThreadRow
from pregel.config import RunnableConfig
from pregel.engine.apply import values_of
from pregel.engine.authority import ClaimMissed
from pregel.engine.call import Call
from pregel.engine.effects import Done, Result
from pregel.engine.frame import Frame
from pregel.engine.ids import Ids
from pregel.engine.pregel import Pregel
from pregel.errors import AuthorityLost
from pregel.testing.clock import FakeClock
from pregel.testing.history import Branch, difference, history
from pregel.testing.landed import Landed
from pregel.testing.scripted import (
    Choices,
    Died,
    Effect,
    Fault,
    SaverFailed,
    Script,
    ScriptedDriver,
    ScriptedJournal,
    WatchedSaver,
)
from pregel.types import Command, Durability, Interrupt

HOUR = 3600.0
PLAIN = Script()


class ExploreFailure(AssertionError):
    """A net caught something: which one, in which turn, by which script and fault, and how the run went."""

    def __init__(self, net: str, what: str, turn: int, script: Script, fault: Fault | None, lines: str) -> None:
        super().__init__(f"[{net}] {what}\n  turn {turn}, {script}, {fault or 'undisturbed'}\n{lines}")
        self.net, self.what, self.turn, self.script, self.fault = net, what, turn, script, fault


class End(NamedTuple):
    """How a turn ended, apart from ids."""

    status: str
    values: Any
    asked: tuple[Any, ...]
    error: str


class _Thread:
    """The thread of one conversation: what was acknowledged for it, how many processes ran it, what it asked last."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.landed = Landed()
        self.processes = 0
        self.asked: tuple[Interrupt, ...] = ()


class Conversation:
    """What is said to the graph, how it must go, and how often it was tried."""

    def __init__(
        self,
        graph: Pregel,
        turns: Sequence[Any],
        config: RunnableConfig,
        durability: Durability,
        saver: JournalSaver | None,
    ) -> None:
        own = graph.checkpointer if isinstance(graph.checkpointer, JournalSaver) else None
        self.saver = saver or own or InMemorySaver()
        self.graph = graph if self.saver is own else graph.copy({"checkpointer": self.saver})
        self.turns = turns
        self.config = config
        self.durability: Durability = durability
        self.runs = 0
        self.turn = 0
        self.ends: list[End] = []
        self.history: list[Branch] = []
        self.script = PLAIN  # what is tried now
        self.fault: Fault | None = None
        self.driver: ScriptedDriver | None = None
        self.staged = True  # bodies may call tasks and graphs; a conversation without calls is spared the threads
        self._learn()

    def _learn(self) -> None:
        """How it must go: as it goes undisturbed, each task ending in the order of its start."""
        thread = self._begin(PLAIN, None)
        called = False
        for _, input in self._inputs(thread):
            result = self._undisturbed(thread, input)
            thread.asked = result.asked
            self.ends.append(_end(result))
            called = called or (self.driver is not None and self.driver.called)
        self.staged = called
        self.history = history(self._checkpoints(thread))
        self.saver.delete_thread(thread.name)

    def whole(self, script: Script, choices: Choices) -> list[Effect]:
        """The whole conversation undisturbed, with this turn as scripted; the effects of this turn."""
        thread = self._begin(script, None)
        effects: list[Effect] = []
        for number, input in self._inputs(thread):
            if number == self.turn:
                result = self._undisturbed(thread, input, script, choices)
                assert self.driver is not None
                effects = self.driver.effects
                self.script = replace(script, picks=tuple(choices.taken))
            else:
                result = self._undisturbed(thread, input)
            self._check_end(thread, number, result)
        self._finish(thread)
        return effects

    # -- one run -----------------------------------------------------------------------------------------------------

    def disturbed(self, script: Script, fault: Fault) -> None:
        """The whole conversation, with this fault in this turn."""
        thread = self._begin(script, fault)
        for number, input in self._inputs(thread):
            if number == self.turn:
                result = self._struck(thread, input, script, fault)
            else:
                result = self._undisturbed(thread, input)
            self._check_end(thread, number, result)
        self._finish(thread)

    def _inputs(self, thread: _Thread) -> Iterator[tuple[int, Any]]:
        """Each turn's number and input, as it is asked for."""
        for number, turn in enumerate(self.turns):
            yield number, turn(thread.asked) if callable(turn) else turn

    def _begin(self, script: Script, fault: Fault | None) -> _Thread:
        self.script, self.fault = script, fault
        self.runs += 1
        return _Thread(f"explore-{self.runs}")

    def _process(
        self, thread: _Thread, input: Any, script: Script, choices: Choices | None = None, fault: Fault | None = None
    ) -> tuple[ScriptedDriver, Frame]:
        """A new process that is about to run a turn."""
        place: RunnableConfig = {"configurable": {"thread_id": thread.name}}
        call = Call(
            self.graph,
            input,
            {**self.config, **place},
            modes=("values", "updates"),
            durability=self.durability,
            subgraphs=True,
        )
        frame, flow = call.start(ScriptedJournal)
        journal = frame.run.journal
        assert isinstance(journal, ScriptedJournal)
        thread.processes += 1
        clock = FakeClock()
        clock.advance(-HOUR * thread.processes)
        frame.run.ids = journal.ids = Ids(clock, thread.processes)
        journal.saver = WatchedSaver(self.saver, thread.landed.watch)
        driver = ScriptedDriver(flow, journal, script=script, choices=choices, fault=fault, staged=self.staged)
        frame.run.host = driver
        self.driver = driver
        return driver, frame

    def _undisturbed(
        self, thread: _Thread, input: Any, script: Script = PLAIN, choices: Choices | None = None
    ) -> Result:
        driver, frame = self._process(thread, input, script, choices)
        result = driver.run()
        self._check_rules(driver)
        if result.status == "done":
            self._check_live(thread, frame)
        return result

    def _struck(self, thread: _Thread, input: Any, script: Script, fault: Fault) -> Result:
        """The turn with its fault, and what others made of the thread after that."""
        before = self._row(thread)
        driver, _ = self._process(thread, input, script, fault=fault)
        if fault.kind == "zombie":
            return self._frozen(thread, input, driver, before)
        result: Result | None = None
        with suppress(Died, SaverFailed):
            result = driver.run()
        self._check_rules(driver)
        if not driver.struck:
            self._fail("repeat", "the run never came to its fault: it is not the same each time")
        if result is not None and result.status != "cancelled":
            return result
        finished = thread.landed.finished
        if result is not None:
            finished |= {event.task.id for event in driver.trace.about("hear") if _was_done(event)}
        return self._taken_up(thread, input, before, finished)

    def _frozen(self, thread: _Thread, input: Any, driver: ScriptedDriver, before: ThreadRow) -> Result:
        """The turn as others end it while this process is frozen for longer than its lease, and then goes on."""
        taken_over: list[tuple[Result, int]] = []

        def meanwhile(journal: ScriptedJournal) -> None:
            lease.release(journal.token)
            result = self._taken_up(thread, input, before, thread.landed.finished)
            taken_over.append((result, thread.landed.count))

        driver.meanwhile = meanwhile
        told = False
        try:
            driver.run()
        except (AuthorityLost, ClaimMissed):
            told = True
        self._check_rules(driver)
        ((result, count),) = taken_over
        if count != thread.landed.count:
            self._fail("zombie", "a process that others had taken over from stored something")
        if thread.landed.refused and not told:
            self._fail("zombie", "a process went on although what it wanted to store was refused")
        return result

    def _taken_up(self, thread: _Thread, input: Any, before: ThreadRow, finished: set[str]) -> Result:
        """The turn as a fresh process goes on with it: from where it stands, or anew when nothing of it was stored."""
        now = self._row(thread)
        answered = isinstance(input, Command) and now.seq > before.seq
        again = None if answered or now.last_id > before.last_id else input
        driver, frame = self._process(thread, again, PLAIN)
        result = driver.run()
        self._check_rules(driver)
        for task in driver.trace.about("start"):
            if task.id in finished:
                self._fail("repeat", f"task {task.name!r} ({task.id}) had finished, and starts again")
        if result.status == "done":
            self._check_live(thread, frame)
        return result

    def _row(self, thread: _Thread) -> ThreadRow:
        return self.saver.load(thread.name, []).thread

    def _finish(self, thread: _Thread) -> None:
        checkpoints = self._checkpoints(thread)
        if self.durability != "exit" and (changed := difference(self.history, history(checkpoints))):
            self._fail("history", changed)
        self.saver.delete_thread(thread.name)

    def _checkpoints(self, thread: _Thread) -> list[Saved]:
        """What the saver shows of the thread, after it was compared with what it acknowledged."""
        shown = [saved for _, saved in self.saver.page(thread.name, Page(None))]
        if broken := thread.landed.broken or thread.landed.compare(shown):
            self._fail("laws", broken)
        for saved in shown:
            saved.values = self._folded(saved.values)
        return shown

    def _folded(self, values: dict[str, Any]) -> dict[str, Any]:
        """Stored values, those that a reducer has to make as the graph's channels make them."""
        channels = self.graph.channels
        return {
            name: channels[name].from_checkpoint(value).get()
            if isinstance(value, Unfolded) and name in channels
            else value
            for name, value in values.items()
        }

    # -- nets --------------------------------------------------------------------------------------------------------

    def _check_end(self, thread: _Thread, turn: int, result: Result) -> None:
        thread.asked = result.asked
        if (end := _end(result)) != self.ends[turn]:
            self._fail("end", f"turn {turn} ended as {end} instead of {self.ends[turn]}")

    def _check_rules(self, driver: ScriptedDriver) -> None:
        if broken := driver.trace.broken_rule():
            self.driver = driver
            self._fail("rules", broken)

    def _check_live(self, thread: _Thread, frame: Frame) -> None:
        """What a load finds is what the run had when it ended."""
        saved = self.saver.load(thread.name, [Load()]).saved[0]
        assert saved is not None
        state = frame.state
        live = {
            name: value.value if isinstance(value, Log | Batched) else value
            for name, (_, value) in values_of(state, saved.counters).items()
            if value is not MISSING
        }
        seen = {node: counters for node, counters in state.seen.items() if node != INTERRUPT}
        stored_seen = {node: counters for node, counters in saved.seen.items() if node != INTERRUPT}
        for what, had, found in (
            ("values", live, self._folded(saved.values)),
            ("counters", state.counters, saved.counters),
            ("seen", seen, stored_seen),
            ("step", state.step - 1, saved.step),
            ("lineage", bytes(state.lineage), saved.lineage),
        ):
            if had != found:
                self._fail("live", f"the run ended with {what} {had!r}, and stored {found!r}")

    def _fail(self, net: str, what: str) -> NoReturn:
        lines = self.driver.trace.tail() if self.driver is not None else ""
        raise ExploreFailure(net, what, self.turn, self.script, self.fault, lines)


def _end(result: Result) -> End:
    asked = tuple(question.value for question in result.asked)
    return End(result.status, result.values, asked, repr(result.error) if result.error is not None else "")


def _was_done(event: object) -> bool:
    return isinstance(event, Done) and event.task.frame.journal is not None
