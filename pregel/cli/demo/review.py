"""Two files reviewed one after the other, as a graph. The reviewer is part of the provider, which counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from pregel.cli.demo.desk import call
from pregel.graph import END, START, StateGraph

Call = Callable[..., dict[str, Any]]


class SourceFile(TypedDict):
    """A file to review: what the review calls it, and where it is."""

    name: str
    path: str


class Reviews(TypedDict, total=False):
    files: list[SourceFile]
    first_review: str
    second_review: str


def build_review(call: Call) -> StateGraph[Reviews]:
    """The graph, whose nodes reach the reviewer through `call`. Nothing is called before it runs."""
    graph = StateGraph(Reviews)
    graph.add_node("review_first", lambda state: {"first_review": _review(call, state["files"][0])})
    graph.add_node("review_second", lambda state: {"second_review": _review(call, state["files"][1])})
    graph.add_edge(START, "review_first")
    graph.add_edge("review_first", "review_second")
    graph.add_edge("review_second", END)
    return graph


def _review(call: Call, file: SourceFile) -> str:
    return str(call("reviewer", **file)["review"])


review = build_review(call)
