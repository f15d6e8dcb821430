"""Modes tasks, checkpoints and debug, typed parts, and printing: what a watcher of a run is told, in which order."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from pregel.errors import InvalidInputError
from pregel.graph import START, StateGraph
from pregel.types import Command, GraphOutput, interrupt
from pregel.warnings import PregelWarning

from .conftest import Runner
from .marks import Saver, State, Thread, chain, parallel

ALL = ["values", "updates", "tasks", "checkpoints"]


def asks(state: State) -> dict[str, Any]:
    return {"a": [interrupt("ok?")]}


def told(chunks: list[tuple[str, Any]]) -> list[str]:
    """The chunks in short: the mode, and whom they are about."""
    lines = []
    for mode, data in chunks:
        if mode == "tasks":
            lines.append(f"{'end' if 'result' in data else 'start'} {data['name']}")
        elif mode == "checkpoints":
            lines.append(f"checkpoint {data['metadata']['step']} -> {','.join(data['next'])}")
        elif mode == "updates":
            lines.append(f"update {next(iter(data))}")
        else:
            lines.append(mode)
    return lines


@pytest.mark.acceptance("S1-45")
def test_all_modes_of_a_run_tell_one_story(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)

    chunks = run.stream(app, {"a": ["i"]}, thread("1"), stream_mode=ALL)

    assert told(chunks) == [
        "checkpoint -1 -> __start__",
        "values",
        "checkpoint 0 -> x",
        "start x",
        "update x",
        "end x",
        "values",
        "checkpoint 1 -> y",
        "start y",
        "update y",
        "end y",
        "values",
        "checkpoint 2 -> ",
    ]


@pytest.mark.acceptance("S1-45")
def test_each_mode_alone_shows_what_it_shows_among_others(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    together = run.stream(app, {"a": ["i"]}, thread("1"), stream_mode=ALL)

    for mode in ALL:
        alone = run.stream(app, {"a": ["i"]}, thread(f"alone {mode}"), stream_mode=[mode])
        assert told(alone) == told([chunk for chunk in together if chunk[0] == mode])


def test_a_task_shows_its_input_its_result_and_what_was_attached(run: Runner) -> None:
    app = chain("x").compile()
    config = {"metadata": {"user": "u"}, "tags": ["t"]}

    start, end = run.stream(app, {"a": ["i"]}, config, stream_mode="tasks")

    assert start == {
        "id": end["id"],
        "name": "x",
        "input": {"a": ["i"]},
        "triggers": ("branch:to:x",),
        "metadata": {"user": "u", "tags": ["t"]},
    }
    assert end == {"id": start["id"], "name": "x", "error": None, "result": {"a": ["x"]}, "interrupts": []}


def test_a_checkpoint_event_is_what_get_state_says_of_that_checkpoint(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", "y").compile(checkpointer=saver)

    events = run.stream(app, {"a": ["i"]}, thread("1"), stream_mode="checkpoints")

    history = run.history(app, thread("1"))
    assert len(events) == len(history) == 4
    for event, entry in zip(events, reversed(history), strict=True):
        assert event["config"] == entry.config
        assert event["parent_config"] == entry.parent_config
        assert (event["values"], tuple(event["next"])) == (entry.values, entry.next)
        assert event["metadata"] == entry.metadata
        assert [task["id"] for task in event["tasks"]] == [task.id for task in entry.tasks]


def test_debug_wraps_tasks_and_checkpoints(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)

    events = run.stream(app, {"a": []}, thread("1"), stream_mode="debug")

    assert [(event["type"], event["step"]) for event in events] == [
        ("checkpoint", -1),
        ("checkpoint", 0),
        ("task", 1),
        ("task_result", 1),
        ("checkpoint", 1),
    ]
    plain = run.stream(app, {"a": []}, thread("2"), stream_mode=["tasks"])
    assert [event["payload"].keys() for event in events if "task" in event["type"]] == [d.keys() for _, d in plain]


def test_without_a_saver_there_are_no_checkpoint_events(run: Runner) -> None:
    app = chain("x").compile()

    with pytest.warns(PregelWarning, match="stream_mode='checkpoints' shows nothing: the graph has no checkpointer"):
        assert run.stream(app, {"a": []}, stream_mode=["checkpoints"]) == []
    assert [event["type"] for event in run.stream(app, {"a": []}, stream_mode="debug")] == ["task", "task_result"]


def test_a_question_shows_in_every_mode_before_its_run_ends(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("y", y=asks).compile(checkpointer=saver)

    chunks = run.stream(app, {"a": ["i"]}, thread("1"), stream_mode=["updates", "values", "tasks"])

    (_, start), (mode, update), (_, values), (_, end) = chunks[1:]
    assert (start["name"], mode) == ("y", "updates")
    (question,) = update["__interrupt__"]
    assert values == {"a": ["i"], "__interrupt__": (question,)}
    assert end["interrupts"] == [{"value": "ok?", "id": question.id, "response_schema": None}]


def test_a_resumed_step_starts_all_its_tasks_and_ends_those_that_run(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", y=asks).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    chunks = run.stream(app, Command(resume="yes"), thread("1"), stream_mode=ALL)

    assert told(chunks) == [
        "values",
        "checkpoint 0 -> x,y",
        "start x",
        "start y",
        "update x",
        "update y",
        "end y",
        "values",
        "checkpoint 1 -> ",
    ]
    (at_start,) = [data for mode, data in chunks if mode == "checkpoints" and data["next"]]
    finished, asked = at_start["tasks"]
    assert finished["result"] == {"a": ["x"]}
    assert [question["value"] for question in asked["interrupts"]] == ["ok?"]


def test_a_failed_task_ends_with_its_error(run: Runner, saver: Saver, thread: Thread) -> None:
    error = RuntimeError("no")

    def fail(state: State) -> None:
        raise error

    app = chain("x", x=fail).compile(checkpointer=saver)
    seen: list[Any] = []

    with pytest.raises(RuntimeError, match="no"):
        run.follow(seen.append, app, {"a": []}, thread("1"), stream_mode="tasks")

    assert seen[-1]["error"] is error
    assert seen[-1]["result"] == {}


def test_subgraphs_show_under_their_namespace_in_every_mode(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("child", child=chain("y").compile()).compile(checkpointer=saver)

    chunks = run.stream(app, {"a": []}, thread("1"), stream_mode=ALL, subgraphs=True)

    inner = [(mode, data) for ns, mode, data in chunks if ns]
    assert told(inner) == [
        "checkpoint -1 -> __start__",
        "values",
        "checkpoint 0 -> y",
        "start y",
        "update y",
        "end y",
        "values",
        "checkpoint 1 -> ",
    ]
    (ns,) = {ns for ns, _, _ in chunks if ns}
    place = next(data for mode, data in inner if mode == "checkpoints")["config"]["configurable"]
    assert place["checkpoint_ns"] == ns[0]
    assert set(place["checkpoint_map"]) == {"", ns[0]}


def test_a_slow_sibling_delays_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    may_end = threading.Event()

    def slow(state: State) -> dict[str, Any]:
        assert may_end.wait(30)
        return {"a": ["slow"]}

    app = parallel("ask", "quick", "slow", ask=asks, slow=slow).compile(checkpointer=saver)
    modes = ["updates", "tasks"]
    early: list[str] = []

    def heard(chunk: Any) -> None:
        if not may_end.is_set():
            early.extend(told([chunk]))
        if {"update quick", "update __interrupt__"} <= set(early):
            may_end.set()  # never, if the two had to wait for the slow one

    run.follow(heard, app, {"a": []}, thread("1"), stream_mode=modes)

    assert may_end.is_set()


# -- version 2 ---------------------------------------------------------------------------------------------------------


@dataclass
class Total:
    n: int = 0


def typed() -> Any:
    return StateGraph(Total).add_node("x", lambda state: {"n": state.n + 1}).add_edge(START, "x")


def test_version_2_gives_typed_parts(run: Runner) -> None:
    app = chain("x").compile()

    parts = run.stream(app, {"a": ["i"]}, stream_mode=["values", "updates"], version="v2")

    assert parts == [
        {"type": "values", "ns": (), "data": {"a": ["i"]}, "interrupts": ()},
        {"type": "updates", "ns": (), "data": {"x": {"a": ["x"]}}},
        {"type": "values", "ns": (), "data": {"a": ["i", "x"]}, "interrupts": ()},
    ]
    assert run.stream(app, {"a": ["i"]}, stream_mode="updates", version="v2") == [parts[1]]
    assert run.invoke(app, {"a": ["i"]}, stream_mode="updates", version="v2") == [parts[1]]


def test_version_2_values_are_instances_of_the_schema(run: Runner, saver: Saver, thread: Thread) -> None:
    app = typed().compile(checkpointer=saver)

    parts = run.stream(app, {"n": 1}, thread("1"), stream_mode=["values", "checkpoints", "debug"], version="v2")

    assert [part["data"] for part in parts if part["type"] == "values"] == [Total(1), Total(2)]
    last = [part["data"] for part in parts if part["type"] == "checkpoints"][-1]
    assert last["values"] == Total(2)
    assert parts[-1]["data"]["payload"]["values"] == Total(2)
    assert run.invoke(typed().compile(), {"n": 1}, version="v2") == GraphOutput(Total(2))


def test_version_2_keeps_questions_beside_the_values(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("y", y=asks).compile(checkpointer=saver)

    output = run.invoke(app, {"a": ["i"]}, thread("1"), version="v2")
    parts = run.stream(app, None, thread("1"), stream_mode="values", version="v2")

    assert output.value == {"a": ["i"]}
    assert [question.value for question in output.interrupts] == ["ok?"]
    assert parts[-1] == {"type": "values", "ns": (), "data": {"a": ["i"]}, "interrupts": output.interrupts}


@pytest.mark.parametrize("arguments", [{"version": "v3"}, {"print_mode": "nope"}, {"stream_mode": "nope"}])
def test_what_does_not_exist_is_refused(run: Runner, arguments: Any) -> None:
    with pytest.raises(InvalidInputError, match="Unknown"):
        run.stream(chain("x").compile(), {"a": []}, **arguments)


# -- printing ----------------------------------------------------------------------------------------------------------


def test_invoke_takes_what_stream_takes(run: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    app = chain("x", x=chain("y").compile()).compile()

    assert run.invoke(app, {"a": []}, debug=True, subgraphs=True) == {"a": ["y"]}
    assert "updates" in capsys.readouterr().out
    chunks = run.invoke(app, {"a": []}, stream_mode="updates", subgraphs=True)
    assert [(len(ns), update) for ns, update in chunks] == [(1, {"y": {"a": ["y"]}}), (0, {"x": {"a": ["y"]}})]


def test_print_mode_prints_and_changes_no_chunk(run: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    app = chain("x").compile()

    assert run.stream(app, {"a": ["i"]}, stream_mode="values", print_mode="updates") == [
        {"a": ["i"]},
        {"a": ["i", "x"]},
    ]
    assert capsys.readouterr().out == "\x1b[1m[updates]\x1b[0m {'x': {'a': ['x']}}\n"
    assert run.invoke(app, {"a": []}, print_mode=["updates"]) == {"a": ["x"]}
    assert capsys.readouterr().out == "\x1b[1m[updates]\x1b[0m {'x': {'a': ['x']}}\n"


def test_debug_prints_updates_and_values(run: Runner, capsys: pytest.CaptureFixture[str]) -> None:
    run.stream(chain("x").compile(), {"a": []}, debug=True)

    assert [line.split(" ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "\x1b[1m[values]\x1b[0m",
        "\x1b[1m[updates]\x1b[0m",
        "\x1b[1m[values]\x1b[0m",
    ]
