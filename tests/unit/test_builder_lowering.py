"""What `compile` makes of nodes and edges: channels, triggers and writers, and no edge at all."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from pregel.channels import (
    BinaryOperatorAggregate,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
)
from pregel.engine.node import ConstantWrite, PregelNode
from pregel.graph import END, START, StateGraph
from pregel.graph.branch import BranchWriter
from pregel.graph.compiled import CompiledStateGraph
from pregel.graph.lower import lower
from pregel.graph.write import StateWriter
from pregel.types import RetryPolicy, TimeoutPolicy

Graph = CompiledStateGraph[Any, Any, Any, Any]


class State(TypedDict):
    total: int
    visited: Annotated[list[str], operator.add]


class Private(TypedDict):
    secret: str


class Model(BaseModel):
    total: int


@dataclass
class Data:
    total: int


def nothing(state: State) -> None:
    return None


def from_secret(state: Private) -> None:
    return None


def from_model(state: Model) -> None:
    return None


def from_data(state: Data) -> None:
    return None


def route(state: State) -> str:
    return "b"


def builder(*names: str, **options: Any) -> StateGraph[Any]:
    graph: StateGraph[Any] = StateGraph(State)
    for name in names:
        graph.add_node(name, nothing, **options)
    return graph


def chain() -> Graph:
    return builder("a", "b").add_edge(START, "a").add_edge("a", "b").add_edge("b", END).compile()


def writes_of(node: PregelNode) -> list[list[str]]:
    return [[entry.channel for entry in w.entries] for w in node.writers if isinstance(w, ConstantWrite)]


@pytest.mark.acceptance("S1-4")
def test_keys_edges_and_input_become_channels() -> None:
    kinds = {name: type(channel) for name, channel in chain().channels.items()}

    assert {
        "total": LastValue,
        "visited": BinaryOperatorAggregate,
        "__start__": EphemeralValue,
        "__pregel_tasks": Topic,
        "branch:to:a": EphemeralValue,
        "branch:to:b": EphemeralValue,
    } == kinds


@pytest.mark.acceptance("S1-4")
def test_building_and_compiling_run_no_node_and_can_be_repeated() -> None:
    ran: list[str] = []
    graph = builder("a").add_edge(START, "a").add_node("b", ran.append).add_edge("a", "b")

    first, second = graph.compile(), graph.compile()

    assert [] == ran
    assert first is not second
    assert list(first.nodes) == list(second.nodes) == [START, "a", "b"]


@pytest.mark.acceptance("S1-5")
def test_a_compiled_node_shows_what_it_is_made_of() -> None:
    retry = RetryPolicy()

    node = builder("a", retry_policy=retry, metadata={"who": "me"}).add_edge(START, "a").compile().nodes["a"]

    assert ["total", "visited"] == node.channels
    assert ["branch:to:a"] == node.triggers
    assert node.bound is not None
    assert node.mapper is None
    assert ((retry,), {"who": "me"}) == (node.retry_policy, node.metadata)
    assert (None, None, []) == (node.timeout, node.cache_policy, node.tags)


@pytest.mark.acceptance("S1-5")
def test_a_node_has_a_writer_for_its_state_and_one_for_its_static_edges() -> None:
    nodes = chain().nodes

    assert (2, 1) == (len(nodes["a"].writers), len(nodes["b"].writers))
    assert [["branch:to:b"]] == writes_of(nodes["a"])


@pytest.mark.acceptance("S1-6")
def test_what_a_node_reads_and_what_wakes_it_are_apart() -> None:
    node = builder("a").add_node("b", from_secret).add_edge(START, "a").add_edge("a", "b").compile().nodes["b"]

    assert ["secret"] == node.channels
    assert ["branch:to:b"] == node.triggers


@pytest.mark.acceptance("S1-9")
def test_a_router_is_one_more_writer_of_its_source() -> None:
    graph = builder("a", "b", "c").add_edge(START, "a").add_edge("a", "c").add_conditional_edges("a", route).compile()

    assert [StateWriter, ConstantWrite, BranchWriter] == [type(writer) for writer in graph.nodes["a"].writers]


def test_the_start_node_brings_the_input_in_without_user_code() -> None:
    start = chain().nodes[START]

    assert ("__start__", ["__start__"], None) == (start.channels, start.triggers, start.bound)
    assert ["langsmith:hidden"] == start.tags
    assert start.pure


def test_a_start_node_that_checks_or_branches_runs_user_code() -> None:
    checking = StateGraph(Model).add_node("a", nothing).add_edge(START, "a").compile()
    branching = builder("b").add_conditional_edges(START, route).compile()

    assert not checking.nodes[START].pure
    assert not branching.nodes[START].pure


def test_static_edges_are_written_in_the_order_of_the_nodes() -> None:
    names = ["d", "a", "c", "b"]
    graph = builder("first", *names)
    for name in sorted(names):
        graph.add_edge("first", name)

    node = graph.add_edge(START, "first").compile().nodes["first"]

    assert [[f"branch:to:{name}" for name in names]] == writes_of(node)


@pytest.mark.acceptance("S1-64")
def test_a_join_is_one_channel_that_wakes_its_end_when_all_have_arrived() -> None:
    graph = builder("a", "b", "c").add_edge(START, "a").add_edge(START, "b").add_edge(["b", "a"], "c").compile()

    barrier = graph.channels["join:b+a:c"]

    assert isinstance(barrier, NamedBarrierValue)
    assert {"a", "b"} == barrier.names
    assert ["branch:to:c", "join:b+a:c"] == graph.nodes["c"].triggers
    assert [["join:b+a:c"]] == writes_of(graph.nodes["a"]) == writes_of(graph.nodes["b"])
    assert {"join:b+a:c": "c"} == graph.joins


def test_a_join_at_the_end_writes_nothing() -> None:
    graph = builder("a", "b").add_edge(START, "a").add_edge("a", "b").add_edge(["a", "b"], END).compile()

    assert [] == [name for name in graph.channels if name.startswith("join:")]


@pytest.mark.acceptance("S1-65")
def test_a_deferred_node_waits_on_channels_that_open_at_the_end() -> None:
    graph = builder("a", "b").add_node("d", nothing, defer=True).add_edge(START, "a").add_edge("a", "b")
    app = graph.add_edge("a", "d").add_edge(["a", "b"], "d").compile()

    assert isinstance(app.channels["branch:to:d"], LastValueAfterFinish)
    assert isinstance(app.channels["join:a+b:d"], NamedBarrierValueAfterFinish)


@pytest.mark.parametrize(("node", "expected"), [(from_model, Model(total=1)), (from_data, Data(total=1))])
def test_the_first_parameter_says_what_a_node_reads(node: Any, expected: Any) -> None:
    graph = builder().add_node("a", node).add_edge(START, "a").compile()

    mapper = graph.nodes["a"].mapper

    assert ["total"] == graph.nodes["a"].channels
    assert mapper is not None
    assert expected == mapper({"total": 1})


def test_a_state_without_keys_is_read_bare() -> None:
    schema: Any = Annotated[list[int], operator.add]
    graph = StateGraph(schema).add_node("a", lambda value: None).add_edge(START, "a").compile()

    assert "__root__" == graph.nodes["a"].channels
    assert "__root__" == graph.output_channels


def test_output_shows_the_output_schema_and_streams_show_all_keys() -> None:
    graph = StateGraph(State, output_schema=Private).add_node("a", nothing).add_edge(START, "a").compile()

    assert ["secret"] == graph.output_channels
    assert ["total", "visited", "secret"] == graph.stream_channels_list
    assert ("updates", "LangGraph") == (graph.stream_mode, graph.name)


def test_a_compiled_graph_as_a_node_stays_itself() -> None:
    inner = chain()
    graph = builder("a").add_node("inner", inner).add_edge(START, "a").add_edge("a", "inner").compile()

    assert inner is graph.nodes["inner"].bound
    assert [inner] == graph.nodes["inner"].subgraphs


def test_a_subgraph_is_handed_the_keys_it_knows() -> None:
    inner = StateGraph(Private).add_node("a", from_secret).add_edge(START, "a").compile()
    graph = StateGraph(State).add_node("a", inner).add_edge(START, "a").compile()

    mapper = graph.nodes["a"].mapper

    assert mapper is not None
    assert {"secret": "s"} == mapper({"total": 1, "secret": "s"})


def test_node_defaults_apply_where_a_node_says_nothing() -> None:
    own, default = RetryPolicy(max_attempts=7), RetryPolicy(max_attempts=2)
    graph = builder("a").add_node("b", nothing, retry_policy=own, timeout=9)

    nodes = lower(graph.set_node_defaults(retry_policy=default, timeout=3)).nodes

    assert [(default,), (own,)] == [nodes[name].retry_policy for name in "ab"]
    assert [TimeoutPolicy(run_timeout=3), TimeoutPolicy(run_timeout=9)] == [nodes[name].timeout for name in "ab"]


def test_an_edge_can_be_attached_to_a_compiled_graph() -> None:
    app = builder("a", "b").add_edge(START, "a").add_edge(START, "b").compile()

    app.attach_edge("a", "b")

    assert [["branch:to:b"]] == writes_of(app.nodes["a"])
