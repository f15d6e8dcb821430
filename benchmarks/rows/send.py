"""What a Send task costs, blocking on threads and awaited, and whether that grows with their number."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

from benchmarks.graphs import python
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.rows.flat import ratio
from benchmarks.sides import FLOOR, OURS
from benchmarks.timing import Repetition, timed


class Items(TypedDict):
    items: list[int]
    out: Annotated[list[int], operator.add]


def work(item: int) -> dict[str, list[int]]:
    return {"out": [item * 2]}


async def awork(item: int) -> dict[str, list[int]]:
    return {"out": [item * 2]}


def fan(side: SimpleNamespace, node: Any, saver: Any = None) -> Any:
    """A compiled graph that sends each item to a node."""
    graph = side.StateGraph(Items)
    graph.add_node("work", node)
    graph.add_conditional_edges(
        side.START, lambda state: [side.Send("work", item) for item in state["items"]], ["work"]
    )
    return graph.compile(saver)


def blocking(side: SimpleNamespace, tasks: int) -> Repetition:
    """A run with so many Sends on threads."""
    graph = fan(side, work)
    return timed(lambda: partial(graph.invoke, {"items": list(range(tasks))}), tasks)


def awaited(side: SimpleNamespace, tasks: int) -> Repetition:
    """A run with so many Sends on an event loop."""
    graph = fan(side, awork)

    def prepare() -> Callable[[], Any]:
        return lambda: asyncio.run(graph.ainvoke({"items": list(range(tasks))}))

    return timed(prepare, tasks)


@measured(Row("send.async", "Send task, awaited, 1,000 of them (check: 300)"))
def on_a_loop(bench: Bench) -> Sides:
    return {**bench.each(lambda side: awaited(side, bench.size(1_000, 300))), FLOOR: python()}


@measured(Row("send.threads", "Send task, threads, 1,000 of them (check: 300)"))
def on_threads(bench: Bench) -> Sides:
    return {**bench.each(lambda side: blocking(side, bench.size(1_000, 300))), FLOOR: python()}


@measured(Row("send.growth", "Send task, awaited: one of 10,000 (check: 5,000) against one of 1,000", "x"))
def growth(bench: Bench) -> Sides:
    return bench.each(lambda side: ratio(awaited(side, 1_000), awaited(side, bench.size(10_000, 5_000))))


@measured(
    Row("send.growth_100k", "Send task, awaited: one of 100,000 against one of 1,000 (ours alone)", "x"),
    full=True,
    rounds=1,
)
def far_growth(bench: Bench) -> Sides:
    return {OURS: ratio(awaited(bench.ours, 1_000), awaited(bench.ours, 100_000))}
