"""Where a run goes: conditional edges, Commands, packets, joins and deferred nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.errors import InvalidRouteError, InvalidUpdateError, PathMapError, UnknownTargetError
from pregel.graph import END, START, StateGraph
from pregel.managed import RemainingSteps
from pregel.types import Command, Send
from tests.behaviour.conftest import Runner

Saver = BaseCheckpointSaver[Any]
Thread = Callable[[str], dict[str, Any]]


class State(TypedDict, total=False):
    total: int
    visited: Annotated[list[str], operator.add]
    left: RemainingSteps


@dataclass
class Total:
    total: int


def visit(name: str) -> Callable[[Any], Any]:
    return lambda state: {"visited": [name]}


def graph(*names: str, **options: Any) -> StateGraph[Any]:
    builder: StateGraph[Any] = StateGraph(State)
    for name in names:
        builder.add_node(name, visit(name), **options)
    return builder


def router(answer: Any) -> Any:
    """A graph whose node a is left by one conditional edge, to b or c."""
    return graph("a", "b", "c").add_edge(START, "a").add_conditional_edges("a", lambda state: answer).compile()


def big(state: Total) -> bool:
    return state.total > 5


@pytest.mark.acceptance("S1-9")
@pytest.mark.parametrize(
    ("total", "expected"),
    [(10, {"total": 21, "visited": ["a", "b"]}), (1, {"total": 0, "visited": ["a", "c"]})],
)
def test_a_conditional_edge_chooses_one_node_and_the_other_never_fires(
    run: Runner, total: int, expected: dict[str, Any]
) -> None:
    builder = graph("a")
    builder.add_node("b", lambda state: {"total": state["total"] * 2 + 1, "visited": ["b"]})
    builder.add_node("c", lambda state: {"total": 0, "visited": ["c"]})
    app = builder.add_edge(START, "a").add_conditional_edges("a", big, {True: "b", False: "c"}).compile()

    assert expected == run.invoke(app, {"total": total, "visited": []})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("b", ["a", "b"]), (["b", "c", "b"], ["a", "b", "c"]), (END, ["a"]), ([], ["a"]), (Send("b", {}), ["a", "b"])],
)
def test_a_path_answers_names_and_packets(run: Runner, answer: Any, expected: list[str]) -> None:
    assert {"visited": expected} == run.invoke(router(answer), {})


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ("nowhere", UnknownTargetError),
        (Send("nowhere", {}), UnknownTargetError),
        (None, InvalidRouteError),
        (START, InvalidRouteError),
        (Send(END, {}), InvalidUpdateError),
    ],
)
def test_a_path_that_leads_nowhere_fails_the_step(
    run: Runner, saver: Saver, thread: Thread, answer: Any, error: type[Exception]
) -> None:
    app = graph("a", "b").add_edge(START, "a").add_conditional_edges("a", lambda state: answer).compile(saver)

    with pytest.raises(error, match="Branch 'condition' of node 'a' gave"):
        run.invoke(app, {}, thread("1"))

    state = run.state(app, thread("1"))
    assert ({"visited": []}, ("a",)) == (state.values, state.next)


def test_an_answer_outside_of_its_path_map_is_a_key_error(run: Runner) -> None:
    app = graph("a", "b").add_edge(START, "a").add_conditional_edges("a", lambda state: "x", {"y": "b"}).compile()

    with pytest.raises(KeyError) as caught:
        run.invoke(app, {})

    assert isinstance(caught.value, PathMapError)


def test_a_path_sees_its_own_nodes_write_and_none_of_its_siblings(run: Runner) -> None:
    seen: list[list[str]] = []

    def path(state: State) -> str:
        seen.append(state["visited"])
        return END

    app = graph("a", "m").add_edge(START, "a").add_edge(START, "m").add_conditional_edges("a", path).compile()
    run.invoke(app, {"visited": ["i"]})

    assert [["i", "a"]] == seen


def test_a_path_from_the_start_reads_the_input(run: Runner) -> None:
    app = graph("a", "b").add_conditional_edges(START, big, {True: "a", False: "b"}).compile()

    assert {"total": 9, "visited": ["a"]} == run.invoke(app, {"total": 9})


def test_a_path_reads_managed_values(run: Runner) -> None:
    def path(state: State) -> str:
        return "a" if state["left"] > 2 else END

    app = graph("a").add_edge(START, "a").add_conditional_edges("a", path).compile()

    assert {"visited": ["a", "a"]} == run.invoke(app, {}, {"recursion_limit": 4})


def test_an_awaited_path_needs_the_async_api() -> None:
    async def path(state: State) -> str:
        return "b"

    app = graph("a", "b").add_edge(START, "a").add_conditional_edges("a", path).compile()

    with pytest.raises(TypeError, match="No synchronous function"):
        app.invoke({})


@pytest.mark.acceptance("S1-26")
@pytest.mark.parametrize("goto", ["t", ["t"], Send("t", {}), [Send("t", {})]])
def test_a_command_updates_and_routes_without_an_edge(run: Runner, goto: Any) -> None:
    builder = graph("t").add_node("r", lambda state: Command(update={"visited": ["r"]}, goto=goto))

    assert {"visited": ["r", "t"]} == run.invoke(builder.add_edge(START, "r").compile(), {})


@pytest.mark.parametrize(("goto", "expected"), [(END, ["r", "z"]), ("y", ["r", "y", "z"])])
def test_a_command_runs_beside_static_edges(run: Runner, goto: str, expected: list[str]) -> None:
    builder = graph("y", "z").add_node("r", lambda state: Command(update={"visited": ["r"]}, goto=goto))

    assert {"visited": expected} == run.invoke(builder.add_edge(START, "r").add_edge("r", "z").compile(), {})


def test_a_command_to_a_node_that_does_not_exist_fails_the_step(run: Runner, saver: Saver, thread: Thread) -> None:
    builder = graph("typo").add_node("r", lambda state: Command(update={"visited": ["r"]}, goto="tpyo"))
    app = builder.add_edge(START, "r").compile(saver)

    with pytest.raises(UnknownTargetError, match="Did you mean 'typo'"):
        run.invoke(app, {}, thread("1"))

    assert {"visited": []} == run.state(app, thread("1")).values


@pytest.mark.acceptance("S1-64")
def test_a_join_runs_its_end_once_after_all_of_its_starts(run: Runner) -> None:
    builder = graph("a", "b", "b2", "c").add_edge(START, "a").add_edge(START, "b").add_edge("b", "b2")

    assert {"visited": ["a", "b", "b2", "c"]} == run.invoke(builder.add_edge(["a", "b2"], "c").compile(), {})


def test_without_a_join_an_uneven_diamond_runs_its_end_twice(run: Runner) -> None:
    builder = graph("a", "b", "b2", "c").add_edge(START, "a").add_edge(START, "b").add_edge("b", "b2")

    app = builder.add_edge("a", "c").add_edge("b2", "c").compile()

    assert {"visited": ["a", "b", "b2", "c", "c"]} == run.invoke(app, {})


def test_a_join_does_not_fire_again_for_one_of_its_starts(run: Runner) -> None:
    def again(state: State) -> str:
        return "a" if len(state["visited"]) < 4 else END

    builder = graph("a", "b", "c").add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")

    app = builder.add_conditional_edges("c", again, ["a", END]).compile()

    assert {"visited": ["a", "b", "c", "a"]} == run.invoke(app, {})


@pytest.mark.acceptance("S1-65")
def test_a_deferred_node_runs_when_nothing_else_is_left(run: Runner) -> None:
    builder = graph("a", "b", "b2").add_node("c", visit("c"), defer=True).add_edge(START, "a").add_edge(START, "b")

    app = builder.add_edge("b", "b2").add_edge("a", "c").add_edge("b2", "c").compile()

    assert {"visited": ["a", "b", "b2", "c"]} == run.invoke(app, {})


def test_a_command_for_the_parent_updates_and_routes_the_parent(run: Runner) -> None:
    command = Command(graph=Command.PARENT, update={"total": 100, "own": 1}, goto="after")
    inner = StateGraph(State).add_node("i", lambda state: command).add_edge(START, "i").compile()
    builder = graph("after").add_node("inner", inner).add_edge(START, "inner")

    assert {"total": 100, "visited": ["after"]} == run.invoke(builder.compile(), {"total": 1})


def test_several_commands_for_the_parent_all_reach_it(run: Runner) -> None:
    commands: list[Command[str]] = [Command(graph=Command.PARENT, update={"visited": [name]}) for name in ("x", "y")]
    inner = StateGraph(State).add_node("i", lambda state: commands).add_edge(START, "i").compile()

    app = StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile()

    assert {"visited": ["x", "y"]} == run.invoke(app, {})
