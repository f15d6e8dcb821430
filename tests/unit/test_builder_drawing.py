"""The drawing of a compiled graph, found again in what its nodes write."""

from __future__ import annotations

import operator
from typing import Annotated, Any, Literal, TypedDict

import pytest

from pregel.func import entrypoint
from pregel.graph import END, START, StateGraph
from pregel.types import Command


class State(TypedDict):
    items: Annotated[list[str], operator.add]


def nothing(state: State) -> None:
    return None


def commanding(state: State) -> Command[Literal["b", "__end__"]] | None:
    return None


def builder(*names: str) -> StateGraph[Any]:
    graph: StateGraph[Any] = StateGraph(State)
    for name in names:
        graph.add_node(name, nothing)
    return graph


def edges(graph: Any, **options: Any) -> list[tuple[str, str, str]]:
    """Source, target, and how it is drawn: - solid, . dashed, with its label."""
    return [
        (e.source, e.target, ("." if e.conditional else "-") + (e.data or ""))
        for e in graph.compile().get_graph(**options).edges
    ]


@pytest.mark.acceptance("S1-7")
def test_static_edges_are_found_again() -> None:
    graph = builder("a", "b").add_edge(START, "a").add_edge("a", "b").add_edge("b", END)

    assert [(START, "a", "-"), ("a", "b", "-"), ("b", END, "-")] == edges(graph)


@pytest.mark.acceptance("S1-7")
def test_joins_are_found_again() -> None:
    graph = builder("a", "b", "c").add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")

    assert [(START, "a", "-"), (START, "b", "-"), ("a", "c", "-"), ("b", "c", "-"), ("c", END, "-")] == edges(graph)


@pytest.mark.parametrize(
    ("path_map", "expected"),
    [
        ({"big": "b", "small": END}, [("a", END, ".small"), ("a", "b", ".big")]),
        (["b"], [("a", "b", ".")]),
        (None, [("a", END, "."), ("a", "a", "."), ("a", "b", ".")]),
    ],
)
def test_a_conditional_edge_is_dashed_to_all_it_may_lead_to(path_map: Any, expected: Any) -> None:
    graph = builder("a", "b").add_edge(START, "a").add_conditional_edges("a", nothing, path_map)

    assert [(START, "a", "-"), *expected, ("b", END, "-")] == edges(graph)


@pytest.mark.parametrize(
    ("action", "destinations", "expected"),
    [
        (commanding, None, [("a", END, "."), ("a", "b", ".")]),
        (nothing, ("b",), [("a", "b", ".")]),
        (nothing, {"b": "hand over"}, [("a", "b", ".hand over")]),
    ],
)
def test_declared_destinations_of_commands_are_dashed(action: Any, destinations: Any, expected: Any) -> None:
    graph = builder("b").add_node("a", action, destinations=destinations).add_edge(START, "a")

    assert [(START, "a", "-"), *expected, ("b", END, "-")] == edges(graph)


@pytest.mark.parametrize(
    ("loop", "last"),
    [([("a", "a")], "a"), ([("a", "b"), ("b", "a")], "b"), ([("a", "b"), ("b", "c"), ("c", "a")], "c")],
)
def test_a_loop_without_an_end_gets_a_dashed_one(loop: list[tuple[str, str]], last: str) -> None:
    graph = builder(*dict.fromkeys(name for edge in loop for name in edge)).add_edge(START, "a")
    for edge in loop:
        graph.add_edge(*edge)

    assert (last, END, ".") == edges(graph)[-1]


def test_nodes_stand_in_the_order_they_were_defined() -> None:
    graph = builder("z", "a").add_edge(START, "z").add_edge("z", "a").compile().get_graph()

    assert [START, "z", "a", END] == list(graph.nodes)


def test_json_names_what_a_node_runs_and_how() -> None:
    graph = builder().add_node("a", nothing, defer=True, metadata={"k": 1}).add_edge(START, "a")

    shown = graph.compile(interrupt_before=["a"], interrupt_after="*").get_graph().to_json()

    assert {
        "id": "a",
        "type": "runnable",
        "data": {"id": ["pregel", "runnable", "RunnableCallable"], "name": "a"},
        "metadata": {"k": 1, "defer": True, "__interrupt": "before,after"},
    } == shown["nodes"][1]
    assert {"id": END} == shown["nodes"][-1]
    assert {"source": "a", "target": END} == shown["edges"][-1]


def test_json_says_which_edges_are_conditional() -> None:
    graph = builder("a").add_conditional_edges(START, nothing, {"x": "a"}).compile().get_graph()

    assert {"source": START, "target": "a", "data": "x", "conditional": True} == graph.to_json()["edges"][0]


def test_xray_looks_into_subgraphs() -> None:
    inner = builder("x", "y").add_edge(START, "x").add_edge("x", "y").compile()
    graph = builder("b").add_node("a", inner).add_edge(START, "a").add_edge("a", "b")

    drawn = graph.compile().get_graph(xray=True)

    assert [START, "b", "a:x", "a:y", END] == list(drawn.nodes)
    assert {(START, "a:x"), ("a:x", "a:y"), ("a:y", "b"), ("b", END)} == {(e.source, e.target) for e in drawn.edges}


def test_xray_looks_into_a_subgraph_of_one_node() -> None:
    inner = builder("only").add_edge(START, "only").compile()
    graph = builder().add_node("sub", inner).add_edge(START, "sub")

    assert [START, "sub:only", END] == list(graph.compile().get_graph(xray=True).nodes)


def test_xray_looks_into_a_graph_that_a_node_calls() -> None:
    inner = builder("x", "y").add_edge(START, "x").add_edge("x", "y").compile()

    def calls(state: Any) -> Any:
        return inner.invoke(state)

    graph = builder().add_node("a", calls).add_edge(START, "a").compile()

    assert [START, "a:x", "a:y", END] == list(graph.get_graph(xray=True).nodes)


def test_xray_does_not_draw_a_graph_that_calls_itself_in_itself() -> None:
    def calls(state: Any) -> Any:
        return graph.invoke(state)

    graph: Any = builder().add_node("a", calls).add_edge(START, "a").compile()

    assert [START, "a", END] == list(graph.get_graph(xray=True).nodes)


def test_an_entrypoint_is_drawn_between_start_and_end() -> None:
    @entrypoint()
    def flow(n: int) -> int:
        return n

    drawn = flow.get_graph()

    assert [START, "flow", END] == list(drawn.nodes)
    assert [(START, "flow"), ("flow", END)] == [(edge.source, edge.target) for edge in drawn.edges]
    assert "│ flow │" in drawn.draw_ascii()


def test_a_list_in_the_metadata_is_shown_without_brackets() -> None:
    graph = builder().add_node("n", nothing, metadata={"tags": ["a", "b"]}).add_edge(START, "n")

    assert "tags = a, b</em>" in graph.compile().get_graph().draw_mermaid()


def test_xray_stops_at_its_depth() -> None:
    innermost = builder("x", "y").add_edge(START, "x").add_edge("x", "y").compile()
    inner = builder("q").add_node("p", innermost).add_edge(START, "p").add_edge("p", "q").compile()
    graph = builder().add_node("a", inner).add_edge(START, "a").compile()

    assert [START, "a:q", "a:p", END] == list(graph.get_graph(xray=1).nodes)
    assert [START, "a:q", "a:p:x", "a:p:y", END] == list(graph.get_graph(xray=2).nodes)
