"""Durability ``exit``: one checkpoint a run, whatever its end, and nothing lost that the end knows."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest

from pregel.channels import DeltaChannel
from pregel.errors import GraphRecursionError
from pregel.graph import START, StateGraph
from pregel.types import Command, interrupt

from .conftest import Runner
from .marks import Saver, Thread, chain, failing_once, mark, parallel

EXIT: dict[str, Any] = {"durability": "exit"}


def shape(run: Runner, app: Any, config: Any) -> list[tuple[str, int]]:
    return [(entry.metadata["source"], entry.metadata["step"]) for entry in reversed(run.history(app, config))]


@pytest.mark.acceptance("S1-43")
def test_each_run_leaves_one_checkpoint_that_hangs_on_the_run_before(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)

    run.invoke(app, {"a": ["1"]}, thread("1"), **EXIT)
    run.invoke(app, {"a": ["2"]}, thread("1"), **EXIT)

    second, first = run.history(app, thread("1"))
    assert shape(run, app, thread("1")) == [("loop", 2), ("loop", 6)]
    assert (first.parent_config, second.parent_config) == (None, first.config)
    assert second.values == {"a": ["1", "x", "y", "2", "x", "y"]}


@pytest.mark.acceptance("S1-43")
def test_a_subgraph_that_is_done_leaves_none(run: Runner, saver: Saver, thread: Thread) -> None:
    """Not its own, nor that of a graph in it; one that asks keeps where it stands, and the answer finds it there."""
    inner = chain("p", "q", q=chain("r", "s").compile()).compile()
    asking = chain("t", "u", u=lambda state: {"a": [interrupt("?")]}).compile()
    app = chain("x", "y", "z", y=inner, z=asking).compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"), **EXIT)

    places = [entry.config["configurable"]["checkpoint_ns"] for entry in saver.list(thread("1"))]
    assert ["", "z"] == sorted(ns.partition(":")[0] for ns in places)
    assert run.invoke(app, Command(resume="yes"), thread("1"), **EXIT)["a"][-2:] == ["t", "yes"]
    assert [("loop", 2), ("loop", 3)] == shape(run, app, thread("1"))


@pytest.mark.parametrize("subgraph", [False, True])
def test_the_last_checkpoint_that_a_stream_shows_is_the_one_that_is_stored(
    run: Runner, saver: Saver, thread: Thread, subgraph: bool
) -> None:
    inner = chain("q", "p", "r").compile(checkpointer=True)
    app = (chain("x", "y", "z", y=inner) if subgraph else chain("x", "y", "z")).compile(checkpointer=saver)

    for _ in range(2):
        shown = run.stream(app, {"a": []}, thread("1"), stream_mode="checkpoints", subgraphs=True, **EXIT)
        places: list[Any] = [thread("1"), *([{"configurable": {"thread_id": "1", "checkpoint_ns": "y"}}] * subgraph)]
        for place in places:
            newest = run.history(app, place)[0]
            ns = newest.config["configurable"]["checkpoint_ns"]
            last = [event for at, event in shown if "|".join(at) == ns][-1]
            assert (last["config"], last["parent_config"]) == (newest.config, newest.parent_config)


def test_a_failed_run_keeps_its_error_and_what_finished(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = chain("x", "y", y=failing_once("y", ValueError("boom")))
    app = graph.compile(checkpointer=saver)

    with pytest.raises(ValueError, match="boom"):
        run.invoke(app, {"a": []}, thread("1"), **EXIT)

    state = run.state(app, thread("1"))
    assert shape(run, app, thread("1")) == [("loop", 1)]
    assert (state.values, state.next, state.tasks[0].error) == ({"a": ["x"]}, ("y",), "ValueError('boom')")
    assert run.invoke(app, None, thread("1"), **EXIT) == {"a": ["x", "y"]}
    assert shape(run, app, thread("1")) == [("loop", 1), ("loop", 2)]


def test_a_question_and_what_finished_beside_it_are_kept(run: Runner, saver: Saver, thread: Thread) -> None:
    ran: list[str] = []

    def once(state: Any) -> dict[str, Any]:
        ran.append("x")
        return {"a": ["x"]}

    graph = chain("p", p=mark("p")).add_node("x", once).add_node("y", lambda state: {"a": [interrupt("?")]})
    app = graph.add_edge("p", "x").add_edge("p", "y").compile(checkpointer=saver)

    (question,) = run.invoke(app, {"a": []}, thread("1"), **EXIT)["__interrupt__"]

    state = run.state(app, thread("1"))
    assert (state.interrupts, state.next, state.values) == ((question,), ("y",), {"a": ["p", "x"]})
    assert run.invoke(app, Command(resume="yes"), thread("1"), **EXIT) == {"a": ["p", "x", "yes"]}
    assert ran == ["x"]


def test_a_breakpoint_is_an_end_too(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver, interrupt_before=["z"])

    run.invoke(app, {"a": []}, thread("1"), **EXIT)

    assert (shape(run, app, thread("1")), run.state(app, thread("1")).next) == ([("loop", 2)], ("z",))
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y", "z"]}


def test_a_run_that_hit_its_limit_keeps_its_progress(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver)

    with pytest.raises(GraphRecursionError):
        run.invoke(app, {"a": []}, {**thread("1"), "recursion_limit": 2}, **EXIT)

    assert run.state(app, thread("1")).values == {"a": ["x", "y"]}
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y", "z"]}


def test_a_join_that_a_run_left_half_full_waits_for_the_next_one(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = parallel("x", "y", y=lambda state: {"a": [interrupt("?")]}).add_node("z", mark("z"))
    app = graph.add_edge(["x", "y"], "z").compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"), **EXIT)

    assert run.invoke(app, Command(resume="yes"), thread("1"), **EXIT) == {"a": ["x", "yes", "z"]}


def appended(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(item for write in writes for item in write)]


def test_a_delta_channel_reads_back_whole(run: Runner, saver: Saver, thread: Thread) -> None:
    class Logged(TypedDict):
        log: Annotated[list[str], DeltaChannel(appended)]

    graph = StateGraph(Logged)
    for before, name in ((START, "x"), ("x", "y"), ("y", "z")):
        graph.add_node(name, lambda state, name=name: {"log": [name]}).add_edge(before, name)
    app = graph.compile(checkpointer=saver)

    run.invoke(app, {"log": ["1"]}, thread("1"), **EXIT)
    run.invoke(app, {"log": ["2"]}, thread("1"))
    run.invoke(app, {"log": ["3"]}, thread("1"), **EXIT)

    wanted = ["1", "x", "y", "z", "2", "x", "y", "z", "3", "x", "y", "z"]
    assert run.state(app, thread("1")).values == {"log": wanted}
    lengths = [len(entry.values["log"]) for entry in run.history(app, thread("1"))]
    assert lengths == [12, 8, 7, 6, 5, 4, 4]


def test_modes_mix_on_one_thread(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"), interrupt_before=["y"], durability="async")
    run.invoke(app, None, thread("1"), interrupt_before=["z"], **EXIT)
    run.invoke(app, None, thread("1"))

    history = run.history(app, thread("1"))
    assert [entry.metadata["step"] for entry in reversed(history)] == [-1, 0, 1, 2, 3]
    assert [entry.parent_config for entry in history] == [*(entry.config for entry in history[1:]), None]
    assert history[0].values == {"a": ["x", "y", "z"]}


def test_an_update_after_a_run_in_exit_mode_hangs_on_it(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"), **EXIT)

    run.update(app, thread("1"), {"a": ["u"]}, as_node="x")

    assert shape(run, app, thread("1")) == [("loop", 2), ("update", 3)]
    assert run.invoke(app, None, thread("1"), **EXIT) == {"a": ["x", "y", "u", "y"]}
