"""The programs that are explored. Every node is a function of what it reads, so that a run can be repeated."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from pregel.constants import START
from pregel.engine.pregel import Pregel
from pregel.graph.state import StateGraph
from pregel.types import Send

Node = Callable[[dict[str, Any]], Any]


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    last: str
    item: int


class Log(TypedDict):
    log: Annotated[list[str], operator.add]


def note(name: str) -> Node:
    """A node that notes its name and how much was noted before it."""
    return lambda state: {"log": [f"{name}/{len(state['log'])}"]}


def flat(width: int = 4) -> Pregel:
    """Three steps: one node, a fan-out to `width`, and a join."""
    builder = StateGraph(State)
    builder.add_node("first", lambda state: {"log": ["first"], "last": "first"})
    builder.add_node("join", lambda state: {"log": [f"join of {len(state['log'])}"], "last": state["last"] + "!"})
    builder.add_edge(START, "first")
    names = [f"n{number}" for number in range(width)]
    for name in names:
        builder.add_node(name, silent if name == "n1" else note(name))
        builder.add_edge("first", name)
    builder.add_edge(names, "join")
    return builder.compile()


def silent(state: dict[str, Any]) -> None:
    """A node that writes nothing; that it ran must be known all the same."""


def deep() -> Pregel:
    """Two Sends to a node with a subgraph in it, in which a node runs beside a subgraph of two steps."""
    inner = StateGraph(State)
    inner.add_node("x", note("x"))
    inner.add_node("y", silent)
    inner.add_edge(START, "x")
    inner.add_edge("x", "y")
    middle = StateGraph(State, output_schema=Log)
    middle.add_node("p", lambda state: {"last": f"p{state['item']}"})
    middle.add_node("inner", inner.compile())
    middle.add_node("q", lambda state: {"log": [f"q{state['item']} after {state['last']}"]})
    middle.add_edge(START, "p")
    middle.add_edge(START, "inner")
    middle.add_edge(["p", "inner"], "q")
    outer = StateGraph(State)
    outer.add_node("route", lambda state: {"log": ["route"]})
    outer.add_node("sub", middle.compile())
    outer.add_node("after", note("after"))
    outer.add_edge(START, "route")
    outer.add_conditional_edges("route", lambda state: [Send("sub", {"log": [], "item": n}) for n in (1, 2)], ["sub"])
    outer.add_edge("sub", "after")
    return outer.compile()
