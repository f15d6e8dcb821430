"""The reference traces: what is stored, checkpoint by checkpoint, with counters, names and pending writes."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.func import entrypoint, task
from pregel.graph import END, START, StateGraph
from pregel.types import Command, Send, interrupt

from .conftest import Runner

Saver = BaseCheckpointSaver[Any]
Thread = Callable[[str], Any]


class State(TypedDict):
    a: Annotated[list[str], operator.add]
    b: str


def counter(version: Any) -> int:
    return int(str(version).split(".")[0])


def trace(saver: Saver, config: Any) -> list[dict[str, Any]]:
    """The checkpoints of a thread, oldest first, reduced to what the traces name."""
    found = []
    for saved in reversed(list(saver.list(config))):
        checkpoint = saved.checkpoint
        found.append(
            {
                "is": (saved.metadata["source"], saved.metadata["step"]),
                "values": checkpoint["channel_values"],
                "versions": {k: counter(v) for k, v in checkpoint["channel_versions"].items()},
                "seen": {
                    node: {k: counter(v) for k, v in seen.items()} for node, seen in checkpoint["versions_seen"].items()
                },
                "updated": checkpoint["updated_channels"],
                "w": [(channel, value) for _, channel, value in saved.pending_writes or ()],
            }
        )
    return found


@pytest.mark.acceptance("S1-30")
def test_a_linear_run_leaves_one_checkpoint_a_step(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State)
    graph.add_node("n1", lambda state: {"a": ["n1"]})
    graph.add_node("n2", lambda state: {"a": ["n2"], "b": "x"})
    graph.add_edge(START, "n1").add_edge("n1", "n2").add_edge("n2", END)

    run.invoke(graph.compile(checkpointer=saver), {"a": ["i"]}, thread("1"))

    assert trace(saver, thread("1")) == [
        {
            "is": ("input", -1),
            "values": {"__start__": {"a": ["i"]}},
            "versions": {"__start__": 1},
            "seen": {"__input__": {}},
            "updated": ["__start__"],
            "w": [("a", ["i"]), ("branch:to:n1", None)],
        },
        {
            "is": ("loop", 0),
            "values": {"a": ["i"], "branch:to:n1": None},
            "versions": {"__start__": 2, "a": 2, "branch:to:n1": 2},
            "seen": {"__input__": {}, "__start__": {"__start__": 1}},
            "updated": ["a", "branch:to:n1"],
            "w": [("a", ["n1"]), ("branch:to:n2", None)],
        },
        {
            "is": ("loop", 1),
            "values": {"a": ["i", "n1"], "branch:to:n2": None},
            "versions": {"__start__": 2, "a": 3, "branch:to:n1": 3, "branch:to:n2": 3},
            "seen": {"__input__": {}, "__start__": {"__start__": 1}, "n1": {"branch:to:n1": 2}},
            "updated": ["a", "branch:to:n2"],
            "w": [("a", ["n2"]), ("b", "x")],
        },
        {
            "is": ("loop", 2),
            "values": {"a": ["i", "n1", "n2"], "b": "x"},
            "versions": {"__start__": 2, "a": 4, "b": 4, "branch:to:n1": 3, "branch:to:n2": 4},
            "seen": {
                "__input__": {},
                "__start__": {"__start__": 1},
                "n1": {"branch:to:n1": 2},
                "n2": {"branch:to:n2": 3},
            },
            "updated": ["a", "b"],
            "w": [],
        },
    ]


@pytest.mark.acceptance("S1-64")
def test_a_fan_in_stores_what_arrived_and_is_empty_after_it_fired(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State)
    for name in "pqj":
        graph.add_node(name, lambda state, name=name: {"a": [name]})
    graph.add_edge(START, "p").add_edge(START, "q").add_edge(["p", "q"], "j")

    run.invoke(graph.compile(checkpointer=saver), {"a": []}, thread("1"))

    _, fanned, joined, fired = trace(saver, thread("1"))
    assert {"branch:to:p", "branch:to:q"} <= fanned["values"].keys()
    assert joined["values"]["join:p+q:j"] == {"p", "q"}
    assert joined["versions"]["join:p+q:j"] == 3
    assert fired["values"]["join:p+q:j"] == set()
    assert fired["versions"]["join:p+q:j"] == 4
    assert "join:p+q:j" not in fired["updated"]
    assert fired["seen"]["j"]["join:p+q:j"] == 3


@pytest.mark.acceptance("S1-16")
def test_sends_wait_in_their_topic_for_the_next_step(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State)
    graph.add_node("w", lambda arg: {"a": [arg]})
    graph.add_conditional_edges(START, lambda state: [Send("w", "1"), Send("w", "2")], ["w"])

    run.invoke(graph.compile(checkpointer=saver), {"a": ["i"]}, thread("1"))

    start, sent, done = trace(saver, thread("1"))
    packets = [Send("w", "1"), Send("w", "2")]
    assert start["w"] == [("a", ["i"]), ("__pregel_tasks", packets[0]), ("__pregel_tasks", packets[1])]
    assert (sent["values"]["__pregel_tasks"], sent["versions"]["__pregel_tasks"]) == (packets, 2)
    assert sent["w"] == [("a", ["1"]), ("a", ["2"])]
    assert (done["values"].get("__pregel_tasks", []), done["versions"]["__pregel_tasks"]) == ([], 3)
    assert done["seen"]["w"] == {}


@pytest.mark.acceptance("S1-21")
@pytest.mark.acceptance("S1-34")
def test_a_question_is_stored_beside_the_finished_sibling(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State)
    graph.add_node("x", lambda state: {"a": ["x"]})
    graph.add_node("y", lambda state: {"a": [interrupt("?")]})
    graph.add_edge(START, "x").add_edge(START, "y")
    app = graph.compile(checkpointer=saver)

    (question,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    paused = trace(saver, thread("1"))[-1]
    run.invoke(app, Command(resume="R"), thread("1"))
    _, resumed, done = trace(saver, thread("1"))

    assert paused["is"] == ("loop", 0)
    assert paused["w"] == [("a", ["x"]), ("__interrupt__", [question])]
    assert sorted(resumed["w"], key=repr) == sorted(
        [("a", ["x"]), ("__resume__", ["R"]), ("__interrupt__", [question]), ("a", ["R"])], key=repr
    )
    assert done["seen"]["__interrupt__"] == paused["versions"]


@pytest.mark.acceptance("S1-65")
def test_a_deferred_node_waits_in_its_channel_until_the_end(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State)
    graph.add_node("a1", lambda state: {"a": ["a1"]})
    graph.add_node("b1", lambda state: {"a": ["b1"]})
    graph.add_node("d", lambda state: {"a": ["d"]}, defer=True)
    graph.add_edge(START, "a1").add_edge("a1", "b1").add_edge("a1", "d")

    run.invoke(graph.compile(checkpointer=saver), {"a": []}, thread("1"))

    waiting, ready, gone = trace(saver, thread("1"))[2:]
    assert list(waiting["values"]["branch:to:d"]) == [None, False]
    assert "branch:to:d" not in waiting["updated"]
    assert list(ready["values"]["branch:to:d"]) == [None, True]
    assert (ready["versions"]["branch:to:d"], "branch:to:d" in ready["updated"]) == (4, True)
    assert ("branch:to:d" in gone["values"], gone["versions"]["branch:to:d"]) == (False, 5)


@pytest.mark.acceptance("S1-33")
def test_an_error_is_stored_as_text_beside_the_finished_sibling(run: Runner, saver: Saver, thread: Thread) -> None:
    x_runs = threading.Event()

    def x(state: State) -> dict[str, Any]:
        x_runs.set()
        return {"a": ["x"]}

    def boom(state: State) -> None:
        assert x_runs.wait(60)
        raise ValueError("boom")

    graph = StateGraph(State)
    graph.add_node("x", x)
    graph.add_node("y", boom)
    graph.add_edge(START, "x").add_edge(START, "y")
    app = graph.compile(checkpointer=saver)

    with pytest.raises(ValueError, match="boom"):
        run.invoke(app, {"a": []}, thread("1"))

    last = trace(saver, thread("1"))[-1]
    assert last["is"] == ("loop", 0)
    assert last["w"] == [("a", ["x"]), ("__error__", "ValueError('boom')")]


def test_an_update_shows_its_writes_on_the_checkpoint_before(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State)
    graph.add_node("n", lambda state: {"a": ["n"]})
    graph.add_node("m", lambda state: {"a": ["m"]})
    graph.add_edge(START, "n").add_edge("n", "m")
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    seen_before = trace(saver, thread("1"))[-1]["seen"]

    run.update(app, thread("1"), {"a": ["u"]}, as_node="n")

    *_, head, update = trace(saver, thread("1"))
    assert head["w"] == [("a", ["u"]), ("branch:to:m", None)]
    assert update["is"] == ("update", 3)
    assert update["values"] == {"a": ["n", "m", "u"], "branch:to:m": None}
    assert update["versions"]["branch:to:m"] == 5
    assert update["seen"] == seen_before
    assert update["updated"] is None


def test_calls_of_an_entrypoint_stand_beside_its_own_writes(run: Runner, saver: Saver, thread: Thread) -> None:
    @task
    def add(n: int) -> int:
        return n

    @entrypoint(checkpointer=saver)
    def wf(n: int) -> list[int]:
        return [add(1).result(), add(2).result()]

    run.invoke(wf, 0, thread("1"))

    start, end = trace(saver, thread("1"))
    ends = {"__end__": [1, 2], "__previous__": [1, 2]}
    assert (("input", -1), {"__start__": 0}) == (start["is"], start["values"])
    assert (("loop", 0), ends, {"__start__": 1}) == (end["is"], end["values"], end["seen"]["wf"])
    kept = [write for write in start["w"] if write[0] != "__memo__"]
    assert [*ends.items(), ("__return__", 1), ("__return__", 2)] == sorted(
        kept, key=lambda write: (write[0], str(write[1]))
    )
