"""Limits of time: an attempt that passes one is cancelled or left behind, has failed, and writes nothing any more."""

from __future__ import annotations

import asyncio
import gc
import operator
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.config import get_stream_writer
from pregel.errors import InternalError, InvalidInputError, NodeTimeoutError, StepTimeoutError
from pregel.func import task
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, RetryPolicy, Send, TimeoutPolicy, interrupt

from .conftest import Runner
from .marks import Saver, Thread, chain, mark
from .virtual_time import played
from .workers import all_news_is_posted

SOON = 0.03  # seconds
NOW = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3)


class State(TypedDict, total=False):
    a: Annotated[list[str], operator.add]


def one(node: Any, **options: Any) -> StateGraph[Any]:
    """A graph of one node."""
    return StateGraph(State).add_node("x", node, **options).add_edge(START, "x")


async def forever(state: Any) -> None:
    await asyncio.Event().wait()


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a blocking node waits for; open at the end of the test at the latest."""
    event = threading.Event()
    yield event
    event.set()


# -- async nodes -------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S1-41")
def test_an_async_attempt_that_takes_too_long_is_cancelled_and_the_error_says_everything(thread: Thread) -> None:
    cancelled = []

    async def node(state: Any) -> None:
        try:
            await forever(state)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    app = one(node, timeout=SOON).compile(checkpointer=InMemorySaver())
    with pytest.raises(NodeTimeoutError) as caught:
        played(app.ainvoke({"a": []}, thread("1")))

    error = caught.value
    assert [True] == cancelled
    assert ("x", "run", SOON) == (error.node, error.kind, error.timeout)
    assert (SOON, None) == (error.run_timeout, error.idle_timeout)
    assert error.elapsed >= SOON
    assert ("1", 1, False) == (error.thread, error.step, error.still_running)
    assert ("x",) == app.get_state(thread("1")).next


@pytest.mark.acceptance("S1-41")
def test_an_attempt_that_took_too_long_is_tried_again() -> None:
    attempts = []

    async def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.execution_info is not None
        attempts.append(runtime.execution_info.node_attempt)
        if len(attempts) < 3:
            await forever(state)
        return {"a": [f"attempt {len(attempts)}"]}

    app = one(node, timeout=timedelta(seconds=SOON), retry_policy=NOW).compile()

    assert {"a": ["attempt 3"]} == played(app.ainvoke({"a": []}))
    assert [1, 2, 3] == attempts


def test_an_attempt_that_swallows_its_cancellation_and_returns_has_failed_all_the_same() -> None:
    async def node(state: Any) -> dict[str, Any]:
        try:
            await forever(state)
        except asyncio.CancelledError:
            return {"a": ["too late"]}
        return {}

    with pytest.raises(NodeTimeoutError):
        played(one(node, timeout=SOON).compile().ainvoke({"a": []}))


def test_only_silence_passes_the_idle_limit() -> None:
    async def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        for _ in range(20):
            await asyncio.wait({asyncio.ensure_future(asyncio.Event().wait())}, timeout=SOON / 6)
            runtime.heartbeat()
        return {"a": ["alive"]}

    app = one(node, timeout=TimeoutPolicy(idle_timeout=2 * SOON, refresh_on="heartbeat")).compile()

    assert {"a": ["alive"]} == played(app.ainvoke({"a": []}))


def test_a_limit_that_is_moved_on_again_and_again_keeps_no_timers() -> None:
    kept: list[int] = []

    async def node(state: Any, runtime: Runtime[Any]) -> None:
        for _ in range(100):
            await asyncio.wait({asyncio.ensure_future(asyncio.Event().wait())}, timeout=SOON)
            runtime.heartbeat()
        gc.collect()
        kept.append(sum(type(found) is asyncio.TimerHandle for found in gc.get_objects()))

    played(one(node, timeout=TimeoutPolicy(idle_timeout=1.5 * SOON)).compile().ainvoke({"a": []}))

    assert 10 > kept[0]


@pytest.mark.parametrize(("refresh_on", "ends"), [("auto", True), ("heartbeat", False)])
def test_what_is_streamed_counts_as_activity_unless_only_heartbeats_do(refresh_on: Any, *, ends: bool) -> None:
    async def node(state: Any) -> dict[str, Any]:
        write = get_stream_writer()
        for _ in range(20):
            await asyncio.wait({asyncio.ensure_future(asyncio.Event().wait())}, timeout=SOON / 6)
            write("alive")
        return {"a": ["alive"]}

    app = one(node, timeout=TimeoutPolicy(idle_timeout=2 * SOON, refresh_on=refresh_on)).compile()

    if ends:
        assert {"a": ["alive"]} == played(app.ainvoke({"a": []}))
    else:
        with pytest.raises(NodeTimeoutError) as caught:
            played(app.ainvoke({"a": []}))
        assert ("idle", 2 * SOON) == (caught.value.kind, caught.value.timeout)


@pytest.mark.parametrize("kind", ["tasks", "graphs", "a graph that goes on", "a task that streams"])
def test_a_node_whose_calls_make_progress_is_not_idle(kind: str) -> None:
    async def pause(state: Any = None) -> None:
        await asyncio.wait({asyncio.ensure_future(asyncio.Event().wait())}, timeout=SOON)

    async def stream() -> None:
        write = get_stream_writer()
        for _ in range(8):
            await pause()
            write("alive")

    short, long = one(pause).compile(), chain(*"12345678", **dict.fromkeys("12345678", pause)).compile()

    async def node(state: Any) -> dict[str, Any]:
        if kind == "a graph that goes on":
            await long.ainvoke({"a": []})
        elif kind == "a task that streams":
            await task(stream)()
        else:
            for _ in range(8):
                await (task(pause)() if kind == "tasks" else short.ainvoke({"a": []}))
        return {"a": ["alive"]}

    app = one(node, timeout=TimeoutPolicy(idle_timeout=6 * SOON)).compile(checkpointer=InMemorySaver())

    config: Any = {"configurable": {"thread_id": "1"}}
    assert {"a": ["alive"]} == played(app.ainvoke({"a": []}, config))


def test_a_question_that_was_asked_before_the_limit_is_not_lost(thread: Thread) -> None:
    async def node(state: Any) -> dict[str, Any]:
        try:
            answer = interrupt("ok?")
        except BaseException:
            await forever(state)
        return {"a": [answer]}

    app = one(node, timeout=SOON).compile(checkpointer=InMemorySaver())
    result = played(app.ainvoke({"a": []}, thread("1")))

    assert ["ok?"] == [question.value for question in result["__interrupt__"]]
    assert {"a": ["yes"]} == played(app.ainvoke(Command(resume="yes"), thread("1")))


# -- blocking nodes ----------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S1-41")
def test_a_blocking_attempt_fails_the_run_at_its_deadline_and_is_not_tried_again_while_it_lives(
    run: Runner, saver: Saver, thread: Thread, gate: threading.Event
) -> None:
    calls: list[str] = []
    ended = threading.Event()

    def node(state: Any) -> dict[str, Any]:
        calls.append("x")
        if len(calls) == 1:
            gate.wait(30)
            ended.set()
        return {"a": [f"call {len(calls)}"]}

    app = one(node, timeout=SOON, retry_policy=NOW).compile(checkpointer=saver)

    with pytest.raises(NodeTimeoutError) as caught:
        run.invoke(app, {"a": []}, thread("1"))
    assert caught.value.still_running
    assert ("x",) == run.state(app, thread("1")).next

    with pytest.raises(NodeTimeoutError, match="goes on"):
        run.invoke(app, None, thread("1"))
    assert ["x"] == calls

    gate.set()
    assert ended.wait(30)
    result = until(lambda: run.invoke(app, None, thread("1")))
    assert {"a": [f"call {len(calls)}"]} == result  # on a slow machine the second one may come too late as well


def until(act: Callable[[], Any]) -> Any:
    """What it gives once the attempt that was left behind has ended."""
    while True:
        try:
            return act()
        except NodeTimeoutError:
            continue


@pytest.mark.acceptance("S1-41")
def test_what_a_blocking_attempt_writes_after_its_deadline_is_refused(run: Runner, gate: threading.Event) -> None:
    refused: list[BaseException] = []
    tried = threading.Event()

    def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        gate.wait(30)
        try:
            runtime.stream_writer("late")
        except InternalError as error:
            refused.append(error)
        try:
            runtime.heartbeat()
        except NodeTimeoutError as error:
            refused.append(error)
        tried.set()
        return {"a": ["late"]}

    app = one(node, timeout=SOON).compile()
    with pytest.raises(NodeTimeoutError):
        run.stream(app, {"a": []}, stream_mode=["custom", "updates"])

    gate.set()
    assert tried.wait(30)
    assert [InternalError, NodeTimeoutError] == [type(error) for error in refused]


def test_a_blocking_attempt_that_ends_late_while_nobody_pulls_has_failed_and_may_be_tried_again(
    monkeypatch: pytest.MonkeyPatch, gate: threading.Event
) -> None:
    now, passed = time.monotonic, [0.0]
    calls: list[int] = []

    def node(state: Any) -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            get_stream_writer()("first")
            gate.wait(30)
            passed[0] = 3600.0
        return {"a": [f"call {len(calls)}"]}

    app = one(node, timeout=1800, retry_policy=NOW).compile()
    stream = app.stream({"a": []}, stream_mode=["custom", "values"])
    assert ("values", {"a": []}) == next(stream)
    assert ("custom", "first") == next(stream)
    monkeypatch.setattr(time, "monotonic", lambda: now() + passed[0])
    gate.set()
    all_news_is_posted()  # and nobody pulls

    assert [("values", {"a": ["call 2"]})] == list(stream)


def test_siblings_of_an_attempt_that_was_left_behind_are_kept(
    run: Runner, saver: Saver, thread: Thread, gate: threading.Event
) -> None:
    calls: list[str] = []

    def slow(state: Any) -> dict[str, Any]:
        gate.wait(30)
        return {"a": ["slow"]}

    graph = one(slow, timeout=SOON).add_node("y", mark("y", calls)).add_edge(START, "y")
    app = graph.compile(checkpointer=saver)
    with pytest.raises(NodeTimeoutError):
        run.invoke(app, {"a": []}, thread("1"))

    gate.set()
    assert {"a": ["slow", "y"]} == until(lambda: run.invoke(app, None, thread("1")))
    assert ["y"] == calls


# -- where limits come from --------------------------------------------------------------------------------------------


def test_a_send_brings_its_own_limit() -> None:
    async def work(state: dict[str, Any]) -> dict[str, Any]:
        if state["slow"]:
            await forever(state)
        return {"a": ["quick"]}

    graph = StateGraph(State).add_node("w", work, timeout=3600)
    graph.add_conditional_edges(
        START, lambda state: [Send("w", {"slow": False}), Send("w", {"slow": True}, timeout=SOON)], ["w"]
    )

    with pytest.raises(NodeTimeoutError) as caught:
        played(graph.compile().ainvoke({"a": []}))

    assert ("w", SOON) == (caught.value.node, caught.value.timeout)


def test_the_limit_of_a_node_that_is_a_subgraph_cancels_what_runs_in_it() -> None:
    cancelled: list[str] = []

    async def inner(state: Any) -> None:
        try:
            await forever(state)
        except asyncio.CancelledError:
            cancelled.append("inner")
            raise

    app = one(one(inner).compile(), timeout=SOON).compile()

    with pytest.raises(NodeTimeoutError) as caught:
        played(app.ainvoke({"a": []}))

    assert (["inner"], "x") == (cancelled, caught.value.node)


def test_a_superstep_has_a_limit_of_its_own(run: Runner, gate: threading.Event) -> None:
    def slow(state: Any) -> None:
        gate.wait(30)

    app = one(slow).add_node("y", mark("y")).add_edge(START, "y").compile()
    app.step_timeout = SOON

    with pytest.raises(StepTimeoutError, match="Timed out") as caught:
        run.invoke(app, {"a": []})

    assert isinstance(caught.value, TimeoutError)
    with pytest.raises(InvalidInputError, match="greater than 0"):
        app.step_timeout = 0


@pytest.mark.parametrize("timeout", [0, -1, timedelta(0), TimeoutPolicy])
def test_a_limit_that_is_none_is_refused_when_the_node_is_added(timeout: Any) -> None:
    with pytest.raises((InvalidInputError, TypeError)):
        one(forever, timeout=timeout if not isinstance(timeout, type) else TimeoutPolicy(idle_timeout=-1))


def test_a_limit_that_is_none_is_refused_before_there_is_a_task_to_limit() -> None:
    with pytest.raises(InvalidInputError, match="greater than 0"):
        task(timeout=0)


def test_a_node_within_its_limit_ends_as_ever(run: Runner, saver: Saver, thread: Thread) -> None:
    app = one(mark("x"), timeout=3600).add_node("y", mark("y")).add_edge("x", "y").compile(checkpointer=saver)

    assert {"a": ["x", "y"]} == run.invoke(app, {"a": []}, thread("1"))
