"""Draining: a run that is asked to stop does so after the step that runs, keeps it, and goes on later."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pregel.errors import GraphDrained, InvalidInputError
from pregel.graph import START, StateGraph
from pregel.runtime import RunControl, Runtime
from pregel.types import Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel


def draining(control: RunControl, name: str, calls: list[str], reason: str = "deploy") -> Any:
    """A node that asks its run to stop."""

    def node(state: Any) -> dict[str, Any]:
        calls.append(name)
        control.request_drain(reason)
        return {"a": [name]}

    return node


@pytest.mark.acceptance("S1-29", "S0-13")
def test_a_drained_run_keeps_its_step_says_why_and_goes_on(run: Runner, saver: Saver, thread: Thread) -> None:
    control = RunControl()
    calls: list[str] = []
    graph = chain("x", "y", "z", x=draining(control, "x", calls), y=mark("y", calls), z=mark("z", calls))
    app = graph.compile(checkpointer=saver)

    with pytest.raises(GraphDrained) as caught:
        run.invoke(app, {"a": []}, thread("1"), control=control)

    state = run.state(app, thread("1"))
    assert ("deploy", True, "deploy") == (caught.value.reason, control.drain_requested, control.drain_reason)
    assert ({"a": ["x"]}, ("y",)) == (state.values, state.next)
    assert {"a": ["x", "y", "z"]} == run.invoke(app, None, thread("1"))
    assert ["x", "y", "z"] == calls


@pytest.mark.acceptance("S1-29")
def test_a_run_with_nothing_left_ends_normally(run: Runner, saver: Saver, thread: Thread) -> None:
    control = RunControl()
    app = chain("x", x=draining(control, "x", [])).compile(checkpointer=saver)

    assert {"a": ["x"]} == run.invoke(app, {"a": []}, thread("1"), control=control)


@pytest.mark.acceptance("S1-29")
@pytest.mark.parametrize("nested", [1, 2])
def test_subgraphs_stop_between_their_own_steps_and_go_on_there(
    run: Runner, saver: Saver, thread: Thread, nested: int
) -> None:
    control = RunControl()
    calls: list[str] = []
    inner = chain("x", "y", x=draining(control, "x", calls), y=mark("y", calls)).compile()
    for _ in range(nested):
        inner = parallel("sub", "beside", sub=inner, beside=mark("beside", calls)).compile()
    app = inner.copy({"checkpointer": saver})

    with pytest.raises(GraphDrained, match="deploy"):
        run.invoke(app, {"a": []}, thread("1"), control=control)
    assert "y" not in calls
    assert all(task.error is None for task in run.state(app, thread("1")).tasks)

    run.invoke(app, None, thread("1"))
    assert (1, 1, nested) == (calls.count("x"), calls.count("y"), calls.count("beside"))


def test_a_graph_that_a_node_calls_drains_the_node_with_it(run: Runner, saver: Saver, thread: Thread) -> None:
    control = RunControl()
    calls: list[str] = []
    inner = chain("x", "y", x=draining(control, "x", calls), y=mark("y", calls)).compile()
    app = chain("call", call=lambda state: inner.invoke({"a": []})).compile(checkpointer=saver)

    with pytest.raises(GraphDrained):
        run.invoke(app, {"a": []}, thread("1"), control=control)

    assert (("call",), None) == ((state := run.state(app, thread("1"))).next, state.tasks[0].error)
    assert {"a": ["x", "y"]} == run.invoke(app, None, thread("1"))


@pytest.mark.parametrize("shown", [{}, {"subgraphs": True}], ids=["alone", "subgraphs"])
@pytest.mark.parametrize("stored", [True, False])
def test_a_graph_that_a_node_calls_with_a_control_of_its_own_stops_when_that_says_so(
    run: Runner, saver: Saver, thread: Thread, stored: bool, shown: dict[str, Any]
) -> None:
    control = RunControl()
    calls: list[str] = []
    inner = chain("x", "y", x=draining(control, "x", calls), y=mark("y", calls)).compile()
    around = chain("n", n=calling(run, inner, control))
    app = around.compile(checkpointer=saver if stored else None)

    with pytest.raises(GraphDrained, match="deploy"):
        run.stream(app, {"a": []}, thread("1"), **shown)

    assert ["x"] == calls


def calling(run: Runner, graph: Any, control: RunControl) -> Any:
    """A node that calls a graph and gives it a control."""

    def node(state: State) -> dict[str, Any]:
        graph.invoke({"a": []}, control=control)
        return {}

    async def awaiting(state: State) -> dict[str, Any]:
        await graph.ainvoke({"a": []}, control=control)
        return {}

    return awaiting if run.name == "async" else node


@pytest.mark.parametrize("nested", [False, True])
def test_a_breakpoint_that_comes_next_is_where_a_drained_run_stops(
    run: Runner, saver: Saver, thread: Thread, nested: bool
) -> None:
    control = RunControl()
    calls: list[str] = []
    graph = chain("x", "y", x=draining(control, "x", calls), y=mark("y", calls))
    app = graph.compile(checkpointer=None if nested else saver, interrupt_before=["y"])
    if nested:
        app = StateGraph(State).add_node("sub", app).add_edge(START, "sub").compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"), control=control)

    state = run.state(app, thread("1"), subgraphs=True)
    assert ("y",) == (state.tasks[0].state.next if nested else state.next)
    assert ["x"] == calls
    assert {"a": ["x", "y"]} == run.invoke(app, None, thread("1"))


def test_a_node_sees_that_its_run_is_to_stop(run: Runner) -> None:
    control = RunControl()
    seen: list[Any] = []

    def node(state: Any, runtime: Runtime[Any]) -> None:
        seen.append((runtime.drain_requested, runtime.drain_reason))
        control.request_drain("now")
        seen.append((runtime.drain_requested, runtime.drain_reason))

    run.invoke(chain("x", x=node).compile(), {"a": []}, control=control)

    assert [(False, None), (True, "now")] == seen


def test_a_question_of_the_same_step_is_asked_all_the_same(run: Runner, saver: Saver, thread: Thread) -> None:
    control = RunControl()
    inner = chain("x", "y", x=draining(control, "x", [])).compile()
    app = parallel("sub", "ask", sub=inner, ask=lambda state: {"a": [interrupt("ok?")]}).compile(checkpointer=saver)

    result = run.invoke(app, {"a": []}, thread("1"), control=control)

    assert ["ok?"] == [question.value for question in result["__interrupt__"]]
    assert {"sub", "ask"} == set(run.state(app, thread("1")).next)


# -- how many at once --------------------------------------------------------------------------------------------------


class Most:
    """How many were inside at once."""

    def __init__(self) -> None:
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def node(self, state: Any) -> dict[str, Any]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        threading.Event().wait(0.002)
        with self.lock:
            self.now -= 1
        return {"a": ["x"]}


@pytest.mark.parametrize("place", ["tasks", "children", "called"])
def test_no_more_tasks_run_at_once_than_the_config_allows(run: Runner, place: str) -> None:
    most = Most()
    inner = StateGraph(State).add_node("x", most.node)
    inner.add_conditional_edges(START, lambda state: [Send("x", {}) for _ in range(4)], ["x"])
    app: Any = inner.compile()
    if place == "children":
        outer = StateGraph(State).add_node("sub", inner.compile())
        outer.add_conditional_edges(START, lambda state: [Send("sub", {"a": []}) for _ in range(3)], ["sub"])
        app = outer.compile()
    elif place == "called":
        called = inner.compile()
        app = chain("call", call=lambda state: called.invoke({"a": []})).compile()

    result = run.invoke(app, {"a": []}, {"max_concurrency": 2})

    assert most.most <= 2
    assert {"x"} == set(result["a"])


def test_room_for_nobody_is_refused(run: Runner) -> None:
    with pytest.raises(InvalidInputError, match="max_concurrency"):
        run.invoke(chain("x").compile(), {"a": []}, {"max_concurrency": -1})
