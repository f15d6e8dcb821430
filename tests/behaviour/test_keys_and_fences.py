"""What a node can show to the outside: a key that names its work, and a number that rises with each owner."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, RetryPolicy, Send, interrupt

from .conftest import Runner
from .marks import Saver, Thread
from .test_authority import has_authority, row_of, take


class Bill(TypedDict, total=False):
    paid: Annotated[list[str], operator.add]
    cost: Annotated[int, operator.add]


class Paid(TypedDict):
    paid: Annotated[list[str], operator.add]


class Shop:
    """A graph that pays, asks and ships, and remembers the keys and fences that its nodes were given."""

    def __init__(self, *trouble: BaseException) -> None:
        self.trouble = list(trouble)
        self.keys: list[str] = []
        self.ships: list[str] = []
        self.fences: list[int] = []
        self.charges: list[str] = []

    def pay(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        self.keys.append(runtime.idempotency_key)
        self.fences.append(runtime.fence)
        if self.trouble:
            raise self.trouble.pop(0)
        self.charges.append(self.keys[-1])
        return {"paid": ["paid"], "cost": 5}

    def ask(self, state: Any) -> dict[str, Any]:
        return {"paid": [interrupt("ship it?")]}

    def ship(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        self.ships += [runtime.idempotency_key, runtime.idempotency_key]
        return {"paid": ["shipped"]}

    def compile(self, saver: Saver, **options: Any) -> Any:
        graph = StateGraph(Bill)
        graph.add_node("pay", self.pay, retry_policy=options.pop("retry_policy", None))
        graph.add_node("ask", self.ask).add_node("ship", self.ship)
        graph.add_edge(START, "pay").add_edge("pay", "ask").add_edge("ask", "ship")
        return graph.compile(checkpointer=saver, **options)


@pytest.mark.acceptance("S4-16")
def test_a_retry_offers_the_same_key(run: Runner, saver: Saver, thread: Thread) -> None:
    shop = Shop(ConnectionError("once"), ConnectionError("twice"))
    app = shop.compile(saver, retry_policy=RetryPolicy(initial_interval=0.0, jitter=False))

    run.invoke(app, {}, thread("1"))

    assert len(shop.keys) == 3
    assert len(set(shop.keys)) == 1


@pytest.mark.acceptance("S4-14")
def test_a_takeover_offers_the_same_key_under_a_higher_fence(run: Runner, saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no authority there")
    shop = Shop(ValueError("the process died here"))
    app = shop.compile(saver)
    with pytest.raises(ValueError, match="died here"):
        run.invoke(app, {}, thread("1"))
    take(saver, ttl=-1.0)  # another process that went on with it, and was lost

    run.invoke(app, None, thread("1"))

    assert shop.keys[0] == shop.keys[1]
    assert shop.fences[0] < shop.fences[1]
    assert shop.fences[1] == row_of(saver).epoch


def test_an_answer_changes_no_key_and_each_work_has_its_own(run: Runner, saver: Saver, thread: Thread) -> None:
    shop = Shop()
    app = shop.compile(saver)
    run.invoke(app, {}, thread("1"))
    run.invoke(app, None, thread("1"))
    run.invoke(app, Command(resume="yes"), thread("1"))
    run.invoke(app, {}, thread("2"))

    assert len({*shop.keys, *shop.ships}) == 4
    assert len(shop.keys) == 2


def test_a_fork_offers_a_new_key(run: Runner, saver: Saver, thread: Thread) -> None:
    shop = Shop()
    app = shop.compile(saver)
    run.invoke(app, {}, thread("1"))
    before_pay = next(entry for entry in run.history(app, thread("1")) if entry.next == ("pay",))

    run.invoke(app, None, before_pay.config)

    assert len(shop.keys) == len(set(shop.keys)) == 2


class Payments:
    """A graph that sends each of its bills to a graph of one node, round by round; who paid, with which key."""

    def __init__(self, **options: Any) -> None:
        self.keys: list[tuple[str, str]] = []
        self.fails = 0
        paying = StateGraph(Bill, output_schema=Paid)
        paying.add_node("pay", self.pay).add_edge(START, "pay")
        paying.add_conditional_edges(
            "pay", lambda state: "pay" if len(state["paid"]) < 3 else "__end__", ["pay", "__end__"]
        )
        self.graph = StateGraph(Bill)
        self.graph.add_node("each", paying.compile(**options))
        self.graph.add_node("again", lambda state: {"cost": 1})
        self.graph.add_conditional_edges(START, self.send, ["each"]).add_edge("each", "again")
        self.graph.add_conditional_edges("again", lambda state: self.send(state) if state["cost"] < 2 else [], ["each"])

    def send(self, state: Any) -> list[Send]:
        return [Send("each", {"paid": [name]}) for name in ("a", "b")]

    def pay(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        self.keys.append((state["paid"][0], runtime.idempotency_key))
        if self.fails and state["paid"][0] == "b":
            self.fails -= 1
            raise ValueError("died here")
        return {"paid": ["paid"]}


@pytest.mark.parametrize("options", [{}, {"checkpointer": False}], ids=["stored", "not stored"])
def test_siblings_that_run_the_same_subgraph_have_keys_of_their_own(
    run: Runner, saver: Saver, thread: Thread, options: dict[str, Any]
) -> None:
    """One key for two payments would have the second one refused as a repetition."""
    shop = Payments(**options)

    run.invoke(shop.graph.compile(saver), {"cost": 0}, thread("1"))

    assert len(shop.keys) == 2 * 2 * 2
    assert len(set(shop.keys)) == len({key for _, key in shop.keys}) == 8


def test_without_a_saver_each_step_of_a_task_has_a_key_of_its_own(run: Runner, thread: Thread) -> None:
    shop = Payments()

    run.invoke(shop.graph.compile(), {"cost": 0}, thread("1"))

    assert len({key for _, key in shop.keys}) == len(shop.keys) == 8


@pytest.mark.acceptance("S4-14")
@pytest.mark.parametrize("options", [{}, {"checkpointer": False}], ids=["stored", "not stored"])
def test_a_subgraph_that_runs_again_offers_the_same_keys(
    run: Runner, saver: Saver, thread: Thread, options: dict[str, Any]
) -> None:
    shop = Payments(**options)
    shop.fails = 1
    app = shop.graph.compile(saver)
    with pytest.raises(ValueError, match="died here"):
        run.invoke(app, {"cost": 0}, thread("1"))

    run.invoke(app, None, thread("1"))

    assert len({key for _, key in shop.keys}) == 8


@pytest.mark.acceptance("S6-17")
def test_what_is_recorded_is_neither_paid_nor_counted_again(run: Runner, saver: Saver, thread: Thread) -> None:
    shop = Shop()
    app = shop.compile(saver)
    run.invoke(app, {}, thread("1"))
    for _ in range(3):
        run.invoke(app, None, thread("1"))

    result = run.invoke(app, Command(resume="yes"), thread("1"))

    assert len(shop.charges) == 1
    assert (result["cost"], result["paid"]) == (5, ["paid", "yes", "shipped"])
