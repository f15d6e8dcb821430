"""Recovery of a graph of yours: its process is made to die at each append of its run, and another one goes on.

1. The conversation is held once undisturbed. Then, for each turn and each append of it, a process runs the turn and
   dies right before the append, or right after it: from there on nothing that it does is stored. A second process goes
   on from what the saver has: with ``None``, or with the input again where nothing of it was stored.
2. The real drivers run it, so nodes may block or await, and call what they like. Tasks run one at a time, so that the
   appends are the same each time.
3. The thread must stand at the end of each turn as it did undisturbed, no task whose writes were stored may run again,
   and `effects` must hold the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple, NoReturn, Protocol
from uuid import uuid4

from pregel import flow as runner
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import ThreadRow
from pregel.config import RunnableConfig
from pregel.engine.pregel import Pregel
from pregel.flow import Flow
from pregel.testing.landed import Landed
from pregel.testing.mortal import WHEN, Death, Mortal
from pregel.testing.plain import Plain, shown
from pregel.testing.scripted import Died
from pregel.types import Command, Durability, Interrupt, StateSnapshot

__all__ = ["Recovery", "aassert_recovers", "assert_recovers"]


class Effects(Protocol):
    """What nodes did outside, such as a list that they append to."""

    def clear(self) -> None: ...

    def __iter__(self) -> Iterator[Any]: ...


@dataclass(slots=True)
class Recovery:
    """What was tried. `again`: node -> after how many of the deaths it ran again, because it had not been recorded."""

    deaths: int = 0
    again: Counter[str] = field(default_factory=Counter)


def assert_recovers(
    graph: Pregel | Callable[[], Pregel],
    input: Any,
    *turns: Any,
    config: RunnableConfig | None = None,
    durability: Durability = "sync",
    saver: JournalSaver | None = None,
    effects: Effects | None = None,
    view: Callable[[Any], Any] | None = None,
) -> Recovery:
    """What was tried, when the graph recovers from a death at every append of its run; else an AssertionError that
    names the append.

    - `graph`: compiled, or a function that makes it, which is called for each process: nothing in memory survives one.
    - `turns`: the inputs that follow on the same thread, such as ``Command(resume=...)``, or functions that make one
      from the questions of the turn before.
    - `effects`: a list or set that tells what nodes did outside. It is emptied before each conversation, and must
      hold the same after each of them, in any order.
    - `config`: tasks run one at a time, so that each is an append of its own; ``max_concurrency`` in it says otherwise.
    - `view`: what of the values is compared, for a graph some of whose values differ from run to run. Ids of messages
      and of tool calls may differ anyhow.
    - `saver` (default: the graph's own where it has authority, else one in memory) gets a new thread for each, and
      loses it again; the thread of a failure stays, and the error names it.

    What the graph raises undisturbed is raised.
    """
    told = _Told(graph, [input, *turns], config or {}, durability, saver, effects, view)
    return runner.run(told.all(), lambda ask: ask.now())


async def aassert_recovers(
    graph: Pregel | Callable[[], Pregel],
    input: Any,
    *turns: Any,
    config: RunnableConfig | None = None,
    durability: Durability = "sync",
    saver: JournalSaver | None = None,
    effects: Effects | None = None,
    view: Callable[[Any], Any] | None = None,
) -> Recovery:
    """Async twin of `assert_recovers`: the graph is awaited."""
    told = _Told(graph, [input, *turns], config or {}, durability, saver, effects, view)
    return await runner.arun(told.all(), lambda ask: ask.later())


class _End(NamedTuple):
    """How a thread stands after a turn, apart from ids."""

    values: Any
    next: tuple[str, ...]
    questions: tuple[Any, ...]


class _Played:
    """What a process showed of its tasks: all that it came to, those that ran to an end, and what it raised."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.ended: set[str] = set()
        self.error: Exception | None = None

    def hear(self, chunk: Any) -> None:
        _, shown = chunk
        self.names[shown["id"]] = shown["name"]
        if "input" not in shown:
            self.ended.add(shown["id"])


class _Told:
    """A conversation that is told again and again, each time with another death in it."""

    def __init__(
        self,
        graph: Pregel | Callable[[], Pregel],
        turns: Sequence[Any],
        config: RunnableConfig,
        durability: Durability,
        saver: JournalSaver | None,
        effects: Effects | None,
        view: Callable[[Any], Any] | None,
    ) -> None:
        self.make: Callable[[], Pregel] = partial(_same, graph) if isinstance(graph, Pregel) else graph
        own = self.make().checkpointer
        self.saver = saver or (own if isinstance(own, JournalSaver) else InMemorySaver())
        self.turns, self.config, self.effects, self.view = turns, config, effects, view
        self.durability: Durability = durability
        self.ends: list[_End] = []
        self.did: Counter[str] = Counter()
        self.death: Death | None = None
        self.stopped = ""  # what the append holds at which the process died
        self.thread = ""
        self.recovery = Recovery()

    def all(self) -> Flow[Recovery]:
        """The conversation undisturbed, then with each death that there is."""
        yield from self.tell(None)
        for turn in range(len(self.turns)):
            for when in WHEN:
                for nth in count(1):
                    if not (yield from self.tell(Death(turn, when, nth))):
                        break  # the turn has no more appends than that
                    self.recovery.deaths += 1
        return self.recovery

    def tell(self, death: Death | None) -> Flow[bool]:
        """The conversation on a thread of its own; whether its process died."""
        self.death, self.stopped, self.thread = death, "", f"recovers-{uuid4().hex}"
        landed, asked = Landed(), tuple[Interrupt, ...]()
        if self.effects is not None:
            self.effects.clear()
        for number, turn in enumerate(self.turns):
            given = turn(asked) if callable(turn) else turn
            dies = death is not None and death.turn == number
            played = yield from self.play(landed, given, death if dies else None)
            if dies and not self.stopped:
                break
            if played.error is not None:
                self._fail(f"turn {number} raised {played.error!r}", played.error)
            state: StateSnapshot = yield self._state()
            asked = state.interrupts
            self._check(number, self._end(state))
        if landed.broken:
            self._fail(landed.broken)
        if self.stopped or death is None:
            self._check_effects()
        yield _Ask(partial(self.saver.delete_thread, self.thread), partial(self.saver.adelete_thread, self.thread))
        return bool(self.stopped)

    def play(self, landed: Landed, given: Any, death: Death | None) -> Flow[_Played]:
        """One turn; where its process dies, as another one goes on with it."""
        before: ThreadRow = yield self._row()
        mortal = Mortal(self.saver, landed, death)
        played: _Played = yield self._played(mortal, given)
        if not mortal.stopped:
            return played
        self.stopped, stored, dead = mortal.stopped, landed.finished, played
        now: ThreadRow = yield self._row()
        answered = isinstance(given, Command) and now.seq > before.seq
        begun = answered or now.last_id > before.last_id
        played = yield self._played(Mortal(self.saver, landed), None if begun else given)
        for task in sorted(played.ended & stored):
            self._fail(f"node {played.names[task]!r} had finished and ran again")
        self.recovery.again.update({name for task, name in dead.names.items() if not begun or task in played.ended})
        return played

    # -- one process -------------------------------------------------------------------------------------------------

    def _place(self) -> RunnableConfig:
        configurable = {**self.config.get("configurable", {}), "thread_id": self.thread}
        return {"max_concurrency": 1, **self.config, "configurable": configurable}

    def _played(self, saver: JournalSaver, given: Any) -> _Ask:
        app = self.make().copy({"checkpointer": saver})
        options: Any = {"stream_mode": "tasks", "subgraphs": True, "durability": self.durability}
        played = _Played()

        def now() -> _Played:
            try:
                for chunk in app.stream(given, self._place(), **options):
                    played.hear(chunk)
            except Died:
                pass  # the saver tells
            except Exception as error:
                played.error = error
            return played

        async def later() -> _Played:
            try:
                async for chunk in app.astream(given, self._place(), **options):
                    played.hear(chunk)
            except Died:
                pass  # the saver tells
            except Exception as error:
                played.error = error
            return played

        return _Ask(now, later)

    def _row(self) -> _Ask:
        async def later() -> ThreadRow:
            return (await self.saver.aload(self.thread, [])).thread

        return _Ask(lambda: self.saver.load(self.thread, []).thread, later)

    def _state(self) -> _Ask:
        app = self.make().copy({"checkpointer": self.saver})
        return _Ask(partial(app.get_state, self._place()), partial(app.aget_state, self._place()))

    # -- what must hold ----------------------------------------------------------------------------------------------

    def _end(self, state: StateSnapshot) -> _End:
        plain = Plain()
        values = plain(state.values if self.view is None else self.view(state.values))
        return _End(values, state.next, tuple(plain(question.value) for question in state.interrupts))

    def _check(self, turn: int, end: _End) -> None:
        if self.death is None:
            self.ends.append(end)
            return
        for what, had, expected in zip(_End._fields, end, self.ends[turn], strict=True):
            if had != expected:
                self._fail(f"turn {turn} ended with {what} {shown(had, expected)}")

    def _check_effects(self) -> None:
        did = Counter(map(repr, self.effects or ()))
        if self.death is None:
            self.did = did
        elif did != self.did:
            more, less = [*(did - self.did).elements()], [*(self.did - did).elements()]
            self._fail(f"the effects differ: {', '.join(more) or 'nothing'} more, {', '.join(less) or 'nothing'} less")

    def _fail(self, what: str, error: Exception | None = None) -> NoReturn:
        if self.death is None:
            raise error or AssertionError(f"Undisturbed: {what}.")
        turn, when, nth = self.death
        where = f"stopped right {when} append {nth} of turn {turn} ({self.stopped}), and taken up again"
        raise AssertionError(f"{what[0].upper()}{what[1:]}.\n  {where}\n  thread {self.thread}") from error


class _Ask(NamedTuple):
    """Something to be done, blocking or awaited."""

    now: Callable[[], Any]
    later: Callable[[], Awaitable[Any]]


def _same(graph: Pregel) -> Pregel:
    return graph
