"""What the type checker knows of graphs and tasks. Nothing here runs: mypy reads it, and an ignore that it does not
need is an error, so each line with one is a mistake that the checker must find.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict, assert_type

from pregel import StateGraph
from pregel.engine.future import CallFuture
from pregel.func import entrypoint, task
from pregel.graph.state import CompiledStateGraph
from pregel.runtime import Runtime


class State(TypedDict):
    total: int


class Question(TypedDict):
    text: str


class Answer(TypedDict):
    answer: str


@dataclass
class Tenant:
    name: str


def a_graph_of_one_schema_takes_and_gives_it() -> None:
    graph = StateGraph(State)
    assert_type(graph, StateGraph[State, None, State, State])
    assert_type(graph.compile(), CompiledStateGraph[State, None, State, State])


def a_graph_knows_its_context_input_and_output() -> None:
    graph = StateGraph(State, Tenant, input_schema=Question, output_schema=Answer)
    assert_type(graph, StateGraph[State, Tenant, Question, Answer])
    assert_type(graph.add_node("node", node), StateGraph[State, Tenant, Question, Answer])
    assert_type(graph.compile(), CompiledStateGraph[State, Tenant, Question, Answer])


def node(state: State, runtime: Runtime[Tenant]) -> State:
    assert_type(runtime.context, Tenant)
    return {"total": state["total"] + 1}


def a_key_that_is_not_there(state: State) -> State:
    return {"totl": state["total"]}  # type: ignore[typeddict-unknown-key, typeddict-item]  # pyright: ignore[reportReturnType]


def a_value_of_another_type(state: State) -> State:
    return {"total": "much"}  # type: ignore[typeddict-item]  # pyright: ignore[reportReturnType]


def a_context_without_that_field(state: State, runtime: Runtime[Tenant]) -> None:
    runtime.context.nmae  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # noqa: B018


@task
def double(n: int) -> int:
    return n * 2


@entrypoint()
def workflow(n: int) -> int:
    assert_type(double(n), CallFuture[int])
    assert_type(double(n).result(), int)
    double("two")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    double(n, n)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    return double(n).result()


async def awaited(n: int) -> None:
    assert_type(await double(n), int)
