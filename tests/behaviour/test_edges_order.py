"""Which tasks a superstep has, what they are called, and in which order their writes count."""

from __future__ import annotations

import operator
import threading
from typing import Annotated, Any, TypedDict

import pytest

from pregel.errors import InvalidUpdateError
from pregel.graph import START, StateGraph
from pregel.types import Command, Overwrite, Send

from .conftest import Runner
from .marks import Saver, State, Thread, chain, failing_once, mark, parallel
from .test_traces import counter


def sends(n: int) -> StateGraph[Any]:
    """Nodes zz and aa beside n Sends to w, in one superstep."""
    graph = StateGraph(State).add_node("zz", mark("zz")).add_node("aa", mark("aa"))
    graph.add_node("w", lambda arg: {"a": [str(arg)]})
    graph.add_edge(START, "zz").add_edge(START, "aa")
    return graph.add_conditional_edges(START, lambda state: [Send("w", i) for i in range(n)], ["w"])


@pytest.mark.acceptance("S1-32")
def test_nodes_come_by_name_and_twelve_sends_by_number(run: Runner, saver: Saver, thread: Thread) -> None:
    app = sends(12).compile(checkpointer=saver)

    result = run.invoke(app, {"a": []}, thread("1"))

    assert result["a"] == ["aa", "zz", *map(str, range(12))]


def test_the_order_holds_when_the_last_one_finishes_first(run: Runner) -> None:
    shown = {f"n{n}": threading.Event() for n in range(4)}
    chunks: list[Any] = []

    def node(state: Any, n: int) -> dict[str, Any]:
        if n < 3:
            assert shown[f"n{n + 1}"].wait(60)
        return {"a": [str(n)]}

    def heard(chunk: Any) -> None:
        chunks.append(chunk)
        if chunk[0] == "updates":
            shown[next(iter(chunk[1]))].set()

    graph = StateGraph(State)
    for n in range(4):
        graph.add_node(f"n{n}", lambda state, n=n: node(state, n)).add_edge(START, f"n{n}")

    run.follow(heard, graph.compile(), {"a": []}, stream_mode=["updates", "values"])

    assert chunks[-1] == ("values", {"a": ["0", "1", "2", "3"]})
    assert [next(iter(chunk)) for mode, chunk in chunks if mode == "updates"] == ["n3", "n2", "n1", "n0"]


def test_tasks_are_named_by_what_woke_them(run: Runner, saver: Saver, thread: Thread) -> None:
    app = sends(2).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    step = next(entry for entry in run.history(app, thread("1")) if entry.metadata["step"] == 0)

    assert [(task.name, task.path) for task in step.tasks if task.name == "w"] == [
        ("w", ("__pregel_push", 0, False)),
        ("w", ("__pregel_push", 1, False)),
    ]
    assert {task.name: task.path for task in step.tasks if task.name != "w"} == {
        "aa": ("__pregel_pull", "aa"),
        "zz": ("__pregel_pull", "zz"),
    }
    assert len({task.id for task in step.tasks}) == 4
    assert all([len(part) for part in task.id.split("-")] == [8, 4, 4, 4, 12] for task in step.tasks)


def test_a_task_id_is_the_same_when_the_task_runs_again_and_new_in_a_fork(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", x=failing_once("x", RuntimeError("once"))).compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="once"):
        run.invoke(app, {"a": []}, thread("1"))
    (failed,) = run.state(app, thread("1")).tasks

    run.invoke(app, None, thread("1"))
    before = next(entry for entry in run.history(app, thread("1")) if entry.next == ("x",))
    run.invoke(app, None, before.config)
    fork = run.history(app, thread("1"))[1]

    assert before.tasks[0].id == failed.id
    assert fork.metadata["source"] == "fork"
    assert fork.tasks[0].id != failed.id


def test_a_node_wakes_once_for_several_edges_into_it(run: Runner) -> None:
    graph = parallel("x", "y").add_node("z", mark("z")).add_edge("x", "z").add_edge("y", "z")

    assert run.invoke(graph.compile(), {"a": []})["a"] == ["x", "y", "z"]


def test_what_a_node_has_seen_is_stored_with_its_counter(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    woken = [("__start__", "__start__"), ("x", "branch:to:x"), ("y", "branch:to:y")]

    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, {"a": []}, thread("1"))

    first, *_, last = reversed([saved.checkpoint for saved in saver.list(thread("1"))])
    assert first["versions_seen"] == {"__input__": {}}
    assert set(last["versions_seen"]) == {"__input__", "__start__", "x", "y"}
    assert [counter(last["versions_seen"][node][channel]) for node, channel in woken] == [5, 6, 7]
    assert {name: counter(version) for name, version in last["channel_versions"].items()} == {
        "__start__": 6,
        "a": 8,
        "branch:to:x": 7,
        "branch:to:y": 8,
    }


# -- packets and overwrites --------------------------------------------------------------------------------------------


def test_a_node_may_return_one_send_and_no_bare_list_of_them(run: Runner) -> None:
    work = {"w": lambda arg: {"a": [str(arg)]}}
    one = chain("x", x=lambda state: Send("w", 1)).add_node("w", work["w"])
    two = chain("x", x=lambda state: [Send("w", 1), Send("w", 2)]).add_node("w", work["w"])
    goto = chain("x", x=lambda state: Command(goto=[Send("w", 1), Send("w", 2)])).add_node("w", work["w"])

    assert run.invoke(one.compile(), {"a": []})["a"] == ["1"]
    assert run.invoke(goto.compile(), {"a": []})["a"] == ["1", "2"]
    with pytest.raises(InvalidUpdateError, match="Expected dict"):
        run.invoke(two.compile(), {"a": []})


@pytest.mark.parametrize("value", [Overwrite(["only"]), {"__overwrite__": ["only"]}])
@pytest.mark.parametrize("name", ["a_first", "z_last"])
def test_an_overwrite_wins_over_its_siblings_wherever_it_stands(run: Runner, value: Any, name: str) -> None:
    graph = parallel("m", "n", name, **{name: lambda state: {"a": value}})
    graph.add_node("after", mark("after")).add_edge("m", "after")

    assert run.invoke(graph.compile(), {"a": ["old"]})["a"] == ["only", "after"]


def test_two_overwrites_in_one_step_are_refused_and_leave_no_checkpoint(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    over = lambda state: {"a": Overwrite(["only"])}  # noqa: E731  # twice the same node
    app = parallel("x", "y", x=over, y=over).compile(checkpointer=saver)

    with pytest.raises(InvalidUpdateError, match="Overwrite"):
        run.invoke(app, {"a": ["old"]}, thread("1"))

    assert [entry.metadata["step"] for entry in run.history(app, thread("1"))] == [0, -1]


def test_an_overwrite_of_a_plain_key_is_its_value(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", x=lambda state: {"b": Overwrite("plain")}).compile(checkpointer=saver)

    assert run.invoke(app, {"a": []}, thread("1"))["b"] == "plain"
    assert run.state(app, thread("1")).values["b"] == "plain"


def test_a_conflict_names_its_key_and_leaves_no_checkpoint_of_the_step(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    same = lambda state: {"b": "same"}  # noqa: E731  # twice the same node
    app = parallel("x", "y", x=same, y=same).compile(checkpointer=saver)

    with pytest.raises(InvalidUpdateError, match="'b'") as caught:
        run.invoke(app, {"a": []}, thread("1"))

    assert getattr(caught.value, "code", "") == "INVALID_CONCURRENT_GRAPH_UPDATE"
    state = run.state(app, run.history(app, thread("1"))[0].config)
    assert (state.metadata["step"], state.values, set(state.next)) == (0, {"a": []}, {"x", "y"})


def test_a_healed_reducer_lets_a_failed_barrier_pass_and_nothing_runs_again(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    broken = [True]
    calls: list[str] = []

    def fold(left: list[str], right: list[str]) -> list[str]:
        if broken and right:
            raise ValueError("reducer")
        return left + right

    def node(state: list[str]) -> list[str]:
        calls.append("x")
        return ["x"]

    bare: Any = Annotated[list[str], fold]
    graph = StateGraph(bare)
    app = graph.add_node("x", node).add_edge(START, "x").compile(checkpointer=saver)
    with pytest.raises(ValueError, match="reducer"):
        run.invoke(app, [], thread("1"))
    with pytest.raises(ValueError, match="reducer"):
        run.invoke(app, None, thread("1"))

    broken.clear()

    assert run.invoke(app, None, thread("1")) == ["x"]
    assert calls == ["x"]


def test_a_reducer_key_adds_up_what_one_command_writes_twice(run: Runner) -> None:
    class Count(TypedDict):
        n: Annotated[int, operator.add]

    graph = StateGraph(Count).add_node("x", lambda state: Command(update=[("n", 2), ("n", 3)])).add_edge(START, "x")

    assert run.invoke(graph.compile(), {"n": 1}) == {"n": 6}
    assert run.stream(graph.compile(), {"n": 1}, stream_mode="updates") == [{"x": [{"n": 2}, {"n": 3}]}]
