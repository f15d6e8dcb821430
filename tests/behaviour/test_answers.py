"""Answers: by id, in parts, of a type, and those that are rejected: the question stays open and nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel, ValidationError

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import AmbiguousResumeError, UnknownInterruptError, is_invalid_resume
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.types import Command, RetryPolicy, Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel


class Approval(BaseModel):
    ok: bool
    amount: int


@dataclass
class Choice:
    name: str


class Typed(TypedDict):
    ok: bool


@pytest.fixture
def memory() -> Saver:
    """A saver, for what is the same on each."""
    return InMemorySaver()


def asks(schema: Any) -> Any:
    return lambda state: {"a": [repr(interrupt("sure?", response_schema=schema))]}


@pytest.mark.parametrize(
    ("schema", "bad", "good", "shown"),
    [
        (Approval, {"ok": "what"}, {"ok": True, "amount": 3}, "Approval(ok=True, amount=3)"),
        (Choice, {"nome": "x"}, {"name": "x"}, "Choice(name='x')"),
        (Typed, {"ok": "what"}, {"ok": False}, "{'ok': False}"),
        (int, "many", 3, "3"),
    ],
)
def test_an_answer_of_the_wrong_kind_leaves_the_question_open(
    run: Runner, memory: Saver, thread: Thread, schema: Any, bad: Any, good: Any, shown: str
) -> None:
    app = chain("ask", ask=asks(schema)).compile(checkpointer=memory)
    (question,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]

    before = run.state(app, thread("1"))
    with pytest.raises(ValidationError) as raised:
        run.invoke(app, Command(resume=bad), thread("1"))

    assert is_invalid_resume(raised.value)
    assert (("ask",), (question,)) == (before.next, before.interrupts)
    assert before == run.state(app, thread("1"))
    assert [shown] == run.invoke(app, Command(resume=good), thread("1"))["a"]


def test_whoever_answers_sees_the_schema(run: Runner, memory: Saver, thread: Thread) -> None:
    app = chain("ask", ask=asks(Approval)).compile(checkpointer=memory)
    run.invoke(app, {"a": []}, thread("1"))

    (question,) = run.state(app, thread("1")).interrupts
    assert question.response_schema is not None
    assert ["ok", "amount"] == question.response_schema["required"]


@pytest.mark.parametrize("mended", [False, True], ids=["known-before", "known-to-the-node-only"])
def test_a_rejected_answer_is_not_tried_again_and_other_answers_stay(
    run: Runner, saver: Saver, thread: Thread, mended: bool
) -> None:
    runs = list[str]()

    def ask(state: State) -> dict[str, Any]:
        runs.append("ask")
        schema = None if mended and len(runs) < 3 else int
        return {"a": [interrupt("name?"), str(interrupt("number?", response_schema=schema))]}

    policy = RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=Exception)
    graph = StateGraph(State)
    graph.add_node("ask", ask, retry_policy=policy)
    graph.add_edge(START, "ask")
    app = graph.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, Command(resume="Ann"), thread("1"))

    with pytest.raises(ValidationError):
        run.invoke(app, Command(resume="many"), thread("1"))

    assert (3 if mended else 2) == len(runs)
    assert ["Ann", "5"] == run.invoke(app, Command(resume=5), thread("1"))["a"]


def test_answers_are_refused_together_when_one_does_not_fit(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("p", "q", p=asks(int), q=asks(int)).compile(checkpointer=saver)
    asked = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    before = run.state(app, thread("1"))

    with pytest.raises(ValidationError):
        run.invoke(app, Command(resume={asked[0].id: 1, asked[1].id: "many"}), thread("1"))

    assert before == run.state(app, thread("1"))
    assert ["1", "2"] == run.invoke(app, Command(resume={asked[0].id: 1, asked[1].id: "2"}), thread("1"))["a"]


def test_a_rejected_answer_deep_inside_is_open_on_every_level(run: Runner, memory: Saver, thread: Thread) -> None:
    inner = chain("ask", ask=asks(int)).compile()
    app = chain("outer", outer=chain("inner", inner=inner).compile()).compile(checkpointer=memory)
    (question,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]

    with pytest.raises(ValidationError):
        run.invoke(app, Command(resume={question.id: "many"}), thread("1"))

    assert [question] == list(run.state(app, thread("1")).interrupts)
    assert ["5"] == run.invoke(app, Command(resume=5), thread("1"))["a"]


def test_a_rejected_answer_of_a_task_is_open_too(run: Runner, memory: Saver, thread: Thread) -> None:
    @task
    def ask() -> int:
        return int(interrupt("number?", response_schema=int))

    @entrypoint(checkpointer=memory)
    def flow(_: int) -> int:
        return ask().result()

    run.invoke(flow, 1, thread("1"))
    with pytest.raises(ValidationError):
        run.invoke(flow, Command(resume="many"), thread("1"))

    assert 5 == run.invoke(flow, Command(resume=5), thread("1"))


@pytest.mark.acceptance("S1-25")
def test_partial_answers_of_sends_keep_what_finished_and_ask_the_rest_again(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    ran = list[str]()

    def work(state: Any) -> dict[str, Any]:
        ran.append(state)
        return {"a": [state if state == "free" else f"{state}: {interrupt(state)}"]}

    graph = StateGraph(State)
    graph.add_node("work", work)
    graph.add_conditional_edges(START, lambda _: [Send("work", name) for name in ("p", "free", "q")], ["work"])
    app = graph.compile(checkpointer=saver)
    first, second = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]

    (left,) = run.invoke(app, Command(resume={second.id: "2"}), thread("1"))["__interrupt__"]

    assert first == left
    assert ["p: 1", "free", "q: 2"] == run.invoke(app, Command(resume="1"), thread("1"))["a"]
    assert (1, 3, 2) == (ran.count("free"), ran.count("p"), ran.count("q"))


def test_answers_that_fit_no_question_are_refused_and_change_nothing(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    app = parallel("p", "q", p=asks(None), q=asks(None)).compile(checkpointer=memory)
    asked = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    before = run.state(app, thread("1"))

    for answer, error in (
        ("plain", AmbiguousResumeError),
        ({"0" * 32: "x"}, UnknownInterruptError),
        ({asked[0].id: "x", "0" * 32: "x"}, UnknownInterruptError),
        ({}, UnknownInterruptError),
    ):
        with pytest.raises(error) as raised:
            run.invoke(app, Command(resume=answer), thread("1"))
        assert {question.id for question in asked} == set(raised.value.pending_ids)
        assert error is UnknownInterruptError or "specify the interrupt id when resuming" in str(raised.value)

    assert before == run.state(app, thread("1"))


@pytest.mark.acceptance("S1-23")
def test_no_retry_takes_a_question_or_a_command_for_the_parent_for_a_failure(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    ran = list[str]()
    policy = RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=lambda _: True)

    def ask(state: State) -> dict[str, Any]:
        ran.append("ask")
        return {"a": [interrupt("?")]}

    def up(state: State) -> Command[Any]:
        ran.append("up")
        return Command(graph=Command.PARENT, update={"a": ["up"]})

    inner = StateGraph(State)
    inner.add_node("up", up, retry_policy=policy)
    inner.add_edge(START, "up")
    graph = StateGraph(State)
    graph.add_node("inner", inner.compile(), retry_policy=policy)
    graph.add_node("ask", ask, retry_policy=policy)
    graph.add_edge(START, "inner")
    graph.add_edge("inner", "ask")
    app = graph.compile(checkpointer=memory)

    run.invoke(app, {"a": []}, thread("1"))

    assert ["up", "ask"] == ran
    assert ["up", "yes"] == run.invoke(app, Command(resume="yes"), thread("1"))["a"]


@pytest.mark.acceptance("S4-8")
def test_locals_are_made_again_and_an_answer_is_recorded(run: Runner, memory: Saver, thread: Thread) -> None:
    numbers = iter(range(10))
    seen = list[tuple[int, Any]]()

    def node(state: State) -> dict[str, Any]:
        local = next(numbers)
        for question in ("one?", "two?"):
            seen.append((local, interrupt(question)))
        return {"a": [str(local)]}

    app = chain("node", node=node).compile(checkpointer=memory)
    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, Command(resume="first"), thread("1"))

    assert ["2"] == run.invoke(app, Command(resume="second"), thread("1"))["a"]
    assert [(1, "first"), (2, "first"), (2, "second")] == seen


def test_an_update_mends_a_step_whose_writes_conflict(run: Runner, memory: Saver, thread: Thread) -> None:
    def writes(name: str) -> Any:
        return lambda state: {"b": name, "a": [name]}

    graph = parallel("p", "q", "r", p=writes("p"), q=writes("q"))
    graph.add_node("after", lambda state: {"a": [f"after {state['b']}"]})
    graph.add_edge("p", "after").add_node("joined", mark("joined")).add_edge(["p", "q", "r"], "joined")
    app = graph.compile(checkpointer=memory)
    with pytest.raises(Exception, match="one value per step"):
        run.invoke(app, {"a": ["in"]}, thread("1"))

    run.update(app, thread("1"), {"b": "mine", "a": ["mine"]}, as_node="p")

    assert ["in", "q", "r", "mine", "after mine", "joined"] == run.invoke(app, None, thread("1"))["a"]


@pytest.mark.acceptance("S2-14")
def test_waves_run_as_steps_with_what_can_run_at_once(run: Runner, memory: Saver, thread: Thread) -> None:
    graph = StateGraph(State)
    for name in ("network", "db", "storage", "app", "dns", "ready"):
        graph.add_node(name, lambda state, name=name: {"a": [name]})
    graph.add_edge(START, "network")
    graph.add_edge("network", "db")
    graph.add_edge("network", "storage")
    graph.add_edge(["db", "storage"], "app")
    graph.add_edge("app", "dns")
    graph.add_edge("dns", "ready")
    app = graph.compile(checkpointer=memory)

    run.invoke(app, {"a": []}, thread("1"))

    waves = [entry.next for entry in reversed(run.history(app, thread("1")))]
    assert [(START,), ("network",), ("db", "storage"), ("app",), ("dns",), ("ready",), ()] == waves
