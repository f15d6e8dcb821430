"""update_state and bulk_update_state in all their variants."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.errors import CheckpointNotFoundError, InvalidUpdateError, NoCheckpointerError, NodeReturnError
from pregel.graph import END, START, StateGraph
from pregel.types import Command, Send, StateUpdate, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel


def shape(run: Runner, app: Any, config: Any) -> list[tuple[str, int, tuple[str, ...]]]:
    """What each checkpoint is, oldest first."""
    history = reversed(run.history(app, config))
    return [(entry.metadata["source"], entry.metadata["step"], entry.next) for entry in history]


# -- as whom -----------------------------------------------------------------------------------------------------------


def test_an_update_of_a_fresh_thread_counts_as_the_start(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y").compile(checkpointer=saver)

    config = run.update(app, thread("1"), {"a": ["u"], "b": "v"})

    state = run.state(app, thread("1"))
    assert (state.values, set(state.next)) == ({"a": ["u"], "b": "v"}, {"x", "y"})
    assert (state.metadata["source"], state.metadata["step"], state.parent_config) == ("update", 0, None)
    assert state.config == config
    assert run.invoke(app, None, thread("1"))["a"] == ["u", "x", "y"]


def test_an_update_counts_as_the_node_that_ran_last(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver, interrupt_before=["y"])
    run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), {"a": ["u"]})

    assert run.state(app, thread("1")).next == ("y",)
    assert run.state(app, thread("1")).values == {"a": ["x", "u"]}


@pytest.mark.acceptance("S1-50")
def test_an_update_as_the_paused_node_goes_on_behind_it(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver, interrupt_before=["y"])
    run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), {"a": ["u"]}, as_node="y")

    assert run.state(app, thread("1")).next == ("z",)
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "u", "z"]}


def test_an_update_of_a_graph_with_one_node_is_that_nodes(run: Runner, saver: Saver, thread: Thread) -> None:
    from pregel import NodeBuilder, Pregel
    from pregel.channels import EphemeralValue, LastValue

    node = NodeBuilder().subscribe_only("in").do(lambda value: value + 1).write_to("out")
    app = Pregel(
        nodes={"only": node},
        channels={"in": EphemeralValue(int), "out": LastValue(int)},
        input_channels="in",
        output_channels="out",
        checkpointer=saver,
    )
    run.invoke(app, 1, thread("1"))

    run.update(app, thread("1"), 40)

    assert run.state(app, thread("1")).values["out"] == 40


# -- what the writers do with it ---------------------------------------------------------------------------------------


def test_an_update_runs_the_nodes_branches_but_not_the_node(run: Runner, saver: Saver, thread: Thread) -> None:
    ran: list[str] = []
    graph = StateGraph(State).add_node("x", lambda state: ran.append("x")).add_node("left", mark("left"))
    graph.add_node("right", mark("right")).add_edge(START, "x")
    graph.add_conditional_edges("x", lambda state: state["b"], ["left", "right"])
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"a": [], "b": "left"}, thread("1"))

    run.update(app, thread("1"), {"b": "right"}, as_node="x")

    assert (ran, run.state(app, thread("1")).next) == (["x"], ("right",))


def test_an_update_may_be_a_command(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = chain("x", "y", "z", x=lambda state: Command(update={"a": ["x"]}))
    app = graph.add_node("w", lambda arg: {"a": [arg]}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), Command(update={"a": ["u"]}, goto=["z", Send("w", "sent")]), as_node="x")

    assert sorted(run.state(app, thread("1")).next) == ["w", "y", "z"]
    assert run.invoke(app, None, thread("1"))["a"] == ["x", "y", "z", "u", "y", "z", "sent", "z"]


def test_an_update_of_none_only_moves_on(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), None, as_node="y")

    state = run.state(app, thread("1"))
    assert (state.values, state.next) == ({"a": ["x", "y", "z"]}, ("z",))


def test_what_was_pending_before_an_update_is_given_up(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("p", "q").add_node("x", mark("x")).add_node("y", mark("y")).add_edge("x", "y")
    with pytest.warns(UserWarning, match="'x'"):
        compiled = app.compile(checkpointer=saver, interrupt_before="*")
    run.invoke(compiled, {"a": []}, thread("1"))
    assert set(run.state(compiled, thread("1")).next) == {"p", "q"}

    run.update(compiled, thread("1"), {"a": ["u"]}, as_node="x")

    assert run.state(compiled, thread("1")).next == ("y",)


def test_an_update_with_an_unknown_key_is_refused_and_changes_nothing(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    before = run.history(app, thread("1"))

    with pytest.raises(InvalidUpdateError, match="update_state as node 'x' gave 'nope', but the state has no such key"):
        run.update(app, thread("1"), {"nope": 1}, as_node="x")
    with pytest.raises(NodeReturnError, match="got 7: update_state as node 'x' gave something that is not a state up"):
        run.update(app, thread("1"), 7, as_node="x")

    assert run.history(app, thread("1")) == before


# -- bulk --------------------------------------------------------------------------------------------------------------


def test_each_superstep_of_a_bulk_update_is_one_checkpoint(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)

    run.bulk_update(
        app,
        thread("1"),
        [
            [StateUpdate({"a": ["i"]}, "__input__")],
            [StateUpdate({"a": ["s"]}, "__start__")],
            [StateUpdate({"a": ["u"]}, "x"), StateUpdate({"a": ["v"]}, "y")],
        ],
    )

    assert shape(run, app, thread("1")) == [
        ("input", -1, ("__start__",)),
        ("update", 0, ("x",)),
        ("update", 1, ("y",)),
    ]
    assert run.state(app, thread("1")).values == {"a": ["s", "u", "v"]}


def test_a_bulk_update_refuses_nothing_and_the_unnamed(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)

    with pytest.raises(ValueError, match="No supersteps"):
        run.bulk_update(app, thread("1"), [])
    with pytest.raises(ValueError, match="No updates"):
        run.bulk_update(app, thread("1"), [[]])
    with pytest.raises(InvalidUpdateError):
        run.bulk_update(app, thread("1"), [[StateUpdate({"a": ["1"]}), StateUpdate({"a": ["2"]})]])
    with pytest.raises(InvalidUpdateError):
        run.bulk_update(app, thread("1"), [[StateUpdate(None, END), StateUpdate({"a": ["2"]}, "x")]])

    assert list(saver.list(None)) == []


def test_a_bulk_update_that_fails_in_its_second_superstep_stores_none(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", "y").compile(checkpointer=saver)

    with pytest.raises(InvalidUpdateError):
        run.bulk_update(app, thread("1"), [[StateUpdate({"a": ["1"]}, "x")], [StateUpdate({"a": ["2"]}, "nobody")]])

    assert list(saver.list(None)) == []


# -- the special names -------------------------------------------------------------------------------------------------


def test_an_update_as_the_input_starts_the_graph(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)

    run.update(app, thread("1"), {"a": ["i"]}, as_node="__input__")

    assert shape(run, app, thread("1")) == [("input", -1, ("__start__",))]
    assert run.invoke(app, None, thread("1")) == {"a": ["i", "x"]}


def test_an_update_as_the_end_keeps_what_finished_and_stops(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", y=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), None, as_node=END)

    state = run.state(app, thread("1"))
    assert (state.values, state.next, state.interrupts) == ({"a": ["x"]}, (), ())


@pytest.mark.parametrize("items", [None, [({"a": ["u"]}, "y")]])
def test_a_copy_is_a_sibling_and_may_carry_updates(
    run: Runner, saver: Saver, thread: Thread, items: list[Any] | None
) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    before_y = next(entry for entry in run.history(app, thread("1")) if entry.next == ("y",))

    run.update(app, before_y.config, items, as_node="__copy__")

    new = run.history(app, thread("1"))[: 1 if items is None else 2]
    assert (new[-1].metadata["source"], new[-1].metadata["step"]) == ("fork", 2)
    assert (new[-1].values, new[-1].next) == ({"a": ["x"]}, ("y",))
    assert new[-1].parent_config == before_y.parent_config
    if items is None:
        assert run.invoke(app, None, thread("1")) == {"a": ["x", "y", "z"]}
    else:
        assert (new[0].metadata["source"], new[0].metadata["step"]) == ("update", 3)
        assert (new[0].values, new[0].next) == ({"a": ["x", "u"]}, ("z",))
        assert [task.result for task in new[1].tasks] == [{"a": ["u"]}]
        assert run.invoke(app, None, thread("1")) == {"a": ["x", "u", "z"]}


def test_a_copy_shows_each_update_at_a_task_of_its_own(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State).add_node("w", lambda arg: {"a": [arg]})
    graph.add_conditional_edges(START, lambda state: [Send("w", "1"), Send("w", "2")], ["w"])
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    first, before = run.history(app, thread("1"))[-1], run.history(app, thread("1"))[1]

    run.update(app, before.config, [({"a": ["u"]}, "w"), ({"a": ["v"]}, "w")], as_node="__copy__")
    new, copied = run.history(app, thread("1"))[:2]
    run.update(app, first.config, [({"a": ["in"]}, START)], as_node="__copy__")

    assert new.values == {"a": ["u", "v"]}
    assert [task.result for task in copied.tasks] == [{"a": ["u"]}, {"a": ["v"]}]
    assert [task.result for task in run.history(app, thread("1"))[1].tasks] == [{"a": ["in"]}]


def test_an_update_needs_a_saver_and_a_checkpoint_that_exists(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    nowhere = {"configurable": {"thread_id": "1", "checkpoint_id": "1ef00000-0000-6000-8000-000000000000"}}

    with pytest.raises(NoCheckpointerError):
        run.update(chain("x").compile(), thread("1"), {"a": ["u"]})
    with pytest.raises(CheckpointNotFoundError):
        run.update(app, nowhere, {"a": ["u"]})
    with pytest.raises(InvalidUpdateError):
        run.update(app, thread("unknown"), None, as_node="__copy__")


def test_an_update_of_a_task_says_which(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State).add_node("w", lambda arg: {"a": [interrupt(arg)]})
    graph.add_conditional_edges(START, lambda state: [Send("w", "1"), Send("w", "2")], ["w"])
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    second = run.state(app, thread("1")).tasks[1].id

    run.bulk_update(app, thread("1"), [[StateUpdate({"a": ["u"]}, "w", second)]])

    asked = run.history(app, thread("1"))[1]
    assert {task.id: task.result for task in asked.tasks} == {asked.tasks[0].id: None, second: {"a": ["u"]}}
    assert run.state(app, thread("1")).values == {"a": ["u"]}
