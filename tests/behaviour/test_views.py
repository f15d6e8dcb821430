"""get_state and get_state_history: the live view, the addressed view, and what history can be asked."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.errors import NoCheckpointerError
from pregel.graph import START, StateGraph
from pregel.types import Command, Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, failing_once, parallel


def asking(*names: str) -> StateGraph[Any]:
    """x finishes; each of the names asks."""
    return parallel("x", *names, **{name: lambda state, name=name: {"a": [interrupt(name)]} for name in names})


@pytest.mark.acceptance("S1-48")
def test_live_shows_what_is_left_and_addressed_shows_the_whole_step(run: Runner, saver: Saver, thread: Thread) -> None:
    app = asking("y").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    live = run.state(app, thread("1"))
    addressed = run.state(app, live.config)

    assert (live.values, live.next) == ({"a": ["x"]}, ("y",))
    assert (addressed.values, set(addressed.next)) == ({"a": []}, {"x", "y"})
    assert live.config == addressed.config
    for state in (live, addressed):
        tasks = {task.name: task for task in state.tasks}
        assert (tasks["x"].result, tasks["y"].result) == ({"a": ["x"]}, None)
        assert [question.value for question in state.interrupts] == ["y"]
        assert tasks["y"].interrupts == state.interrupts


def test_an_answered_question_is_gone_from_the_live_view_only(run: Runner, saver: Saver, thread: Thread) -> None:
    app = asking("y", "z").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    y, z = run.state(app, thread("1")).interrupts

    run.invoke(app, Command(resume={y.id: "yes"}), thread("1"))

    live = run.state(app, thread("1"))
    addressed = run.state(app, live.config)
    assert (live.interrupts, live.next, live.values) == ((z,), ("z",), {"a": ["x", "yes"]})
    assert (addressed.interrupts, set(addressed.next)) == ((y, z), {"x", "y", "z"})


def test_history_shows_every_step_addressed(run: Runner, saver: Saver, thread: Thread) -> None:
    app = asking("y").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, Command(resume="yes"), thread("1"))

    done, step, start = run.history(app, thread("1"))

    assert [done, step, start] == [run.state(app, entry.config) for entry in (done, step, start)]
    assert (done.values, done.next, done.tasks) == ({"a": ["x", "yes"]}, (), ())
    assert {task.name: task.result for task in step.tasks} == {"x": {"a": ["x"]}, "y": {"a": ["yes"]}}
    assert [question.value for question in step.interrupts] == ["y"]


def test_a_failure_is_text_in_the_state(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", y=failing_once("y", ValueError("boom"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        run.invoke(app, {"a": []}, thread("1"))

    (failed,) = run.state(app, thread("1")).tasks

    assert (failed.name, failed.error, failed.result, failed.interrupts) == ("y", "ValueError('boom')", None, ())


def test_a_task_that_finished_without_a_write_has_an_empty_result(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", x=lambda state: None, y=lambda state: interrupt("?")).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    state = run.state(app, thread("1"))

    assert {task.name: task.result for task in state.tasks} == {"x": {}, "y": None}
    assert state.next == ("y",)


def test_a_key_written_twice_is_shown_as_its_writes(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", x=lambda state: Command(update=[("a", ["1"]), ("a", ["2"]), ("b", "b")])).compile(saver)
    run.invoke(app, {"a": []}, thread("1"))

    (task,) = run.history(app, thread("1"))[1].tasks

    assert task.result == {"a": {"$writes": [["1"], ["2"]]}, "b": "b"}


def test_a_routing_only_task_has_an_empty_result_and_its_packets_are_next(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    graph = chain("x", x=lambda state: Command(goto=[Send("w", 1), Send("w", 2)])).add_node("w", lambda arg: None)
    app = graph.compile(checkpointer=saver, interrupt_before=["w"])
    run.invoke(app, {"a": []}, thread("1"))

    state = run.state(app, thread("1"))

    assert (state.next, [task.path[:2] for task in state.tasks]) == (
        ("w", "w"),
        [("__pregel_push", 0), ("__pregel_push", 1)],
    )
    assert [task.result for task in run.history(app, thread("1"))[1].tasks] == [{}]


@pytest.mark.acceptance("S1-48")
def test_history_can_be_filtered_bounded_and_limited(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, {**thread("1"), "metadata": {"user": "anna"}})
    run.invoke(app, {"a": []}, {**thread("1"), "metadata": {"user": "ben"}})
    everything = run.history(app, thread("1"))

    annas = run.history(app, thread("1"), filter={"user": "anna"})

    assert [entry.metadata["step"] for entry in annas] == [2, 1, 0, -1]
    assert run.history(app, thread("1"), filter={"user": "anna", "source": "input"}) == annas[-1:]
    assert run.history(app, thread("1"), before=annas[0].config) == annas[1:]
    assert run.history(app, thread("1"), limit=2) == everything[:2]
    assert run.history(app, thread("1"), filter={"user": "anna"}, before=annas[0].config, limit=1) == annas[1:2]
    assert run.history(app, thread("1"), filter={"user": "nobody"}) == []


def test_an_unknown_thread_and_an_unknown_checkpoint_have_an_empty_state(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    nowhere = {"configurable": {"thread_id": "1", "checkpoint_id": "1ef00000-0000-6000-8000-000000000000"}}

    for config in (thread("2"), nowhere):
        state = run.state(app, config)
        assert (state.values, state.next, state.config, state.tasks) == ({}, (), config, ())
        assert (state.metadata, state.created_at, state.parent_config, state.interrupts) == (None, None, None, ())


def test_a_graph_without_a_saver_has_no_state(run: Runner, thread: Thread) -> None:
    app = chain("x").compile()

    with pytest.raises(NoCheckpointerError, match="No checkpointer set"):
        run.state(app, thread("1"))
    with pytest.raises(NoCheckpointerError, match="No checkpointer set"):
        run.history(app, thread("1"))


def test_a_snapshot_shares_nothing_with_the_thread(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    run.state(app, thread("1")).values["a"].append("LEAK")

    assert run.state(app, thread("1")).values == {"a": ["x"]}
    assert run.invoke(app, {"a": []}, thread("1")) == {"a": ["x", "x"]}


def test_a_graph_that_lost_a_node_still_reads_the_thread(run: Runner, saver: Saver, thread: Thread) -> None:
    before = StateGraph(State).add_node("x", lambda state: {"a": ["x"], "b": "b"}).add_node("y", lambda state: None)
    app = before.add_edge(START, "x").add_edge("x", "y").compile(checkpointer=saver, interrupt_before=["y"])
    run.invoke(app, {"a": []}, thread("1"))

    state = run.state(chain("x").compile(checkpointer=saver), thread("1"))

    assert (state.values, state.next) == ({"a": ["x"], "b": "b"}, ())
