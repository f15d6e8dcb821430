"""Explore: one conversation with a graph in every order of completion, with every death at every effect of it.

After each death the thread is taken up again from its saver by a fresh process, and the nets are:

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
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.config import RunnableConfig
from pregel.engine.pregel import Pregel
from pregel.testing.conversation import Conversation, End, ExploreFailure
from pregel.testing.scripted import Choices, Effect, Fault, FaultKind, Script
from pregel.testing.trace import What
from pregel.types import Durability

__all__ = ["End", "ExploreFailure", "Report", "crash_matrix", "explore"]

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
OTHERWISE: tuple[FaultKind, ...] = ("crash", "cancel", "stubborn")  # tried with the habits of other drivers too


@dataclass(slots=True)
class Report:
    """What was explored. `exhaustive` is False when there were more orders than were asked for.

    `ends` is how each turn ended, every time: assert it, since a program that always fails alike is caught by no net.
    """

    ends: list[End] = field(default_factory=list)
    orders: int = 0
    exhaustive: bool = True
    runs: int = 0
    effects: int = 0  # of the longest undisturbed run
    faults: Counter[FaultKind] = field(default_factory=Counter)

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in self.faults.items())
        return f"{self.runs} runs, {self.orders} orders, up to {self.effects} effects; {kinds}"


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

    `turns` are the inputs that follow the first one on the same thread, such as ``Command(resume=...)``, or functions
    that make one from the questions of the turn before; deaths are tried in each turn. Where there are more than
    `orders` completion orders, that many are drawn, the same ones each time.

    The graph's nodes are called blocking. Each turn must end the same whatever the order, and none at the recursion
    limit, since a resume starts a new allowance. `saver` (default: the graph's own, else one in memory) gets a new
    thread for each run, and loses it again.
    """
    conversation = Conversation(graph, [input, *turns], config or {}, durability, saver)
    report = Report(conversation.ends)
    for turn in range(len(conversation.turns)):
        conversation.turn = turn
        found, whole = _orders(conversation, orders)
        report.orders += len(found)
        report.exhaustive = report.exhaustive and whole
        for script, effects in found.items():
            report.effects = max(report.effects, len(effects))
            _try(conversation, script, _faults(effects, faults), report)
        first, effects = next(iter(found.items()))
        for script in _other_ways(first, effects, durability) if orders > 1 else ():
            effects = conversation.whole(script, Choices(script.picks))
            _try(conversation, script, _faults(effects, [kind for kind in faults if kind in OTHERWISE]), report)
    report.runs = conversation.runs
    return report


def crash_matrix(graph: Pregel, input: Any, *turns: Any, **options: Any) -> Report:
    """Every death at every effect, in the one order in which tasks end as they were started; see `explore`."""
    return explore(graph, input, *turns, **{"orders": 1, **options})


def _try(conversation: Conversation, script: Script, faults: Iterator[Fault], report: Report) -> None:
    for fault in faults:
        conversation.disturbed(script, fault)
        report.faults[fault.kind] += 1


def _faults(effects: Sequence[Effect], kinds: Sequence[FaultKind]) -> Iterator[Fault]:
    """Each kind of fault at each effect where it makes a difference."""
    for at, effect in enumerate(effects):
        for kind in kinds:
            if effect.what in AT[kind] and (kind != "stubborn" or effect.out):
                yield Fault(kind, at)
    if "crash" in kinds:
        yield Fault("crash", len(effects))


# -- orders ------------------------------------------------------------------------------------------------------------


def _orders(conversation: Conversation, limit: int) -> tuple[dict[Script, list[Effect]], bool]:
    """The orders of this turn, each with the effects of its undisturbed run; whether these are all there are.

    Each next one is found by changing the last choice that can still be another one.
    """
    found: dict[Script, list[Effect]] = {}
    picks: list[int] | None = []
    while picks is not None:
        if len(found) >= limit:
            return (found if limit == 1 else _drawn(conversation, limit)), False
        choices = Choices(picks)
        effects = conversation.whole(Script(tuple(picks)), choices)
        found[Script(tuple(choices.taken))] = effects
        picks = _next(choices)
    return found, True


def _drawn(conversation: Conversation, limit: int) -> dict[Script, list[Effect]]:
    """Some of too many orders, the plain one first."""
    chance = Random(limit)
    found: dict[Script, list[Effect]] = {}
    for number in range(2 * limit):
        if len(found) < limit:
            choices = Choices((), chance if number else None)
            effects = conversation.whole(Script(), choices)
            found.setdefault(Script(tuple(choices.taken)), effects)
    return found


def _next(choices: Choices) -> list[int] | None:
    """The picks of the next order: the last choice that can be another one is, those before it stay."""
    picks = list(choices.taken)
    while picks:
        if picks[-1] + 1 < choices.widths[len(picks) - 1]:
            picks[-1] += 1
            return picks
        picks.pop()
    return None


def _other_ways(script: Script, effects: Sequence[Effect], durability: Durability) -> Iterator[Script]:
    """The same order as drivers of other habits perform it."""
    yield replace(script, inline=True)
    yield replace(script, together=True)
    if any(effect.what == "cancel" for effect in effects):
        yield replace(script, stubborn=True)
    if durability == "async":
        yield replace(script, early=True)
