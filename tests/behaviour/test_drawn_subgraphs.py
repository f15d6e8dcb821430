"""A picture that looks into subgraphs shows how far each node in them has come, from the checkpoints of each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pregel.graph import START, StateGraph
from pregel.graph.draw import awhole_history, whole_history
from pregel.types import Command, Send, StateSnapshot, interrupt

from .conftest import Awaiting, Runner
from .marks import Saver, State, Thread, chain, failing_once


def asks(state: Any) -> Any:
    return {"a": [interrupt("well?")]}


def whole(run: Runner, app: Any, config: Any) -> list[StateSnapshot]:
    if isinstance(run, Awaiting):
        return asyncio.run(awhole_history(app, config))
    return whole_history(app, config)


def drawn(run: Runner, app: Any, config: Any) -> str:
    text: str = app.get_graph(xray=True).draw_ascii(run=whole(run, app, config))
    return text


def around(inner: Any, saver: Saver, **options: Any) -> Any:
    return chain("first", "inner", "last", inner=inner).compile(checkpointer=saver, **options)


@pytest.mark.parametrize("checkpointer", [None, True], ids=["for a run", "persistent"])
def test_what_ended_and_what_waits_in_subgraphs_is_marked(
    run: Runner, saver: Saver, thread: Thread, checkpointer: bool | None
) -> None:
    deep = chain("one", "two", "three", two=asks).compile()
    app = around(chain("before", "deep", "after", deep=deep).compile(checkpointer=checkpointer), saver)

    run.invoke(app, {"a": []}, thread("1"))
    asked = drawn(run, app, thread("1"))
    run.invoke(app, Command(resume="yes"), thread("1"))
    ended = drawn(run, app, thread("1"))

    for part in ("✓ first", "✓ inner:before", "✓ inner:deep:one", "‖ inner:deep:two"):
        assert part in asked
    for part in ("│ inner:deep:three │", "│ inner:after │", "│ last │"):
        assert part in asked
    for name in (
        "first",
        "inner:before",
        "inner:deep:one",
        "inner:deep:two",
        "inner:deep:three",
        "inner:after",
        "last",
    ):
        assert f"✓ {name}" in ended


def test_what_failed_and_what_is_to_run_in_a_subgraph_is_marked(run: Runner, saver: Saver, thread: Thread) -> None:
    inner = chain("x", "bad", "z", bad=failing_once("bad", ValueError("no")))
    app = around(inner.compile(interrupt_before=["bad"]), saver)

    run.invoke(app, {"a": []}, thread("1"))
    paused = drawn(run, app, thread("1"))
    with pytest.raises(ValueError, match="no"):
        run.invoke(app, None, thread("1"))
    failed = drawn(run, app, thread("1"))

    assert "▶ inner:bad" in paused
    for text, mark in ((paused, "▶"), (failed, "✗")):
        assert all(part in text for part in ("✓ inner:x", f"{mark} inner:bad", "│ inner:z │"))


def test_of_several_runs_of_a_subgraph_the_one_that_waits_is_shown(run: Runner, saver: Saver, thread: Thread) -> None:
    def maybe(state: State) -> Any:
        return asks(state) if state.get("b") == "ask" else {"a": ["went"]}

    graph = StateGraph(State).add_node("inner", chain("maybe", "after", maybe=maybe).compile())
    graph.add_conditional_edges(START, lambda _: [Send("inner", {"a": [], "b": b}) for b in ("ask", "go")], ["inner"])
    app = graph.compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"))

    text = drawn(run, app, thread("1"))
    assert "‖ inner:maybe" in text
    assert "✓ inner:after" in text  # in the other one


def test_a_subgraph_that_the_thread_has_left_shows_what_ended_in_it(run: Runner, saver: Saver, thread: Thread) -> None:
    app = around(chain("x", "y", y=asks).compile(), saver)

    run.invoke(app, {"a": []}, thread("1"))
    run.update(app, thread("1"), {"a": ["by hand"]}, as_node="inner")

    text = drawn(run, app, thread("1"))
    assert all(part in text for part in ("✓ inner:x", "│ inner:y │", "▶ last"))


def test_the_history_of_a_subgraph_is_drawn_on_its_own_graph(run: Runner, saver: Saver, thread: Thread) -> None:
    inner = chain("x", "y", y=asks).compile()
    app = around(inner, saver)

    run.invoke(app, {"a": []}, thread("1"))

    (task,) = run.state(app, thread("1")).tasks
    text = inner.get_graph().draw_ascii(run=run.history(app, task.state))
    assert all(part in text for part in ("✓ x", "‖ y"))


def test_a_task_that_has_its_answer_is_done_while_another_one_waits(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(State).add_node("one", asks).add_node("two", asks)
    app = graph.add_edge(START, "one").add_edge(START, "two").compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"))
    (question,) = next(task.interrupts for task in run.state(app, thread("1")).tasks if task.name == "one")
    run.invoke(app, Command(resume={question.id: "yes"}), thread("1"))

    text = drawn(run, app, thread("1"))
    assert all(part in text for part in ("✓ one", "‖ two"))
