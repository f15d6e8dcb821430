"""Runs that are stopped from outside: closed streams and cancelled awaits keep what is finished."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pregel.graph import StateGraph
from pregel.types import StreamWriter

from .conftest import Runner
from .marks import Saver, State, Thread, chain, parallel


def take(run: Runner, app: Any, n: int, *args: Any, **kwargs: Any) -> list[Any]:
    """The first n chunks of a stream that is then closed."""

    async def follow() -> list[Any]:
        chunks = app.astream(*args, **kwargs)
        taken = [await anext(chunks) for _ in range(n)]
        await chunks.aclose()
        return taken

    if run.name == "async":
        return asyncio.run(follow())
    chunks = app.stream(*args, **kwargs)
    taken = [next(chunks) for _ in range(n)]
    chunks.close()
    return taken


def counting(*names: str) -> tuple[StateGraph[Any], list[str]]:
    """A chain of nodes, and the list of which ran."""
    ran: list[str] = []

    def node(name: str) -> Any:
        def body(state: State) -> dict[str, Any]:
            ran.append(name)
            return {"a": [name]}

        return body

    return chain(*names, **{name: node(name) for name in names}), ran


def test_closing_a_stream_keeps_the_step_that_it_showed_and_starts_none(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    graph, ran = counting("x", "y", "z")
    app = graph.compile(checkpointer=saver)

    assert take(run, app, 1, {"a": []}, thread("1"), stream_mode="updates") == [{"x": {"a": ["x"]}}]

    state = run.state(app, thread("1"))
    assert (ran, state.values) == (["x"], {"a": ["x"]})
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y", "z"]}
    assert ran == ["x", "y", "z"]


def test_a_stream_that_is_closed_before_it_starts_stores_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    graph, ran = counting("x")
    app = graph.compile(checkpointer=saver)

    assert take(run, app, 0, {"a": []}, thread("1")) == []

    assert (ran, list(saver.list(None))) == ([], [])


def test_closing_a_stream_at_its_input_runs_no_node(run: Runner, saver: Saver, thread: Thread) -> None:
    graph, ran = counting("x", "y")
    app = graph.compile(checkpointer=saver)

    assert take(run, app, 1, {"a": ["i"]}, thread("1"), stream_mode="values") == [{"a": ["i"]}]

    assert run.invoke(app, None, thread("1")) == {"a": ["i", "x", "y"]}
    assert ran == ["x", "y"]


def test_a_closed_thread_takes_new_input(run: Runner, saver: Saver, thread: Thread) -> None:
    graph, _ = counting("x", "y")
    app = graph.compile(checkpointer=saver)
    take(run, app, 1, {"a": ["1"]}, thread("1"), stream_mode="updates")

    assert run.invoke(app, {"a": ["2"]}, thread("1")) == {"a": ["1", "x", "2", "x", "y"]}


def test_closing_while_a_node_streams_waits_for_the_node_and_keeps_it(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    seen = threading.Event()

    def node(state: State, writer: StreamWriter) -> dict[str, Any]:
        writer("first")
        assert seen.wait(60)
        return {"a": ["x"]}

    def close(chunks: Any) -> None:
        seen.set()
        chunks.close()

    app = chain("x", "y", x=node).compile(checkpointer=saver)
    if run.name == "sync":
        chunks = app.stream({"a": []}, thread("1"), stream_mode="custom")
        assert next(chunks) == "first"
        close(chunks)
    else:

        async def follow() -> None:
            chunks = app.astream({"a": []}, thread("1"), stream_mode="custom")
            assert await anext(chunks) == "first"
            seen.set()
            await chunks.aclose()  # type: ignore[attr-defined]  # it is a generator

        asyncio.run(follow())

    assert run.state(app, thread("1")).values == {"a": ["x"]}
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y"]}


# -- cancelling --------------------------------------------------------------------------------------------------------


def test_cancelling_ainvoke_keeps_finished_steps_and_leaves_the_node_pending(saver: Saver, thread: Thread) -> None:
    unwound: list[str] = []

    async def scenario() -> None:
        started = asyncio.Event()

        async def wait(state: State) -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                unwound.append("y")

        app = chain("x", "y", y=wait).compile(checkpointer=saver)
        running = asyncio.ensure_future(app.ainvoke({"a": []}, thread("1")))
        await asyncio.wait_for(started.wait(), 60)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())

    app = chain("x", "y").compile(checkpointer=saver)
    state = app.get_state(thread("1"))
    assert (unwound, state.values, state.next) == (["y"], {"a": ["x"]}, ("y",))
    assert state.tasks[0].error == "CancelledError()"  # the same record in every durability mode
    assert app.invoke(None, thread("1")) == {"a": ["x", "y"]}


def test_cancelling_ainvoke_keeps_finished_siblings_which_never_run_again(saver: Saver, thread: Thread) -> None:
    ran: list[str] = []

    async def scenario() -> None:
        done = asyncio.Event()

        async def quick(state: State) -> dict[str, Any]:
            ran.append("quick")
            asyncio.get_running_loop().call_soon(done.set)
            return {"a": ["quick"]}

        async def wait(state: State) -> None:
            await asyncio.Event().wait()

        app = parallel("quick", "slow", quick=quick, slow=wait).compile(checkpointer=saver)
        running = asyncio.ensure_future(app.ainvoke({"a": []}, thread("1")))
        await asyncio.wait_for(done.wait(), 60)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())

    app = parallel("quick", "slow", quick=lambda state: ran.append("again")).compile(checkpointer=saver)
    assert app.get_state(thread("1")).next == ("slow",)
    assert app.invoke(None, thread("1")) == {"a": ["quick", "slow"]}
    assert ran == ["quick"]


def test_cancelling_ainvoke_waits_for_a_blocking_node_and_keeps_it(saver: Saver, thread: Thread) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        started, go = asyncio.Event(), threading.Event()

        def blocking(state: State) -> dict[str, Any]:
            loop.call_soon_threadsafe(started.set)
            assert go.wait(60)
            return {"a": ["x"]}

        app = chain("x", "y", x=blocking).compile(checkpointer=saver)
        running = asyncio.ensure_future(app.ainvoke({"a": []}, thread("1")))
        await asyncio.wait_for(started.wait(), 60)
        running.cancel()
        loop.call_soon(go.set)
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(scenario())

    app = chain("x", "y").compile(checkpointer=saver)
    assert app.get_state(thread("1")).values == {"a": ["x"]}
    assert app.invoke(None, thread("1")) == {"a": ["x", "y"]}


def test_a_timeout_around_ainvoke_is_a_cancellation(saver: Saver, thread: Thread) -> None:
    async def scenario() -> None:
        async def wait(state: State) -> None:
            limit.reschedule(asyncio.get_running_loop().time())
            await asyncio.Event().wait()

        app = chain("x", "y", y=wait).compile(checkpointer=saver)
        async with asyncio.timeout(None) as limit:
            await app.ainvoke({"a": []}, thread("1"))

    with pytest.raises(TimeoutError):
        asyncio.run(scenario())

    assert chain("x", "y").compile(checkpointer=saver).invoke(None, thread("1")) == {"a": ["x", "y"]}
