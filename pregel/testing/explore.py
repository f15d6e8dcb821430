"""Explore: one conversation with a graph in every order of completion, with every death at every effect of it.

After each death the thread is taken up again from its saver by a fresh process, whose clock is an hour behind that of
the one before, and the nets are:

1. ``end``: the run ends as an undisturbed one does, and so does each later turn of the conversation.
2. ``history``: the thread holds the same checkpoints in all namespaces, apart from ids and times (not in ``exit``).
3. ``repeat``: no task whose writes were stored starts again; after a cancellation, none that had finished.
4. ``rules``: every trace keeps the write-ahead rules of `trace`. ``laws``: the saver keeps those of `landed`.
5. ``live``: what is stored at the end of a run is the state that the run had.
6. ``zombie``: a process that was frozen while another took over changes nothing afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple, NoReturn

from pregel.channels import MISSING
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import INTERRUPT, Load, Page, Saved, ThreadRow
from pregel.config import RunnableConfig
from pregel.engine.apply import values_of
from pregel.engine.call import Call
from pregel.engine.effects import Done, Result
from pregel.engine.frame import Frame
from pregel.engine.ids import Ids
from pregel.engine.journal import ClaimMissed
from pregel.engine.pregel import Pregel
from pregel.errors import AuthorityLost
from pregel.testing.clock import FakeClock
from pregel.testing.history import Branch, difference, history
from pregel.testing.landed import Landed
from pregel.testing.scripted import (
    Choices,
    Died,
    Fault,
    FaultKind,
    SaverFailed,
    Script,
    ScriptedDriver,
    ScriptedJournal,
    WatchedSaver,
)
from pregel.testing.trace import What
from pregel.types import Command, Durability

HOUR = 3600.0
PLAIN = Script()
EVERYWHERE: frozenset[What] = frozenset(("load", "append", "emit", "cancel", "after", "start", "run"))
AT: dict[FaultKind, frozenset[What]] = {
    "crash": EVERYWHERE,
    "raise": frozenset(("load", "append")),
    "lost": frozenset(("append",)),
    "cancel": EVERYWHERE,
    "stubborn": EVERYWHERE,
    "zombie": frozenset(("append", "run")),  # one that was frozen before it loaded is no zombie
}
FAULTS: tuple[FaultKind, ...] = tuple(AT)


class ExploreFailure(AssertionError):
    """A net caught something: which one, in which turn, by which script and fault, and how the run went."""

    def __init__(self, net: str, what: str, turn: int, script: Script, fault: Fault | None, lines: str) -> None:
        super().__init__(f"[{net}] {what}\n  turn {turn}, {script}, {fault or 'undisturbed'}\n{lines}")
        self.net, self.what, self.turn, self.script, self.fault = net, what, turn, script, fault


@dataclass(slots=True)
class Report:
    """What was explored. `exhaustive` is False when there were more orders than were asked for."""

    orders: int = 0
    exhaustive: bool = True
    runs: int = 0
    effects: int = 0  # of the longest undisturbed run
    faults: Counter[FaultKind] = field(default_factory=Counter)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.faults.items())
        return f"{self.runs} runs, {self.orders} orders, up to {self.effects} effects; {kinds}"


class End(NamedTuple):
    """How a turn ended, apart from ids."""

    status: str
    values: Any
    asked: tuple[Any, ...]
    error: str


def explore(
    graph: Pregel,
    input: Any,
    *turns: Any,
    config: RunnableConfig | None = None,
    durability: Durability = "sync",
    orders: int = 120,
    faults: Sequence[FaultKind] = FAULTS,
    saver: JournalSaver | None = None,
) -> Report:
    """What was tried, when nothing was caught; ExploreFailure otherwise.

    `turns` are the inputs that follow the first one on the same thread, such as ``Command(resume=...)``; deaths are
    tried in each. Where there are more than `orders` completion orders, that many are drawn, the same ones each time.
    The graph's nodes are called blocking, each turn must end the same whatever the order, and none at the recursion
    limit, since a resume starts a new allowance. `saver` (default: the graph's own, else one in memory) gets a new
    thread for each run.
    """
    exploration = _Exploration(graph, [input, *turns], config or {}, durability, saver)
    for turn in range(len(exploration.turns)):
        exploration.turn = turn
        scripts = list(exploration.scripts(orders))
        for script, effects in scripts:
            for fault in _faults(effects, faults):
                exploration.disturbed(script, fault)
    return exploration.report


def crash_matrix(graph: Pregel, input: Any, *turns: Any, **options: Any) -> Report:
    """Every death at every effect, in the one order in which tasks end as they were started; see `explore`."""
    return explore(graph, input, *turns, **{"orders": 1, **options})


def _faults(effects: Sequence[tuple[What, int]], kinds: Sequence[FaultKind]) -> Iterator[Fault]:
    """Each kind of fault at each effect where it makes a difference."""
    for at, (what, out) in enumerate(effects):
        for kind in kinds:
            if what in AT[kind] and (kind != "stubborn" or out):
                yield Fault(kind, at)
    if "crash" in kinds:
        yield Fault("crash", len(effects))


class _Thread:
    """One conversation: the thread it is on, what was acknowledged for it, and the process that runs it now."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.landed = Landed()
        self.processes = 0


class _Exploration:
    """The conversation that is explored, how it must go, and what was tried so far."""

    def __init__(
        self,
        graph: Pregel,
        turns: list[Any],
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
        self.report = Report()
        self.turn = 0
        self.ends: list[End] = []
        self.history: list[Branch] = []
        self.script = PLAIN  # what is tried now
        self.fault: Fault | None = None
        self.driver: ScriptedDriver | None = None
        self._learn()

    def _learn(self) -> None:
        """How it must go: as it goes undisturbed, each task ending in the order of its start."""
        thread = self._begin(PLAIN, None)
        for input in self.turns:
            self.ends.append(_end(self._undisturbed(thread, input)))
        self.history = history(self._checkpoints(thread))

    # -- orders ------------------------------------------------------------------------------------------------------

    def scripts(self, limit: int) -> Iterator[tuple[Script, list[tuple[What, int]]]]:
        """The scripts of this turn, each with the effects of its undisturbed run."""
        tried = self._all_orders(limit)
        if tried is None:
            tried = self._drawn_orders(limit)
            self.report.exhaustive = False
        self.report.orders += len(tried)
        for picks, effects in tried.items():
            yield Script(picks), effects
        first = next(iter(tried))
        other_ways = [Script(first, inline=True), Script(first, together=True), Script(first, stubborn=True)]
        if self.durability == "async":
            other_ways.append(Script(first, early=True))
        for script in other_ways:
            yield script, self._whole(script, Choices(script.picks))

    def _all_orders(self, limit: int) -> dict[tuple[int, ...], list[tuple[What, int]]] | None:
        """Every order, found by changing the last choice that can still be changed; None when there are too many."""
        tried: dict[tuple[int, ...], list[tuple[What, int]]] = {}
        picks: list[int] | None = []
        while picks is not None:
            if len(tried) >= limit:
                return None if limit > 1 else tried
            choices = Choices(picks)
            effects = self._whole(Script(tuple(picks)), choices)
            tried[tuple(choices.taken)] = effects
            picks = _next(choices)
        return tried

    def _drawn_orders(self, limit: int) -> dict[tuple[int, ...], list[tuple[What, int]]]:
        chance = Random(limit)
        tried: dict[tuple[int, ...], list[tuple[What, int]]] = {}
        for number in range(2 * limit):
            if len(tried) < limit:
                choices = Choices((), chance if number else None)
                effects = self._whole(PLAIN, choices)
                tried.setdefault(tuple(choices.taken), effects)
        return tried

    def _whole(self, script: Script, choices: Choices) -> list[tuple[What, int]]:
        """The whole conversation undisturbed, with this turn as scripted; the effects of this turn."""
        thread = self._begin(script, None)
        effects: list[tuple[What, int]] = []
        for number, input in enumerate(self.turns):
            if number == self.turn:
                result = self._undisturbed(thread, input, script, choices)
                assert self.driver is not None
                effects = [(effect.what, effect.out) for effect in self.driver.effects]
                self.script = replace(script, picks=tuple(choices.taken))
            else:
                result = self._undisturbed(thread, input)
            self._check_end(number, result)
        self._finish(thread)
        self.report.effects = max(self.report.effects, len(effects))
        return effects

    # -- one run -----------------------------------------------------------------------------------------------------

    def disturbed(self, script: Script, fault: Fault) -> None:
        """The whole conversation, with this fault in this turn."""
        thread = self._begin(script, fault)
        self.report.faults[fault.kind] += 1
        for number, input in enumerate(self.turns):
            if number == self.turn:
                result = self._struck(thread, input, script, fault)
            else:
                result = self._undisturbed(thread, input)
            self._check_end(number, result)
        self._finish(thread)

    def _begin(self, script: Script, fault: Fault | None) -> _Thread:
        self.script, self.fault = script, fault
        self.report.runs += 1
        return _Thread(f"explore-{self.report.runs}")

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
        driver = ScriptedDriver(flow, journal, script=script, choices=choices, fault=fault)
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
            journal.abandon()
            result = self._taken_up(thread, input, before, thread.landed.finished)
            taken_over.append((result, thread.landed.count))

        driver.meanwhile = meanwhile
        with suppress(AuthorityLost, ClaimMissed):
            driver.run()
        self._check_rules(driver)
        ((result, count),) = taken_over
        if count != thread.landed.count:
            self._fail("zombie", "a process that others had taken over from stored something")
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
        return shown

    # -- nets --------------------------------------------------------------------------------------------------------

    def _check_end(self, turn: int, result: Result) -> None:
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
        live = {name: value for name, (_, value) in values_of(state, saved.counters).items() if value is not MISSING}
        seen = {node: counters for node, counters in state.seen.items() if node != INTERRUPT}
        stored_seen = {node: counters for node, counters in saved.seen.items() if node != INTERRUPT}
        for what, had, found in (
            ("values", live, saved.values),
            ("counters", state.counters, saved.counters),
            ("seen", seen, stored_seen),
            ("step", state.step - 1, saved.step),
            ("lineage", state.lineage, saved.lineage),
        ):
            if had != found:
                self._fail("live", f"the run ended with {what} {had!r}, and stored {found!r}")

    def _fail(self, net: str, what: str) -> NoReturn:
        lines = self.driver.trace.tail() if self.driver is not None else ""
        raise ExploreFailure(net, what, self.turn, self.script, self.fault, lines)


def _next(choices: Choices) -> list[int] | None:
    """The picks of the next order: the last choice that can be another one is, those before it stay."""
    picks = list(choices.taken)
    while picks:
        if picks[-1] + 1 < choices.widths[len(picks) - 1]:
            picks[-1] += 1
            return picks
        picks.pop()
    return None


def _end(result: Result) -> End:
    asked = tuple(question.value for question in result.asked)
    return End(result.status, result.values, asked, repr(result.error) if result.error is not None else "")


def _was_done(event: object) -> bool:
    return isinstance(event, Done) and event.task.frame.journal is not None
