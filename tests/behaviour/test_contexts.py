"""What a node is given beside its input: context, runtime, config, and how these reach graphs inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pydantic
import pytest

from pregel import get_config
from pregel.config import RunnableConfig
from pregel.graph import START, StateGraph
from pregel.runtime import BaseUser, Runtime, get_runtime
from pregel.types import Command, Send, interrupt
from pregel.warnings import PregelWarning

from .conftest import Runner
from .marks import Saver, State, Thread, chain


@dataclass
class Plain:
    user: str
    limit: int = 3


class Checked(pydantic.BaseModel):
    user: str
    limit: int = 3


class Typed(TypedDict):
    user: str


def seeing(seen: list[Any], context_schema: Any = None) -> StateGraph[Any, Any]:
    """A node that keeps the runtime that it is given."""

    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        seen.append(runtime)
        return {"a": ["x"]}

    return StateGraph(State, context_schema=context_schema).add_node("x", node).add_edge(START, "x")


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        (Plain, {"user": "u"}, Plain("u", 3)),
        (Plain, Plain("u", 4), Plain("u", 4)),
        (Checked, {"user": "u", "limit": "5"}, Checked(user="u", limit=5)),
        (Typed, {"user": "u"}, {"user": "u"}),
        (None, {"user": "u"}, {"user": "u"}),
        (Plain, None, None),
    ],
)
def test_a_context_is_made_as_its_schema_says(run: Runner, schema: Any, given: Any, expected: Any) -> None:
    seen: list[Any] = []

    run.invoke(seeing(seen, schema).compile(), {"a": []}, context=given)

    assert expected == seen[0].context


@pytest.mark.parametrize(
    ("schema", "given", "error"),
    [(Plain, {"unknown": 1}, TypeError), (Checked, {"user": "u", "limit": "many"}, pydantic.ValidationError)],
)
def test_a_context_that_does_not_fit_is_refused_before_anything_runs(
    run: Runner, saver: Saver, thread: Thread, schema: Any, given: Any, error: Any
) -> None:
    app = seeing([], schema).compile(checkpointer=saver)

    with pytest.raises(error):
        run.invoke(app, {"a": []}, thread("1"), context=given)

    assert {} == run.state(app, thread("1")).values


def test_graphs_inside_have_the_context_of_the_graph_around_them(run: Runner) -> None:
    seen: list[Any] = []
    inner = seeing(seen).compile()
    app = chain("sub", "call", sub=inner, call=lambda state: inner.invoke({"a": []})).compile()

    run.invoke(app, {"a": []}, context={"user": "u"})
    inner_context = chain("call", call=lambda state: inner.invoke({"a": []}, context="own")).compile()
    run.invoke(inner_context, {"a": []}, context={"user": "u"})

    assert [{"user": "u"}, {"user": "u"}, "own"] == [runtime.context for runtime in seen]


def test_a_runtime_says_where_its_node_runs(run: Runner, saver: Saver, thread: Thread) -> None:
    seen: list[Any] = []

    def node(state: State) -> None:
        seen.append((get_runtime(), get_config()))

    app = chain("x", x=node).compile(checkpointer=saver)
    user = BaseUser(identity="me")
    place = {"thread_id": "1", "assistant_id": "a", "graph_id": "g", "langgraph_auth_user": user}
    run.invoke(app, {"a": []}, {"configurable": place})

    ((runtime, config),) = seen
    info = runtime.execution_info
    assert ("1", 1, f"x:{info.task_id}") == (info.thread_id, info.node_attempt, info.checkpoint_ns)
    assert ("a", "g", user) == (
        runtime.server_info.assistant_id,
        runtime.server_info.graph_id,
        runtime.server_info.user,
    )
    assert {"thread_id": "1", "assistant_id": "a", "graph_id": "g"}.items() <= config["metadata"].items()


def test_a_graph_that_a_node_calls_has_the_nodes_config_without_its_place(run: Runner) -> None:
    seen: list[RunnableConfig] = []

    def inner(state: State, config: RunnableConfig) -> None:
        seen.append(config)

    called = chain("inner", inner=inner).compile()
    outer = StateGraph(State).add_node("call", lambda state: called.invoke({"a": []}), metadata={"own": 1})
    app = outer.add_edge(START, "call").compile()
    caller: RunnableConfig = {
        "tags": ["mine"],
        "metadata": {"m": 1},
        "configurable": {"k": "v"},
        "recursion_limit": 50,
        "max_concurrency": 3,
        "run_name": "mine",
    }
    run.invoke(app, {"a": []}, caller)

    (config,) = seen
    assert (["mine"], 50, 3, "inner") == (
        config["tags"],
        config["recursion_limit"],
        config["max_concurrency"],
        config["run_name"],
    )
    assert {"m": 1, "own": 1, "langgraph_node": "inner"}.items() <= config["metadata"].items()
    assert "v" == config["configurable"]["k"]


def test_a_subgraph_brings_the_config_that_is_bound_to_it(run: Runner) -> None:
    seen: list[Any] = []
    bound = chain("x", x=lambda state: seen.append(get_config()["tags"])).compile().with_config(tags=["bound"])

    run.invoke(chain("sub", sub=bound).compile(), {"a": []}, {"tags": ["mine"]})

    assert [["mine", "bound"]] == seen


def test_a_config_of_another_kind_is_told_not_to_be_given() -> None:
    def node(state: State, config: dict[int, int]) -> None: ...

    with pytest.warns(PregelWarning, match="not RunnableConfig"):
        StateGraph(State).add_node("x", node)  # type: ignore[call-overload]


@pytest.mark.acceptance("S4-8")
def test_locals_are_made_again_on_resume_and_what_was_sent_is_recorded(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    made: list[object] = []
    arguments: list[Any] = []

    def work(state: dict[str, Any]) -> dict[str, Any]:
        local = object()  # never stored
        made.append(local)
        arguments.append(state["sent"])
        return {"a": [f"{state['sent']} {interrupt('ok?')}"]}

    graph = StateGraph(State).add_node("work", work)
    numbers = iter(range(100))
    graph.add_conditional_edges(START, lambda state: [Send("work", {"sent": next(numbers)})], ["work"])
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    assert {"a": ["0 yes"]} == run.invoke(app, Command(resume="yes"), thread("1"))
    assert (2, [0, 0], 1) == (len(set(map(id, made))), arguments, next(numbers))


@pytest.mark.acceptance("S2-3")
def test_a_join_waits_for_every_child_and_keeps_each_ones_outcome(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[int] = []

    def post(state: dict[str, Any]) -> dict[str, Any]:
        calls.append(state["n"])
        if state["n"] == 1:
            raise ValueError("refused")
        return {"a": [f"{state['n']} posted"]}

    def failed(state: dict[str, Any]) -> dict[str, Any]:
        return {"a": [f"{state['n']} failed"]}

    graph = StateGraph(State).add_node("post", post, error_handler=failed)
    graph.add_node("join", lambda state: {"b": ", ".join(state["a"])})
    graph.add_conditional_edges(START, lambda state: [Send("post", {"n": n}) for n in range(3)], ["post"])
    app = graph.add_edge("post", "join").compile(checkpointer=saver)

    assert "0 posted, 1 failed, 2 posted" == run.invoke(app, {"a": []}, thread("1"))["b"]
    assert [0, 1, 2] == sorted(calls)
