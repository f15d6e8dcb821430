"""What a thread keeps: state, history, questions, branches, failures, and who may run it."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import (
    EmptyInputError,
    InvalidUpdateError,
    MissingThreadError,
    NoCheckpointerError,
    UnknownInterruptError,
)
from pregel.graph import END, START, StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, interrupt

from .conftest import Runner
from .test_runs import Totals, fan, two_nodes

Saver = BaseCheckpointSaver[Any]
Thread = Callable[[str], Any]


class Answers(TypedDict):
    out: Annotated[list[str], operator.add]


def asking(calls: list[str]) -> StateGraph[Any]:
    def ask(state: Answers) -> dict[str, Any]:
        calls.append("ask")
        return {"out": [f"answer={interrupt('approve?')}"]}

    return StateGraph(Answers).add_node("ask", ask).add_edge(START, "ask")


@pytest.mark.acceptance("S1-21", "S1-22")
def test_a_question_pauses_the_run_and_the_answer_continues_it(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    app = asking(calls).compile(checkpointer=saver)

    paused = run.invoke(app, {"out": []}, thread("1"))
    (question,) = paused["__interrupt__"]
    state = run.state(app, thread("1"))

    assert (question.value, len(question.id)) == ("approve?", 32)
    assert (state.next, state.interrupts) == (("ask",), (question,))
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"out": ["answer=yes"]}
    assert calls == ["ask", "ask"]


@pytest.mark.acceptance("S1-21")
def test_no_except_can_swallow_a_question(run: Runner, saver: Saver, thread: Thread) -> None:
    def ask(state: Answers) -> dict[str, Any]:
        try:
            return {"out": [interrupt("q")]}
        except BaseException:
            return {"out": ["skipped"]}

    app = StateGraph(Answers).add_node("ask", ask).add_edge(START, "ask").compile(checkpointer=saver)

    assert [q.value for q in run.invoke(app, {"out": []}, thread("1"))["__interrupt__"]] == ["q"]
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"out": ["yes"]}


@pytest.mark.acceptance("S1-28")
def test_a_question_that_no_saver_could_keep_is_refused(run: Runner) -> None:
    def ask(state: Answers) -> dict[str, Any]:
        try:
            return {"out": [interrupt("q")]}
        except BaseException:
            return {"out": ["skipped"]}

    app = StateGraph(Answers).add_node("ask", ask).add_edge(START, "ask").compile()

    with pytest.raises(NoCheckpointerError, match="no checkpointer could keep the question"):
        run.invoke(app, {"out": []})


def test_a_graph_that_is_piped_into_a_function_asks_through_its_node(run: Runner, saver: Saver, thread: Thread) -> None:
    inner = asking([]).compile()
    graph = StateGraph(Answers).add_node("node", inner | (lambda state: {"out": [len(state["out"])]}))
    app = graph.add_edge(START, "node").compile(checkpointer=saver)

    (question,) = run.invoke(app, {"out": ["a"]}, thread("1"))["__interrupt__"]

    assert question.value == "approve?"
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"out": ["a", 2]}


def test_two_questions_of_one_node_are_asked_one_after_the_other(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(Answers).add_node("n", lambda state: {"out": [interrupt("1"), interrupt("2")]})
    app = graph.add_edge(START, "n").compile(checkpointer=saver)

    (first,) = run.invoke(app, {"out": []}, thread("1"))["__interrupt__"]
    (second,) = run.invoke(app, Command(resume="A"), thread("1"))["__interrupt__"]
    (again,) = run.invoke(app, None, thread("1"))["__interrupt__"]

    assert (first.value, second.value, again) == ("1", "2", second)
    assert first.id != second.id
    assert run.invoke(app, Command(resume={second.id: "B"}), thread("1")) == {"out": ["A", "B"]}


@pytest.mark.parametrize("resume", ["late", {"0" * 32: "x"}, {}])
def test_an_answer_that_no_question_waits_for_is_refused_and_changes_nothing(
    run: Runner, saver: Saver, thread: Thread, resume: Any
) -> None:
    app = two_nodes().compile(checkpointer=saver)
    run.invoke(app, {"total": 1, "visited": []}, thread("1"))
    before = run.history(app, thread("1"))

    with pytest.raises(UnknownInterruptError):
        run.invoke(app, Command(resume=resume), thread("1"))

    assert run.history(app, thread("1")) == before


@pytest.mark.acceptance("S1-34", "S5-3")
def test_a_resume_runs_only_what_is_unfinished(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    trouble = [RuntimeError("first time")]

    def flaky(state: Totals) -> dict[str, Any]:
        calls.append("flaky")
        if trouble:
            raise trouble.pop()
        return {"visited": ["flaky"]}

    def steady(state: Totals) -> dict[str, Any]:
        calls.append("steady")
        return {"visited": ["steady"]}

    graph = StateGraph(Totals).add_node("flaky", flaky).add_node("steady", steady)
    app = graph.add_edge(START, "flaky").add_edge(START, "steady").compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="first time"):
        run.invoke(app, {"total": 0, "visited": []}, thread("1"))

    result = run.invoke(app, None, thread("1"))

    assert result["visited"] == ["flaky", "steady"]
    assert calls.count("flaky") == 2
    assert calls.count("steady") <= 2 if run.name == "async" else calls.count("steady") == 1


@pytest.mark.acceptance("S1-36")
def test_threads_never_see_each_others_values(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver)

    run.invoke(app, {"total": 1, "visited": []}, thread("one"))

    assert run.state(app, thread("two")).values == {}
    assert run.history(app, thread("two")) == []
    assert run.invoke(app, {"total": 5, "visited": []}, thread("two")) == {"total": 11, "visited": ["a", "b"]}
    assert run.state(app, thread("one")).values["total"] == 3


@pytest.mark.acceptance("S1-48")
def test_a_snapshot_says_where_the_thread_stands(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver, interrupt_before=["b"])
    run.invoke(app, {"total": 10, "visited": []}, thread("1"))

    state = run.state(app, thread("1"))

    assert state.values == {"total": 20, "visited": ["a"]}
    assert state.next == ("b",)
    assert state.config["configurable"]["thread_id"] == "1"
    assert state.metadata == {"source": "loop", "step": 1, "parents": {}}
    assert state.created_at is not None
    assert state.parent_config == run.history(app, thread("1"))[1].config
    assert [(task.name, task.result, task.error) for task in state.tasks] == [("b", None, None)]
    assert state.interrupts == ()


@pytest.mark.acceptance("S1-48")
def test_history_walks_from_the_newest_to_the_input(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver)
    run.invoke(app, {"total": 10, "visited": []}, thread("1"))

    history = run.history(app, thread("1"))

    assert [(entry.metadata["step"], entry.next) for entry in history] == [
        (2, ()),
        (1, ("b",)),
        (0, ("a",)),
        (-1, ("__start__",)),
    ]
    parents = [entry.parent_config for entry in history]
    assert parents == [*(entry.config for entry in history[1:]), None]
    assert [entry.metadata["step"] for entry in run.history(app, thread("1"), filter={"step": 1})] == [1]
    assert run.history(app, thread("1"), before=history[1].config, limit=1) == [history[2]]


@pytest.mark.acceptance("S1-49")
def test_a_fork_from_the_past_keeps_the_old_branch(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver)
    run.invoke(app, {"total": 10, "visited": []}, thread("1"))
    before_b = next(entry for entry in run.history(app, thread("1")) if entry.next == ("b",))

    result = run.invoke(app, None, before_b.config)

    history = run.history(app, thread("1"))
    tips = [entry for entry in history if entry.next == ()]
    assert before_b.values == {"total": 20, "visited": ["a"]}
    assert result == {"total": 21, "visited": ["a", "b"]}
    assert [entry.metadata["source"] for entry in history] == ["loop", "fork", "loop", "loop", "loop", "input"]
    assert [tip.values for tip in tips] == [result, result]
    assert history[1].parent_config == before_b.config
    assert history[1].metadata["step"] == 2
    assert run.state(app, thread("1")).config == history[0].config


def test_a_fork_that_an_update_made_needs_no_fork_of_its_own(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver)
    run.invoke(app, {"total": 10, "visited": []}, thread("1"))
    before_b = next(entry for entry in run.history(app, thread("1")) if entry.next == ("b",))

    config = run.update(app, before_b.config, {"total": 100})
    result = run.invoke(app, None, config)

    assert result == {"total": 101, "visited": ["a", "b"]}
    assert [entry.metadata["source"] for entry in run.history(app, thread("1"))].count("fork") == 0


def test_new_input_on_a_failed_step_starts_over_from_before_it(run: Runner, saver: Saver, thread: Thread) -> None:
    trouble = [RuntimeError("once")]

    def fail(state: Totals) -> dict[str, Any]:
        if trouble:
            raise trouble.pop()
        return {"visited": ["n"]}

    app = StateGraph(Totals).add_node("n", fail).add_edge(START, "n").compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="once"):
        run.invoke(app, {"total": 0, "visited": ["i"]}, thread("1"))

    assert run.invoke(app, {"visited": ["j"]}, thread("1"))["visited"] == ["i", "j", "n"]


def test_an_update_as_a_node_plans_what_comes_after_it(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver)

    run.update(app, thread("1"), {"total": 1, "visited": ["u"]})
    fresh = run.state(app, thread("1"))
    run.update(app, thread("1"), {"total": 7}, as_node="a")
    moved = run.state(app, thread("1"))

    assert (fresh.next, fresh.metadata["source"], fresh.metadata["step"]) == (("a",), "update", 0)
    assert (moved.next, moved.values, moved.metadata["step"]) == (("b",), {"total": 7, "visited": ["u"]}, 1)
    assert run.invoke(app, None, thread("1")) == {"total": 8, "visited": ["u", "b"]}


def test_an_update_that_could_be_of_two_nodes_must_say_which(run: Runner, saver: Saver, thread: Thread) -> None:
    graph = StateGraph(Totals)
    for name in "xy":
        graph.add_node(name, lambda state, name=name: {"visited": [name]}).add_edge(START, name)
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"total": 0, "visited": []}, thread("1"))

    with pytest.raises(InvalidUpdateError, match="Ambiguous update"):
        run.update(app, thread("1"), {"total": 1})
    with pytest.raises(InvalidUpdateError, match="does not exist"):
        run.update(app, thread("1"), {"total": 1}, as_node="nobody")
    with pytest.raises(InvalidUpdateError, match="does not exist"):
        run.update(app, thread("1"), {"total": 1}, as_node=END)


def test_an_update_as_end_clears_what_is_pending(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver, interrupt_before=["b"])
    run.invoke(app, {"total": 10, "visited": []}, thread("1"))

    run.update(app, thread("1"), None, as_node=END)

    assert run.state(app, thread("1")).next == ()
    assert run.state(app, thread("1")).values == {"total": 20, "visited": ["a"]}


def test_a_call_that_makes_no_sense_is_refused_before_anything_is_written(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = two_nodes().compile(checkpointer=saver)

    configs: tuple[Any, ...] = ({}, {"configurable": {}}, {"configurable": {"user": "x"}})
    for config in configs:
        with pytest.raises(MissingThreadError):
            run.invoke(app, {"total": 1, "visited": []}, config)
    nothing: tuple[Any, ...] = (None, Command(), Command(resume=None))
    for empty in nothing:
        with pytest.raises(EmptyInputError):
            run.invoke(app, empty, thread("1"))

    assert list(saver.list(None)) == []


def test_thread_ids_are_text_and_reading_makes_no_thread(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver)

    assert run.state(app, {"configurable": {"thread_id": 7}}).values == {}
    assert list(saver.list(None)) == []
    run.invoke(app, {"total": 1, "visited": []}, {"configurable": {"thread_id": 7}})
    assert run.state(app, thread("7")).config["configurable"]["thread_id"] == "7"


@pytest.mark.acceptance("S4-7")
def test_a_node_called_in_a_loop_has_an_identity_for_each_time(run: Runner, saver: Saver, thread: Thread) -> None:
    keys: list[str] = []
    trouble = [RuntimeError("third")]

    def step(state: Totals, runtime: Runtime[Any]) -> dict[str, Any]:
        keys.append(runtime.idempotency_key)
        if state["total"] == 2 and trouble:
            raise trouble.pop()
        return {"total": state["total"] + 1}

    graph = StateGraph(Totals).add_node("step", step).add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["total"] < 4 else END, ["step", END])
    app = graph.compile(checkpointer=saver)
    with pytest.raises(RuntimeError, match="third"):
        run.invoke(app, {"total": 0, "visited": []}, thread("1"))

    run.invoke(app, None, thread("1"))

    assert keys[2] == keys[3]
    assert len(keys) == 5
    assert len(set(keys)) == 4
    tasks = {task.id for entry in run.history(app, thread("1")) for task in entry.tasks if task.name == "step"}
    assert len(tasks) == 4


@pytest.mark.acceptance("S1-44")
@pytest.mark.parametrize("durability", [None, "sync", "async", "exit"])
def test_durability_is_sync_unless_said_otherwise(
    run: Runner, saver: Saver, thread: Thread, durability: str | None
) -> None:
    stored: list[int] = []

    def look(state: Totals) -> dict[str, Any]:
        stored.append(len(list(saver.list(thread("1")))))
        return {"visited": ["x"]}

    graph = StateGraph(Totals)
    for name in ("n1", "n2", "n3"):
        graph.add_node(name, look)
    app = graph.add_edge(START, "n1").add_edge("n1", "n2").add_edge("n2", "n3").compile(checkpointer=saver)
    arguments = {} if durability is None else {"durability": durability}

    result = run.invoke(app, {"total": 0, "visited": []}, thread("1"), **arguments)

    history = run.history(app, thread("1"))
    assert result["visited"] == ["x", "x", "x"]
    assert run.state(app, thread("1")).values["visited"] == ["x", "x", "x"]
    if durability == "exit":
        assert (stored, len(history)) == ([0, 0, 0], 1)
    elif durability == "async":
        assert stored[0] == 2
        assert stored[2] >= 3
        assert len(history) == 5
    else:
        assert (stored, len(history)) == ([2, 3, 4], 5)


@pytest.mark.acceptance("S1-44")
def test_an_unknown_durability_or_stream_mode_is_a_named_error(run: Runner, saver: Saver, thread: Thread) -> None:
    app = two_nodes().compile(checkpointer=saver)

    with pytest.raises(ValueError, match="durability 'sometimes'"):
        run.invoke(app, {"total": 1, "visited": []}, thread("1"), durability="sometimes")
    with pytest.raises(ValueError, match="stream mode 'everything'"):
        run.stream(app, {"total": 1, "visited": []}, thread("1"), stream_mode="everything")


class CountingSaver(InMemorySaver):
    """Counts every verb that is called."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in ("load", "append", "page", "intern", "aload", "aappend", "apage", "aintern", "put", "get_tuple"):
            object.__getattribute__(self, "calls").append(name)
        return object.__getattribute__(self, name)


@pytest.mark.acceptance("S5-8")
def test_a_graph_without_a_saver_makes_no_saver_call(run: Runner, thread: Thread) -> None:
    saver = CountingSaver()
    graph = fan(lambda item: {"out": [item]})

    run.invoke(graph.compile(), {"items": [1, 2], "out": []}, thread("1"))
    without = list(saver.calls)
    run.invoke(graph.compile(checkpointer=saver), {"items": [1, 2], "out": []}, thread("1"))

    assert without == []
    assert "append" in "".join(saver.calls)
