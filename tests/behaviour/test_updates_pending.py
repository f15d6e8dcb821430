"""update_state over work that is pending: questions, failures, half finished steps, joins."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.errors import UnknownInterruptError
from pregel.graph import START
from pregel.types import Command, interrupt

from .conftest import Runner
from .marks import Saver, Thread, chain, failing_once, mark, parallel


def test_an_update_as_a_node_that_asks_takes_its_question_away(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z", y=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), {"a": ["u"]}, as_node="y")

    state = run.state(app, thread("1"))
    assert (state.next, state.interrupts) == (("z",), ())
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "u", "z"]}


def test_an_update_as_the_node_before_a_question_leaves_the_node_pending_unasked(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = chain("x", x=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)
    (first,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]

    run.update(app, thread("1"), {"a": ["u"]}, as_node=START)

    state = run.state(app, thread("1"))
    assert (state.next, state.interrupts, state.values) == (("x",), (), {"a": ["u"]})
    (again,) = run.invoke(app, None, thread("1"))["__interrupt__"]
    assert (again.value, again.id == first.id) == ("?", False)
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"a": ["u", "yes"]}


@pytest.mark.parametrize("values", [{"a": ["u"]}, None])
def test_an_update_for_a_pending_node_keeps_what_its_siblings_finished(
    run: Runner, saver: Saver, thread: Thread, values: Any
) -> None:
    graph = parallel("w", "x", "y", y=lambda state: {"a": [interrupt("?")]}).add_node("z", mark("z"))
    app = graph.add_edge(["w", "x", "y"], "z").add_node("e", mark("e")).add_edge("w", "e").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), values, as_node="y")

    stands = ["w", "x"] if values is None else ["w", "x", "u"]
    assert run.state(app, thread("1")).values == {"a": stands}
    assert run.invoke(app, None, thread("1")) == {"a": [*stands, "e", "z"]}


def test_it_keeps_that_also_when_it_is_addressed_and_in_a_subgraph(run: Runner, saver: Saver, thread: Thread) -> None:
    inner = parallel("x", "y", y=lambda state: {"a": [interrupt("?")]}).add_node("z", mark("z")).add_edge("x", "z")
    app = chain("p", p=inner.compile()).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    (task,) = run.state(app, thread("1"), subgraphs=True).tasks

    run.update(app, task.state.config, {"a": ["u"]}, as_node="y")

    assert run.invoke(app, None, thread("1")) == {"a": ["x", "u", "z"]}


@pytest.mark.parametrize("as_node", [None, START])
def test_an_update_from_before_a_half_finished_step_plans_the_step_anew(
    run: Runner, saver: Saver, thread: Thread, as_node: str | None
) -> None:
    app = parallel("x", "y", y=lambda state: {"a": [interrupt("?")]}).compile(checkpointer=saver)
    run.invoke(app, {"a": ["i"]}, thread("1"))

    run.update(app, thread("1"), {"b": "new"}, as_node=as_node)

    state = run.state(app, thread("1"))
    assert (state.values, set(state.next)) == ({"a": ["i"], "b": "new"}, {"x", "y"})
    assert [question.value for question in run.invoke(app, None, thread("1"))["__interrupt__"]] == ["?"]
    assert run.invoke(app, Command(resume="yes"), thread("1"))["a"] == ["i", "x", "yes"]


def test_an_update_keeps_what_a_command_wrote_before_a_failure(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", y=failing_once("y", RuntimeError("once"))).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"), interrupt_before=["y"])
    with pytest.raises(RuntimeError, match="once"):
        run.invoke(app, Command(update={"a": ["c"]}), thread("1"))

    run.update(app, thread("1"), {"b": "new"})

    assert run.state(app, thread("1")).values == {"a": ["x", "c"], "b": "new"}
    assert run.invoke(app, None, thread("1"))["a"] == ["x", "c", "y"]


@pytest.mark.parametrize("defer", [False, True])
def test_an_update_as_a_node_that_waited_for_others_is_its_turn(
    run: Runner, saver: Saver, thread: Thread, defer: bool
) -> None:
    graph = parallel("x", "y").add_node("z", mark("z"), defer=defer).add_node("e", mark("e"))
    app = graph.add_edge(["x", "y"], "z").add_edge("z", "e").compile(checkpointer=saver, interrupt_before=["z"])
    run.invoke(app, {"a": []}, thread("1"))

    run.update(app, thread("1"), {"a": ["u"]}, as_node="z")

    assert run.state(app, thread("1")).next == ("e",)
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y", "u", "e"]}
    assert run.invoke(app, {"a": []}, thread("1"), interrupt_before=[])["a"][4:] == ["x", "y", "z", "e"]


@pytest.mark.parametrize("as_node", ["asks", None])
def test_an_update_of_a_subgraph_takes_its_question_from_the_graphs_around_it(
    run: Runner, saver: Saver, thread: Thread, as_node: str | None
) -> None:
    inner = chain("asks", "after", asks=lambda state: {"a": [interrupt("inner?")]}).compile()
    middle = chain("middle", middle=inner).compile()
    app = parallel("x", "y", x=middle, y=lambda state: {"a": [interrupt("other?")]}).compile(checkpointer=saver)
    asked = run.invoke(app, {"a": ["in"]}, thread("1"))["__interrupt__"]
    [old] = [question.id for question in asked if question.value == "inner?"]
    [outer] = [task.state for task in run.state(app, thread("1"), subgraphs=True).tasks if task.state is not None]

    run.update(app, outer.tasks[0].state.config, {"a": ["mended"]}, as_node=as_node)

    assert ["other?"] == [question.value for question in run.state(app, thread("1")).interrupts]
    with pytest.raises(UnknownInterruptError, match=old):
        run.invoke(app, Command(resume={old: "lost"}), thread("1"))
    ended = run.invoke(app, Command(resume="here"), thread("1"))
    if as_node is None:
        [again] = ended["__interrupt__"]
        assert "inner?" == again.value != old
        ended = run.invoke(app, Command(resume="there"), thread("1"))
    assert "here" in ended["a"]
    assert (as_node is None) == ("there" in ended["a"])
