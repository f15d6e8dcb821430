"""What a node can show to the outside: a key that names its work, and a number that rises with each owner."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, RetryPolicy, interrupt

from .conftest import Runner
from .marks import Saver, Thread
from .test_authority import has_authority, row_of, take


class Bill(TypedDict, total=False):
    paid: Annotated[list[str], operator.add]
    cost: Annotated[int, operator.add]


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
