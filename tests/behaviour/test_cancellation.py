"""Cancelling reaches the tasks of subgraphs, and leaves the same record whatever the durability."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.types import DURABILITIES, Durability

from .marks import Thread, chain, mark, parallel


async def cancelled(app: Any, config: Any, durability: Durability, started: asyncio.Event) -> None:
    """Run the graph until a node of it waits, and cancel it."""
    run = asyncio.ensure_future(app.ainvoke({"a": []}, config, durability=durability))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run


def record(durability: Durability, thread: Thread) -> list[Any]:
    """What is left of a run that was cancelled while a node of its subgraph waited."""
    unwound: list[str] = []

    async def scenario() -> list[Any]:
        started, told = asyncio.Event(), asyncio.Event()

        async def beside(state: Any) -> dict[str, Any]:
            told.set()
            return {"a": ["beside"]}

        async def wait(state: Any) -> None:
            await told.wait()
            for _ in range(10):  # turns of the loop, in which the run hears of it
                await asyncio.sleep(0)
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                unwound.append("wait")

        inner = chain("first", "wait", wait=wait).compile()
        app = parallel("sub", "beside", sub=inner, beside=beside).compile(checkpointer=InMemorySaver())
        await cancelled(app, thread("1"), durability, started)
        outer = await app.aget_state(thread("1"), subgraphs=True)
        inside = next(task.state for task in outer.tasks if task.name == "sub")
        return [
            (outer.values, sorted(outer.next), {task.name: (task.error, task.result) for task in outer.tasks}),
            (inside.values, inside.next, [(task.name, task.error) for task in inside.tasks]),
        ]

    left = asyncio.run(scenario())
    assert ["wait"] == unwound
    return left


def test_the_record_of_a_cancellation_is_the_same_in_every_durability(thread: Thread) -> None:
    sync, *others = [record(durability, thread) for durability in DURABILITIES]  # type: ignore[arg-type]

    assert [sync, sync] == others
    assert (["first"], ("wait",), [("wait", "CancelledError()")]) == (sync[1][0]["a"], *sync[1][1:])
    assert (["sub"], "CancelledError()") == (sync[0][1], sync[0][2]["sub"][0])


def test_a_cancelled_run_goes_on_where_it_was(thread: Thread) -> None:
    calls: list[str] = []
    started: list[asyncio.Event] = []

    async def wait(state: Any) -> dict[str, Any]:
        calls.append("wait")
        if len(calls) == 1:
            started[0].set()
            await asyncio.Event().wait()
        return {"a": ["waited"]}

    firsts: list[str] = []
    inner = chain("first", "wait", first=mark("first", firsts), wait=wait).compile()
    app = chain("sub", sub=inner).compile(checkpointer=InMemorySaver())

    async def scenario() -> Any:
        started.append(asyncio.Event())
        await cancelled(app, thread("1"), "sync", started[0])
        return await app.ainvoke(None, thread("1"))

    assert {"a": ["first", "waited"]} == asyncio.run(scenario())
    assert (["first"], ["wait", "wait"]) == (firsts, calls)
