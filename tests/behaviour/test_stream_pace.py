"""A slow consumer holds its nodes back, and whoever stops listening leaves nothing waiting."""

from __future__ import annotations

import asyncio
from queue import SimpleQueue
from typing import Any

import pytest

from pregel.engine.drive_sync import BlockingDriver
from pregel.engine.effects import Flow, Step
from pregel.engine.gate import CROWD
from pregel.graph import START, StateGraph
from pregel.types import StreamWriter

from .conftest import Runner
from .marks import Saver, State, Thread

MANY = 100_000


def writing(count: int, done: list[int]) -> Any:
    """A graph whose node writes that many chunks, and counts them."""

    def node(state: State, writer: StreamWriter) -> dict[str, Any]:
        for number in range(count):
            writer(number)
            done[0] = number + 1
        return {"a": ["x"]}

    return StateGraph(State).add_node("x", node).add_edge(START, "x")


@pytest.mark.acceptance("S1-47")
def test_chunks_wait_in_bounded_memory_for_a_slow_consumer(run: Runner) -> None:
    done, taken, ahead = [0], [0], [0]

    def heard(chunk: Any) -> None:
        assert chunk == taken[0]
        taken[0] += 1
        ahead[0] = max(ahead[0], done[0] - taken[0])

    run.follow(heard, writing(MANY, done).compile(), {"a": []}, stream_mode="custom")

    assert taken[0] == MANY
    assert ahead[0] <= 2 * CROWD + 1


class Refilled(SimpleQueue[Any]):
    """What nodes fill as fast as it is read."""

    def get_nowait(self) -> Any:
        assert self.qsize() < 10, "it is read without end"
        self.put(((), "custom", "another"))
        self.put(((), "custom", "and another"))
        return super().get_nowait()


def test_what_comes_while_a_batch_is_read_waits_for_the_next_one() -> None:
    driver = BlockingDriver(no_flow(), None, live=True)
    driver.inbox = Refilled()
    for number in range(3):
        driver.inbox.put(((), "custom", str(number)))

    assert ["0", "1", "2"] == [chunk[2] for chunk in driver.wait() if isinstance(chunk, tuple)]


def no_flow() -> Flow[Any]:
    yield Step()


def test_an_async_node_waits_at_its_next_await() -> None:
    done, taken, ahead = [0], [0], [0]

    async def node(state: State, writer: StreamWriter) -> None:
        for number in range(20 * CROWD):
            writer(number)
            done[0] += 1
            await asyncio.sleep(0)

    async def follow() -> None:
        app = StateGraph(State).add_node("x", node).add_edge(START, "x").compile()
        async for _ in app.astream({"a": []}, stream_mode="custom"):
            taken[0] += 1
            ahead[0] = max(ahead[0], done[0] - taken[0])
            for _ in range(3):
                await asyncio.sleep(0)

    asyncio.run(follow())

    assert taken[0] == 20 * CROWD
    assert CROWD <= ahead[0] <= 2 * CROWD + 1


def test_a_stream_that_is_closed_frees_its_nodes_and_keeps_what_they_finish(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    done = [0]
    app = writing(5 * CROWD, done).compile(checkpointer=saver)

    async def take_one() -> None:
        chunks = app.astream({"a": []}, thread("1"), stream_mode="custom")
        assert await anext(chunks) == 0
        await chunks.aclose()

    if run.name == "async":
        asyncio.run(take_one())
    else:
        chunks = app.stream({"a": []}, thread("1"), stream_mode="custom")
        assert next(chunks) == 0
        chunks.close()

    assert done[0] == 5 * CROWD
    assert run.invoke(app, None, thread("1")) == {"a": ["x"]}
    assert done[0] == 5 * CROWD  # the node did not run again


def test_an_async_node_that_waits_for_its_consumer_can_be_cancelled() -> None:
    ended: list[str] = []

    async def node(state: State, writer: StreamWriter) -> None:
        try:
            for number in range(100 * CROWD):
                writer(number)
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def follow() -> None:
        app = StateGraph(State).add_node("x", node).add_edge(START, "x").compile()
        chunks: Any = app.astream({"a": []}, stream_mode="custom")
        await anext(chunks)
        for _ in range(3 * CROWD):
            await asyncio.sleep(0)
        await chunks.aclose()

    asyncio.run(follow())

    assert ended == ["cancelled"]
