"""Runs that end hard: exits inside nodes, loops closed under a run, stores that give up, errors that cannot be told."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Append, Receipt
from pregel.engine.pool import shared_pool
from pregel.errors import InvalidUpdateError
from pregel.graph import START, StateGraph
from pregel.testing.scripted import WatchedSaver
from pregel.types import Durability, StreamWriter

from .conftest import Runner
from .marks import Saver, State, Thread, chain, failing_once, mark, parallel
from .workers import Gate, all_in_one_batch, all_news_is_posted, tells_of_appends


def in_time(work: Callable[[], Any]) -> list[Any]:
    """What the work returned or raised; a failed test when it does not end."""
    found: list[Any] = []

    def body() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=body, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it hangs"
    return found


def waiting(name: str, turns: int) -> Any:
    """An async node that takes a few turns of the loop."""

    async def node(state: State) -> dict[str, Any]:
        for _ in range(turns):
            await asyncio.sleep(0)
        return {"a": [name]}

    return node


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("turns", [0, 50])
def test_an_exit_in_one_of_several_async_nodes_ends_the_loop_and_the_run(
    saver: Saver, thread: Thread, error: type[BaseException], turns: int
) -> None:
    fails = failing_once("x", error("stop"))

    async def x(state: State) -> Any:
        await asyncio.sleep(0)
        return fails(state)

    app = parallel("w", "x", w=waiting("w", turns), x=x).compile(checkpointer=saver)

    (raised,) = in_time(lambda: asyncio.run(app.ainvoke({"a": []}, thread("1"))))

    assert type(raised) is error
    assert asyncio.run(app.ainvoke(None, thread("1"))) == {"a": ["w", "x"]}


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
def test_an_exit_in_a_blocking_node_whose_stream_is_being_closed_reaches_whoever_closes_it(
    run: Runner, saver: Saver, thread: Thread, error: BaseException
) -> None:
    x_runs, closing, s_is_stored = threading.Event(), threading.Event(), threading.Event()
    exits = failing_once("x", error)

    def s(state: State, writer: StreamWriter) -> dict[str, Any]:
        assert x_runs.wait(60)
        writer("here")
        assert closing.wait(60)
        return {"a": ["s"]}

    def x(state: State) -> Any:
        x_runs.set()
        assert s_is_stored.wait(60)  # which happens while the run is wound down
        return exits(state)

    app = parallel("s", "x", s=s, x=x).compile(checkpointer=tells_of_appends(saver, s_is_stored, since=closing))

    async def follow() -> None:
        chunks: Any = app.astream({"a": []}, thread("1"), stream_mode="custom")
        await anext(chunks)
        closing.set()
        await chunks.aclose()

    def take() -> None:
        if run.name == "async":
            asyncio.run(follow())
            return
        chunks: Any = app.stream({"a": []}, thread("1"), stream_mode="custom")
        next(chunks)
        closing.set()
        chunks.close()

    assert in_time(take) == [error]
    assert run.invoke(app, None, thread("1")) == {"a": ["s", "x"]}


def test_an_exit_in_a_blocking_node_whose_run_is_cancelled_reaches_whoever_awaits_it(
    saver: Saver, thread: Thread
) -> None:
    cancelled = threading.Event()
    exits = failing_once("x", SystemExit(3))

    async def cancel() -> None:
        loop = asyncio.get_running_loop()
        x_runs = asyncio.Event()

        def x(state: State) -> Any:
            loop.call_soon_threadsafe(x_runs.set)
            assert cancelled.wait(60)
            return exits(state)

        app = parallel("x", "y", x=x).compile(checkpointer=saver)
        running = asyncio.ensure_future(app.ainvoke({"a": []}, thread("1")))
        await asyncio.wait_for(x_runs.wait(), 60)
        running.cancel()
        loop.call_soon(cancelled.set)
        await running

    (raised,) = in_time(lambda: asyncio.run(cancel()))

    assert type(raised) is SystemExit
    app = parallel("x", "y").compile(checkpointer=saver)
    assert app.invoke(None, thread("1")) == {"a": ["x", "y"]}


def test_an_exit_in_an_async_node_that_is_told_to_stop_reaches_whoever_closes_the_stream(
    saver: Saver, thread: Thread
) -> None:
    async def x(state: State, writer: StreamWriter) -> Any:
        writer("here")
        try:
            await asyncio.Event().wait()
        finally:
            raise SystemExit(3)

    app = parallel("x", "y", x=x).compile(checkpointer=saver)

    async def follow() -> None:
        chunks: Any = app.astream({"a": []}, thread("1"), stream_mode="custom")
        await anext(chunks)
        await chunks.aclose()

    (raised,) = in_time(lambda: asyncio.run(follow()))

    assert type(raised) is SystemExit
    app = parallel("x", "y").compile(checkpointer=saver)
    assert app.invoke(None, thread("1")) == {"a": ["x", "y"]}


def test_an_exit_in_a_node_is_not_lost_when_the_store_fails_beside_it(run: Runner, thread: Thread) -> None:
    began, append_failed = threading.Event(), threading.Event()
    saver = InMemorySaver()

    def fails(append: Append, send: Callable[[Append], Receipt]) -> Receipt:
        if append.claim is None and not append_failed.is_set():
            append_failed.set()
            raise OSError("the disk is gone")
        return send(append)

    def x(state: State) -> Any:
        began.set()
        assert append_failed.wait(60)
        raise SystemExit(3)

    def y(state: State) -> dict[str, Any]:  # what has not begun when the store fails never runs
        assert began.wait(60)
        return {"a": ["y"]}

    app = parallel("x", "y", x=x, y=y).compile(checkpointer=WatchedSaver(saver, fails))

    (raised,) = in_time(lambda: run.invoke(app, {"a": []}, thread("1")))

    assert (type(raised), type(raised.__context__)) == (SystemExit, OSError)
    assert parallel("x", "y").compile(checkpointer=saver).invoke(None, thread("1")) == {"a": ["x", "y"]}


class Exits(InMemorySaver):
    """Raises an exit instead of doing the nth append."""

    at = 0
    error: BaseException = SystemExit(3)

    def append(self, append: Append) -> Receipt:
        self.at -= 1
        if self.at == 0:
            raise self.error
        return super().append(append)


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_an_exit_in_an_append_gives_the_thread_back_though_somebody_keeps_it(
    run: Runner, thread: Thread, at: int, durability: str, error: BaseException
) -> None:
    store = Exits()
    app = chain("x", "y").compile(checkpointer=store)
    store.at, store.error = at, error

    kept = in_time(lambda: run.invoke(app, {"a": []}, thread("1"), durability=durability))
    struck, store.at = store.at <= 0, 0

    assert kept == [error if struck else {"a": ["x", "y"]}]
    again: Any = None if app.get_state(thread("1")).values else {"a": []}
    assert run.invoke(app, again, thread("1")) == {"a": ["x", "y"]}


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("turns", [1, None, *(pytest.param(turns, marks=pytest.mark.slow) for turns in (0, 3, 10))])
def test_a_loop_that_is_closed_under_a_run_costs_no_worker_and_no_thread_id(
    saver: Saver, thread: Thread, turns: int | None
) -> None:
    runs, goes = threading.Event(), threading.Event()

    def slow(state: State) -> dict[str, Any]:
        runs.set()
        assert goes.wait(60)
        return {"a": ["x"]}

    app = parallel("x", "y", x=slow).compile(checkpointer=saver)

    async def until_then() -> None:
        for _ in range(turns or 0):
            await asyncio.sleep(0)
        while turns is None and not runs.is_set():
            await asyncio.sleep(0)

    def start(name: str) -> None:
        loop = asyncio.new_event_loop()
        with ThreadPoolExecutor() as executor:  # left once a load or an append that is under way has ended
            loop.set_default_executor(executor)
            loop.create_task(app.ainvoke({"a": []}, thread(name)))  # noqa: RUF006  # abandoned, that is the point
            loop.run_until_complete(until_then())
            loop.close()

    names = [str(i) for i in range(shared_pool().size + 1)]
    for name in names:
        start(name)
        goes.set()
        all_news_is_posted()
        runs.clear()
        goes.clear()
    goes.set()
    gc.collect()

    assert in_time(lambda: app.invoke({"a": []}, thread("new"))) == [{"a": ["x", "y"]}]
    for name in names:
        ended = app.invoke(None if app.get_state(thread(name)).values else {"a": []}, thread(name))
        assert ended == {"a": ["x", "y"]}


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("durability", ["sync", "async"])
def test_a_loop_that_is_closed_during_an_append_leaves_the_thread_free_though_somebody_keeps_the_run(
    thread: Thread, durability: Durability
) -> None:
    under_way, ends = threading.Event(), threading.Event()

    class Slow(InMemorySaver):
        async def aappend(self, append: Append) -> Receipt:
            if append.claim is not None or ends.is_set():
                return self.append(append)
            under_way.set()
            await asyncio.Event().wait()
            raise AssertionError("its loop is closed")

    store = Slow()
    app = chain("x", "y").compile(checkpointer=store)
    loop = asyncio.new_event_loop()
    kept = loop.create_task(app.ainvoke({"a": []}, thread("1"), durability=durability))
    while not under_way.is_set():
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    ends.set()

    assert app.invoke(None, thread("1")) == {"a": ["x", "y"]}
    assert not kept.done()
    del kept
    gc.collect()  # its warnings belong to this test


def test_a_run_that_the_end_of_its_loop_cancels_gives_its_thread_back(saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", x=waiting("x", 10_000), y=waiting("y", 1)).compile(checkpointer=saver)

    async def leave_behind() -> None:
        background = asyncio.create_task(app.ainvoke({"a": []}, thread("1")))
        while not (await app.aget_state(thread("1"))).values:
            await asyncio.sleep(0)
        assert not background.done()

    asyncio.run(leave_behind())

    assert asyncio.run(app.ainvoke(None, thread("1"))) == {"a": ["x", "y"]}


@pytest.mark.timeout(30)
def test_nodes_that_the_end_of_a_loop_cancels_before_they_begin_are_not_waited_for() -> None:
    app = parallel("x", "y", x=waiting("x", 1), y=waiting("y", 1)).compile()
    left: list[asyncio.Task[Any]] = []

    async def leave_behind() -> None:
        left.append(asyncio.create_task(app.ainvoke({"a": []})))  # makes its nodes' tasks in the loop's last turn

    asyncio.run(leave_behind())

    assert left[0].cancelled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_that_closes_its_copy_of_a_stream_leaves_the_run_alone(saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", "z").compile(checkpointer=saver)
    chunks: Any = app.stream({"a": []}, thread("1"), stream_mode="updates")
    next(chunks)

    child = os.fork()
    if child == 0:
        chunks.close()
        os._exit(0)

    assert os.waitpid(child, 0)[1] == 0
    assert [*chunks] == [{"y": {"a": ["y"]}}, {"z": {"a": ["z"]}}]
    assert app.get_state(thread("1")).values == {"a": ["x", "y", "z"]}


class Cancels(InMemorySaver):
    """Raises CancelledError instead of doing the nth append."""

    at = 0

    def append(self, append: Append) -> Receipt:
        self.at -= 1
        if self.at == 0:
            raise asyncio.CancelledError("the store gave up")
        return super().append(append)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_store_that_cancels_itself_has_stored_nothing(thread: Thread, at: int) -> None:
    store = Cancels()
    app = chain("x", "y").compile(checkpointer=store)
    store.at = at

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(app.ainvoke({"a": []}, thread("1")))

    again: Any = None if app.get_state(thread("1")).values else {"a": []}
    assert asyncio.run(app.ainvoke(again, thread("1"))) == {"a": ["x", "y"]}


class Mute(Exception):
    """Can neither be told nor noted, when we try."""

    def __repr__(self) -> str:
        if sys._getframe(1).f_globals["__name__"].startswith("pregel."):
            raise ZeroDivisionError
        return "Mute()"

    __str__ = __repr__

    def add_note(self, note: str) -> None:
        raise ZeroDivisionError


def test_an_error_that_cannot_be_told_is_raised_and_costs_no_siblings_work(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls: list[str] = []
    gate = Gate()
    nodes = {
        "v": gate.shows(mark("v", calls)),
        "w": gate.holds(failing_once("w", Mute())),
        "x": gate.holds(failing_once("x", Mute())),
    }
    app = parallel("v", "w", "x", **nodes).compile(checkpointer=saver)

    with pytest.raises(Mute):
        all_in_one_batch(run, app, thread("1"), gate)
    while run.state(app, thread("1")).next:
        with suppress(Mute):
            run.invoke(app, None, thread("1"))

    assert run.state(app, thread("1")).values == {"a": ["v", "w", "x"]}
    assert calls == ["v"]


def test_a_step_that_was_whole_when_its_run_was_stopped_is_applied(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    gate = Gate()
    graph = parallel("x", "y", x=gate.holds(mark("x")), y=gate.shows(mark("y", calls)))
    graph.add_node("z", mark("z"))
    graph.add_edge(["x", "y"], "z")
    app = graph.compile(checkpointer=saver)

    async def follow() -> None:
        chunks: Any = app.astream({"a": []}, thread("1"), stream_mode="custom")
        await anext(chunks)
        gate.open()
        await chunks.aclose()

    if run.name == "async":
        asyncio.run(follow())
    else:
        chunks: Any = app.stream({"a": []}, thread("1"), stream_mode="custom")
        next(chunks)
        gate.open()
        chunks.close()

    state = run.state(app, thread("1"))
    assert (state.values, state.next, state.tasks[0].name) == ({"a": ["x", "y"]}, ("z",), "z")
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y", "z"]}
    assert calls == ["y"]


def test_after_a_conflict_the_thread_shows_the_state_before_it(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", x=lambda state: {"b": "x"}, y=lambda state: {"b": "y"}).compile(checkpointer=saver)

    with pytest.raises(InvalidUpdateError):
        run.invoke(app, {"a": ["i"]}, thread("1"))

    state = run.state(app, thread("1"))
    assert (state.values, state.next) == ({"a": ["i"]}, ("x", "y"))


broken: list[bool] = []


def add(old: list[str], new: list[str]) -> list[str]:
    if broken and new == ["x"]:
        raise ValueError("broken")
    return [*old, *new]


class Lists(TypedDict, total=False):
    a: Annotated[list[str], add]


def test_a_whole_step_that_waits_for_a_mended_reducer_names_what_comes_after_it(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    broken.append(True)
    graph = StateGraph(Lists)
    for name in ("x", "y"):
        graph.add_node(name, mark(name))
    graph.add_edge(START, "x")
    graph.add_edge("x", "y")
    app = graph.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        run.invoke(app, {"a": []}, thread("1"))
    assert run.state(app, thread("1")).next == ("x",)

    broken.clear()

    assert (run.state(app, thread("1")).values, run.state(app, thread("1")).next) == ({"a": ["x"]}, ("y",))
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y"]}
