"""What a task that is a subgraph costs, in a fan-out of them."""

from __future__ import annotations

import operator
from functools import partial
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

from benchmarks.databases import bare_sqlite, commits, sqlite
from benchmarks.graphs import new_thread, python
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.rows.send import Items
from benchmarks.sides import FLOOR
from benchmarks.timing import Repetition, timed

TASKS = 50


class Doubled(TypedDict):
    out: Annotated[list[int], operator.add]


def child(side: SimpleNamespace) -> Any:
    """A subgraph of one node."""
    graph = side.StateGraph(Items, output_schema=Doubled)
    graph.add_node("double", lambda state: {"out": [item * 2 for item in state["items"]]})
    graph.add_edge(side.START, "double")
    return graph.compile()


def family(side: SimpleNamespace, saver: Any = None) -> Repetition:
    """A run that sends each of its items to the subgraph."""
    graph = side.StateGraph(Items)
    graph.add_node("child", child(side))
    sends = [side.Send("child", {"items": [item], "out": []}) for item in range(TASKS)]
    graph.add_conditional_edges(side.START, lambda state: sends, ["child"])
    app = graph.compile(saver)
    arguments = {} if saver is None else {"durability": "async"}
    return timed(lambda: partial(app.invoke, {"items": []}, new_thread(), **arguments), TASKS)


@measured(Row("subgraphs.none", "fan-out to a subgraph of one node, per task, no saver"))
def none(bench: Bench) -> Sides:
    return {**bench.each(family), FLOOR: python()}


@measured(Row("subgraphs.memory", "fan-out to a subgraph of one node, per task, in-memory saver"))
def memory(bench: Bench) -> Sides:
    return {**bench.each(lambda side: family(side, side.InMemorySaver())), FLOOR: python()}


@measured(Row("subgraphs.sqlite", "fan-out to a subgraph of one node, per task, SQLite NORMAL, async"))
def on_sqlite(bench: Bench) -> Sides:
    sides = bench.each(lambda side: family(side, bench.stack.enter_context(sqlite(side)).saver))
    return {**sides, FLOOR: timed(partial(commits, bench.stack.enter_context(bare_sqlite()), 100), 100)}
