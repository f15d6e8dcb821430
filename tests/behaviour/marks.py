"""Small graphs whose nodes leave their name behind, so that a list tells who ran and in which order."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.graph import START, StateGraph

Saver = BaseCheckpointSaver[Any]
Thread = Callable[[str], Any]
Node = Any  # a function of the state, or a compiled graph


class State(TypedDict, total=False):
    a: Annotated[list[str], operator.add]
    b: str


def mark(name: str, calls: list[str] | None = None) -> Node:
    """A node that adds its name to `a`."""

    def node(state: Any) -> dict[str, Any]:
        if calls is not None:
            calls.append(name)
        return {"a": [name]}

    return node


def failing_once(name: str, error: BaseException, calls: list[str] | None = None) -> Node:
    """A node that raises the first time and marks the second time."""
    trouble = [error]

    def node(state: Any) -> dict[str, Any]:
        if calls is not None:
            calls.append(name)
        if trouble:
            raise trouble.pop()
        return {"a": [name]}

    return node


def chain(*names: str, **nodes: Node) -> StateGraph[Any]:
    """These nodes one after the other; each marks, or is the one given under its name."""
    graph = StateGraph(State)
    before = START
    for name in names:
        node: Node = nodes.get(name) or mark(name)
        graph.add_node(name, node)
        graph.add_edge(before, name)
        before = name
    return graph


def parallel(*names: str, **nodes: Node) -> StateGraph[Any]:
    """These nodes in one superstep."""
    graph = StateGraph(State)
    for name in names:
        node: Node = nodes.get(name) or mark(name)
        graph.add_node(name, node)
        graph.add_edge(START, name)
    return graph
