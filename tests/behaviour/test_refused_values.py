"""A value that cannot be stored fails its run, and costs no work of the tasks beside it, wherever these are by then."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pregel.errors import InvalidInputError, SerializationError
from pregel.graph import START
from pregel.types import RetryPolicy

from .conftest import Runner
from .marks import Saver, State, Thread, failing_once, mark, parallel
from .workers import Gate, all_in_one_batch, tells_of_appends


def test_a_value_that_is_refused_costs_no_siblings_work(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    bad: list[Any] = [object()]
    gate = Gate()
    nodes = {"x": gate.holds(lambda state: {"b": bad[0]}), "y": gate.shows(mark("y", calls))}
    app = parallel("x", "y", **nodes).compile(checkpointer=saver)

    with pytest.raises(SerializationError):
        all_in_one_batch(run, app, thread("1"), gate)

    assert [task.result for task in run.state(app, thread("1")).tasks] == [None, {"a": ["y"]}]
    bad[0] = "fine"
    assert run.invoke(app, None, thread("1")) == {"a": ["y"], "b": "fine"}
    assert calls == ["y"]


def test_a_value_that_a_subgraph_cannot_store_costs_no_siblings_work(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    bad: list[Any] = [object()]
    gate = Gate()
    inner = parallel("x", x=gate.holds(lambda state: {"a": ["x"], "b": bad[0]})).compile()
    app = parallel("sub", "y", sub=inner, y=gate.shows(mark("y", calls))).compile(checkpointer=saver)

    with pytest.raises(SerializationError):
        all_in_one_batch(run, app, thread("1"), gate)

    assert [task.result for task in run.state(app, thread("1")).tasks] == [None, {"a": ["y"]}]
    bad[0] = "fine"
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y"], "b": "fine"}
    assert calls == ["y"]


def test_a_sibling_that_still_runs_when_a_value_is_refused_is_waited_for_and_kept(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls: list[str] = []
    bad: list[Any] = [object()]
    y_runs, refused = threading.Event(), threading.Event()

    def x(state: State) -> dict[str, Any]:
        assert y_runs.wait(60)
        return {"b": bad[0]}

    def y(state: State) -> dict[str, Any]:
        y_runs.set()
        assert refused.wait(60)
        calls.append("y")
        return {"a": ["y"]}

    app = parallel("x", "y", x=x, y=y).compile(checkpointer=tells_of_appends(saver, refused))

    with pytest.raises(SerializationError):
        run.invoke(app, {"a": []}, thread("1"))

    assert [task.result for task in run.state(app, thread("1")).tasks] == [None, {"a": ["y"]}]
    bad[0] = "fine"
    assert run.invoke(app, None, thread("1")) == {"a": ["y"], "b": "fine"}
    assert calls == ["y"]


def test_a_sibling_that_may_have_started_when_a_value_is_refused_runs_once(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls: list[str] = []
    bad: list[Any] = [object()]
    app = parallel("x", "y", x=lambda state: {"b": bad[0]}, y=mark("y", calls)).compile(checkpointer=saver)
    one_by_one = {**thread("1"), "max_concurrency": 1}

    with pytest.raises(SerializationError):
        run.invoke(app, {"a": []}, one_by_one)

    stored = {"a": ["y"]} if calls else None
    assert [task.result for task in run.state(app, thread("1")).tasks] == [None, stored]
    bad[0] = "fine"
    assert run.invoke(app, None, one_by_one) == {"a": ["y"], "b": "fine"}
    assert calls == ["y"]


def test_a_sibling_that_waits_for_its_next_attempt_when_a_value_is_refused_gets_none(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls: list[str] = []
    bad: list[Any] = [object()]
    y_runs = threading.Event()
    fails = failing_once("y", ValueError("later"), calls)

    def x(state: State) -> dict[str, Any]:
        assert y_runs.wait(60)
        return {"b": bad[0]}

    def y(state: State) -> Any:
        y_runs.set()
        return fails(state)

    graph = parallel("x", x=x)
    graph.add_node("y", y, retry_policy=RetryPolicy(initial_interval=3600, max_interval=3600, retry_on=ValueError))
    graph.add_edge(START, "y")
    app = graph.compile(checkpointer=saver)

    with pytest.raises(SerializationError):
        run.invoke(app, {"a": []}, thread("1"))

    assert calls == ["y"]
    bad[0] = "fine"
    assert run.invoke(app, None, thread("1")) == {"a": ["y"], "b": "fine"}
    assert calls == ["y", "y"]


@pytest.mark.parametrize("place", [{"thread_id": "t\ud800"}, {"thread_id": "t", "checkpoint_ns": "sub\ud800:1"}])
def test_a_place_that_cannot_be_written_down_is_refused_before_anything_is_written(
    run: Runner, saver: Saver, place: Any
) -> None:
    ran: list[str] = []
    app = parallel("x", x=mark("x", ran)).compile(checkpointer=saver)
    config: Any = {"configurable": place}

    for call in (
        lambda: run.invoke(app, {"a": []}, config),
        lambda: run.stream(app, {"a": []}, config),
        lambda: run.state(app, config),
        lambda: run.update(app, config, {"a": ["u"]}, as_node="x"),
    ):
        with pytest.raises(InvalidInputError, match="nothing was written"):
            call()

    assert (ran, list(saver.list(None))) == ([], [])
