"""`assert_recovers`: what holds across a death at each append of a run, and what it catches."""

from __future__ import annotations

import asyncio
import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import pytest

from pregel.agents import ScriptedModel, create_agent, tool
from pregel.agents.models import call_tool
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Load, Opened
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.testing import Recovery, aassert_recovers, assert_recovers
from pregel.types import Command, interrupt

from .conftest import Runner
from .marks import Saver, chain, mark, parallel
from .test_authority import has_authority


def recovers(run: Runner, *args: Any, **options: Any) -> Recovery:
    """What the helper says, through the verbs of one driver."""
    if run.name == "sync":
        return assert_recovers(*args, **options)
    return asyncio.run(aassert_recovers(*args, **options))


def asks(state: Any) -> dict[str, Any]:
    return {"a": [interrupt("go on?")]}


def trip() -> StateGraph[Any]:
    """Three bookings side by side, a review in a subgraph, a question, a confirmation."""
    graph = parallel("flight", "hotel", "car")
    graph.add_node("review", chain("read", "judge").compile()).add_edge(["flight", "hotel", "car"], "review")
    graph.add_node("ask", asks).add_edge("review", "ask")
    return graph.add_node("confirm", mark("confirmed")).add_edge("ask", "confirm")


@pytest.mark.acceptance("S5-7")
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_graph_recovers_from_a_death_at_each_append(run: Runner, saver: Saver, durability: str) -> None:
    if not has_authority(saver):
        pytest.skip("this saver takes no appends")

    recovery = recovers(
        run, trip().compile(checkpointer=saver), {"a": []}, Command(resume="yes"), durability=durability
    )

    assert recovery.deaths >= (18 if durability == "sync" else 8)
    assert {"flight", "hotel", "car", "ask"} <= set(recovery.again)
    left: Any = saver.threads() if run.name == "sync" else asyncio.run(saver.athreads())  # type: ignore[attr-defined]
    assert [] == left


class Bill(TypedDict, total=False):
    receipts: Annotated[list[str], operator.add]


class Provider:
    """Takes money: once for each key, or each time where it gets none."""

    def __init__(self, *, keyed: bool) -> None:
        self.keyed = keyed
        self.keys: set[str] = set()
        self.charges: list[str] = []

    def charge(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        key = runtime.idempotency_key  # each time that it is read is other work
        if not self.keyed or key not in self.keys:
            self.keys.add(key)
            self.charges.append("ten")
        return {"receipts": ["ten"]}

    def compile(self) -> Any:
        graph = StateGraph(Bill).add_node("charge", self.charge).add_node("ship", lambda state: {"receipts": ["sent"]})
        return graph.add_edge(START, "charge").add_edge("charge", "ship").compile(checkpointer=InMemorySaver())


@pytest.mark.acceptance("S5-7")
def test_an_effect_that_happens_twice_is_found_and_the_append_is_named(run: Runner) -> None:
    shop = Provider(keyed=False)

    with pytest.raises(AssertionError, match="'ten' more, nothing less") as found:
        recovers(run, shop.compile(), {}, effects=shop.charges)

    assert "right before append 2 of turn 0 (what charge wrote" in str(found.value)


def test_an_effect_under_a_key_happens_once(run: Runner) -> None:
    shop = Provider(keyed=True)

    recovery = recovers(run, shop.compile(), {}, effects=shop.charges)

    assert 1 == recovery.again["charge"]


class Forgetful(InMemorySaver):
    """Does not give back what finished tasks of an open step wrote."""

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        opened = super().load(thread, loads, names)
        for saved in opened.saved:
            if saved is not None:
                saved.writes = []
        return opened


@pytest.mark.acceptance("S5-7")
def test_a_finished_node_that_runs_again_is_found(run: Runner) -> None:
    app = parallel("x", "y").add_node("ask", asks).add_edge(START, "ask").compile(checkpointer=Forgetful())

    with pytest.raises(AssertionError, match=r"Node '[xy]' had finished and ran again"):
        recovers(run, app, {"a": []})


@pytest.mark.acceptance("S5-7")
def test_what_lives_in_memory_only_is_missed_after_a_death(run: Runner) -> None:
    def make() -> Any:
        learned: list[str] = []

        def learn(state: Any) -> dict[str, Any]:
            learned.append("fact")
            return {"a": ["learned"]}

        return chain("learn", "tell", learn=learn, tell=lambda state: {"a": learned}).compile()

    with pytest.raises(
        AssertionError, match=r"values \{'a': \['learned'\]\} instead of \{'a': \['learned', 'fact'\]\}"
    ):
        recovers(run, make, {"a": []})


def test_code_that_goes_another_way_is_found(run: Runner) -> None:
    number = itertools.count()

    @task
    def work(given: int) -> int:
        return 1

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: str) -> int:
        return work(next(number)).result() + work(0).result()

    with pytest.raises(AssertionError, match="ReplayMismatchError"):
        recovers(run, flow, "go")


def test_ids_of_messages_may_differ_and_other_values_when_they_are_not_viewed(run: Runner) -> None:
    @tool
    def double(n: int) -> int:
        """Double a number."""
        return n * 2

    model = ScriptedModel([call_tool("double", {"n": 21}), "It is 42."], by_turn=True)
    agent = create_agent(model, [double], checkpointer=InMemorySaver())
    assert recovers(run, agent, {"messages": "What is twice 21?"}).again.keys() == {"model", "tools"}

    app = chain("draw", draw=lambda state: {"a": [str(uuid4())]}).compile()
    assert recovers(run, app, {"a": []}, view=lambda values: len(values["a"])).deaths == 4
    with pytest.raises(AssertionError, match="Turn 0 ended with values"):
        recovers(run, app, {"a": []})


def test_a_turn_may_be_made_from_the_questions_before_it(run: Runner) -> None:
    app = chain("ask", "b", ask=asks).compile()

    recovery = recovers(run, app, {"a": []}, lambda asked: Command(resume={asked[0].id: "yes"}))

    assert recovery.again["ask"] > 1


def test_what_a_graph_raises_undisturbed_is_raised(run: Runner) -> None:
    def broken(state: Any) -> Any:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        recovers(run, chain("n", n=broken).compile(), {"a": []})
