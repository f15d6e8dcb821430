"""`runtime.is_replaying` and the replay-safe logger: what runs again says so until it comes to something new."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from pregel import get_logger
from pregel.config import current_task
from pregel.engine.pregel import Pregel
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime, get_runtime
from pregel.types import Command, RetryPolicy, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread
from .test_authority import has_authority

Seen = list[tuple[str, bool]]


class Diary:
    """What a workflow notes at each place: whether it replays, and a line of a replay-safe logger."""

    def __init__(self) -> None:
        self.seen: Seen = []
        self.log = get_logger("diary")

    def note(self, place: str) -> None:
        self.seen.append((place, get_runtime().is_replaying))
        self.log.info(place)

    def taken(self) -> Seen:
        seen, self.seen = self.seen, []
        return seen


@pytest.fixture
def diary(caplog: pytest.LogCaptureFixture) -> Diary:
    caplog.set_level(logging.INFO, "diary")
    return Diary()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "diary"]


def workflow(run: Runner, saver: Saver, diary: Diary, trouble: list[Exception]) -> Pregel:
    """A function with a task, a value that is made once, a question, and a fan-out, and a note in each gap."""

    @task
    def double(number: int) -> int:
        return 2 * number

    def making() -> int:
        diary.note("making")
        return 1

    def body(number: int, runtime: Runtime[Any]) -> Any:
        diary.note("top")
        first = yield double(number)
        diary.note("after the task")
        made = yield making
        diary.note("after the value")
        answer = interrupt("go on?")
        diary.note("after the answer")
        futures = [double(1), double(2)]
        diary.note("called")
        both = []
        for future in futures:
            both.append((yield future))
        diary.note("after both")
        if trouble:
            raise trouble.pop()
        return [first, made, answer, *both]

    @entrypoint(checkpointer=saver)
    def blocking(number: int, *, runtime: Runtime[Any]) -> Any:
        return drive(body(number, runtime), lambda made: runtime.step("made", made))

    @entrypoint(checkpointer=saver)
    async def awaiting(number: int, *, runtime: Runtime[Any]) -> Any:
        flow, reply = body(number, runtime), None
        try:
            while True:
                wanted = flow.send(reply)
                reply = await (runtime.astep("made", wanted) if callable(wanted) else wanted)
        except StopIteration as stop:
            return stop.value

    return blocking if run.name == "sync" else awaiting


def drive(flow: Any, step: Callable[[Any], Any]) -> Any:
    reply = None
    try:
        while True:
            wanted = flow.send(reply)
            reply = step(wanted) if callable(wanted) else wanted.result()
    except StopIteration as stop:
        return stop.value


BEFORE = ["top", "after the task", "after the value"]
BEHIND = ["after the answer", "called", "after both"]


@pytest.mark.acceptance("S4-11", "S4-17")
def test_the_flag_turns_false_between_the_last_recorded_event_and_the_first_new_one(
    run: Runner, saver: Saver, thread: Thread, diary: Diary, caplog: pytest.LogCaptureFixture
) -> None:
    app = workflow(run, saver, diary, [ValueError("once")])

    run.invoke(app, 3, thread("1"))
    first = ["top", "after the task", "making", "after the value"]
    assert [(place, False) for place in first] == diary.taken()  # a first run replays nothing

    with pytest.raises(ValueError, match="once"):
        run.invoke(app, Command(resume="yes"), thread("1"))
    assert [*((place, True) for place in BEFORE), *((place, False) for place in BEHIND)] == diary.taken()

    assert [6, 1, "yes", 2, 4] == run.invoke(app, None, thread("1"))
    ahead = has_authority(saver)  # others keep no places: which calls are still ahead is not known there
    again = [*((place, True) for place in BEFORE), ("after the answer", ahead), ("called", True), ("after both", False)]
    assert again == diary.taken()

    twice = ["after both"] if ahead else ["after the answer", "after both"]  # what ran twice for real is said twice
    assert [*first, *BEHIND, *twice] == lines(caplog)


@pytest.mark.acceptance("S4-11")
def test_a_node_that_runs_again_for_an_answer_logs_each_line_once(
    run: Runner, saver: Saver, thread: Thread, diary: Diary, caplog: pytest.LogCaptureFixture
) -> None:
    def ask(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        diary.note("asking a")
        a = interrupt("a")
        diary.note("asking b")
        b = interrupt("b")
        diary.note("answered")
        return {"a": [a, b]}

    def nag(state: State) -> None:
        diary.note("nagging")
        interrupt("c")
        diary.note("nagged")

    builder = StateGraph(State).add_node(ask).add_node(nag).add_edge(START, "ask").add_edge(START, "nag")
    app = builder.compile(checkpointer=saver)
    asked = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    for question in ("a", "b", "c"):
        answer = {one.id: one.value for one in asked if one.value == question}
        asked = run.invoke(app, Command(resume=answer), thread("1")).get("__interrupt__", asked)

    assert sorted(["asking a", "nagging", "asking b", "answered", "nagged"]) == sorted(lines(caplog))


def test_a_question_of_a_task_replays_its_caller_up_to_it(
    run: Runner, saver: Saver, thread: Thread, diary: Diary, caplog: pytest.LogCaptureFixture
) -> None:
    @task
    def approve() -> Any:
        diary.note("in the task")
        answer = interrupt("ok?")
        diary.note("answered")
        return answer

    def body() -> Any:
        diary.note("before")
        answer = yield approve()
        diary.note("behind")
        return answer

    @entrypoint(checkpointer=saver)
    def blocking(_: int) -> Any:
        return drive(body(), lambda made: None)

    @entrypoint(checkpointer=saver)
    async def awaiting(_: int) -> Any:
        flow = body()
        call = next(flow)
        try:
            flow.send(await call)
        except StopIteration as stop:
            return stop.value

    app = blocking if run.name == "sync" else awaiting
    run.invoke(app, 1, thread("1"))

    assert "yes" == run.invoke(app, Command(resume="yes"), thread("1"))
    assert ["before", "in the task", "answered", "behind"] == lines(caplog)


def test_a_graph_that_ended_replays_its_caller_up_to_its_result(
    run: Runner, saver: Saver, thread: Thread, diary: Diary, caplog: pytest.LogCaptureFixture
) -> None:
    def inside(state: State) -> dict[str, Any]:
        diary.note("inside")
        return {"a": [1]}

    inner = StateGraph(State).add_node(inside).add_edge(START, "inside").compile()

    def call(state: State) -> dict[str, Any]:
        diary.note("before")
        result = inner.invoke({"a": []})
        diary.note("behind")
        answer = interrupt("ok?")
        return {"a": [*result["a"], answer]}

    async def acall(state: State) -> dict[str, Any]:
        diary.note("before")
        result = await inner.ainvoke({"a": []})
        diary.note("behind")
        answer = interrupt("ok?")
        return {"a": [*result["a"], answer]}

    node = call if run.name == "sync" else acall
    app = StateGraph(State).add_node("call", node).add_edge(START, "call").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, Command(resume=2), thread("1"))

    assert ["before", "inside", "behind"] == lines(caplog)


def test_an_attempt_of_a_retry_replays_what_its_first_one_made(
    run: Runner, saver: Saver, thread: Thread, diary: Diary
) -> None:
    trouble = [ValueError("once")]

    def node(state: State, runtime: Runtime[Any]) -> None:
        diary.note("top")
        runtime.step("made", lambda: 1)
        diary.note("made")
        if trouble:
            raise trouble.pop()

    async def anode(state: State, runtime: Runtime[Any]) -> None:
        diary.note("top")
        await runtime.astep("made", lambda: 1)
        diary.note("made")
        if trouble:
            raise trouble.pop()

    policy = RetryPolicy(retry_on=ValueError, initial_interval=0, jitter=False)
    made = StateGraph(State).add_node("n", node if run.name == "sync" else anode, retry_policy=policy)
    app = made.add_edge(START, "n").add_edge("n", "m").add_node("m", lambda state: diary.note("later"))
    run.invoke(app.compile(checkpointer=saver), {"a": []}, thread("1"))

    places = [("top", False), ("made", False), ("top", True), ("made", False), ("later", False)]
    assert places == diary.taken()


def test_the_result_of_an_effect_is_replayed(run: Runner, saver: Saver, thread: Thread, diary: Diary) -> None:
    if not has_authority(saver):
        pytest.skip("this saver takes no appends")

    def pay(key: str) -> str:
        diary.note("paying")
        return "paid"

    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        diary.note("top")
        result = runtime.effect("pay", pay)
        diary.note("paid")
        return {"a": [result, interrupt("go on?")]}

    async def anode(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        diary.note("top")
        result = await runtime.aeffect("pay", pay)
        diary.note("paid")
        return {"a": [result, interrupt("go on?")]}

    builder = StateGraph(State).add_node("n", node if run.name == "sync" else anode).add_edge(START, "n")
    app = builder.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, Command(resume="yes"), thread("1"))

    assert [(place, False) for place in ("top", "paying", "paid")] + [("top", True), ("paid", True)] == diary.taken()


def test_a_node_that_comes_round_in_the_run_that_resumed_replays_nothing(
    run: Runner, saver: Saver, thread: Thread, diary: Diary
) -> None:
    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        diary.note("top")
        if run.name == "sync":
            runtime.step("made", lambda: 1)
        if not state["a"]:
            interrupt("go on?")
        return {"a": [1]}

    builder = StateGraph(State).add_node("n", node).add_edge(START, "n")
    builder.add_conditional_edges("n", lambda state: "n" if len(state["a"]) < 2 else "__end__")
    app = builder.compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, Command(resume="yes"), thread("1"))

    assert [("top", False), ("top", True), ("top", False)] == diary.taken()


def test_outside_of_a_run_the_logger_logs(diary: Diary, caplog: pytest.LogCaptureFixture) -> None:
    assert current_task.get() is None
    diary.log.info("hello %s", "you")
    diary.log.debug("too low")

    assert ["hello you"] == lines(caplog)
    assert not Runtime().is_replaying
