"""What is left open when its event loop ends: the run is wound down in silence, what has finished is kept."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pregel.config import get_stream_writer
from pregel.errors import StreamUseError
from pregel.graph import START, StateGraph
from pregel.runnable import coerce_to_runnable
from pregel.stream import CustomTransformer

from .conftest import Awaiting, Runner
from .marks import Saver, State, Thread
from .test_following import journal_of

Left = list[Any]  # what a program still holds when its loop ends


@pytest.fixture
def run() -> Runner:
    """Runs that are awaited."""
    return Awaiting()


@pytest.fixture
def loud(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """What the event loop complained of."""
    caplog.set_level(logging.WARNING, logger="asyncio")
    return lambda: [record.getMessage() for record in caplog.records if record.name == "asyncio"]


class Work:
    """A node, then one on a thread beside one that waits for ever when it runs for the first time."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def first(self, state: State) -> dict[str, Any]:
        self.ran.append("first")
        return {"a": ["first"]}

    def thread(self, state: State) -> dict[str, Any]:
        get_stream_writer()("thread")
        self.ran.append("thread")
        return {"a": ["thread"]}

    async def waits(self, state: State) -> dict[str, Any]:
        get_stream_writer()("waits")
        self.ran.append("waits")
        if self.ran.count("waits") == 1:
            await asyncio.Event().wait()
        return {"a": ["waits"]}

    def graph(self) -> StateGraph[Any]:
        graph = StateGraph(State).add_node("first", self.first)
        graph.add_node("thread", self.thread).add_node("waits", self.waits)
        return graph.add_edge(START, "first").add_edge("first", "thread").add_edge("first", "waits")


async def chunks(app: Any, config: Any, left: Left) -> None:
    left.append(app.astream({"a": []}, config, stream_mode="custom"))
    assert {await anext(left[0]), await anext(left[0])} == {"thread", "waits"}


async def every_mode(app: Any, config: Any, left: Left) -> None:
    left.append(app.astream({"a": []}, config, stream_mode=["custom", "tasks", "debug", "values"], subgraphs=True))
    shown: list[Any] = []
    while not {"thread", "waits"} <= {data for _, mode, data in shown if mode == "custom"}:
        shown.append(await anext(left[0]))


async def run_object(app: Any, config: Any, left: Left) -> None:
    run = app.astream_events({"a": []}, config, version="v3", transformers=[CustomTransformer])
    left += [run, aiter(run.interleave("values", "custom"))]
    shown: list[Any] = []
    while not {"thread", "waits"} <= {data for name, data in shown if name == "custom"}:
        shown.append(await anext(left[1]))


async def part_of_a_chain(app: Any, config: Any, left: Left) -> None:
    chain = (coerce_to_runnable(lambda value: value) | app).with_config(tags=["chained"])
    left.append(chain.astream({"a": []}, config, stream_mode="custom"))
    assert {await anext(left[0]), await anext(left[0])} == {"thread", "waits"}


@pytest.mark.parametrize(
    ("leave", "journaled"),
    [(chunks, False), (chunks, True), (every_mode, False), (run_object, True), (part_of_a_chain, False)],
)
def test_a_stream_that_is_open_when_its_loop_ends_keeps_what_has_finished(
    saver: Saver,
    thread: Thread,
    run: Runner,
    loud: Callable[[], list[str]],
    leave: Callable[[Any, Any, Left], Awaitable[None]],
    journaled: bool,
) -> None:
    work, left = Work(), Left()
    app = work.graph().compile(checkpointer=journal_of(saver) if journaled else saver, journal_stream=journaled)

    async def main() -> None:
        await leave(app, thread("1"), left)

    asyncio.run(main())

    assert (loud(), sorted(work.ran)) == ([], ["first", "thread", "waits"])
    assert run.state(app, thread("1")).next == ("waits",)
    assert asyncio.run(app.threads.astatus("1")).can_resume
    assert run.invoke(app, None, thread("1")) == {"a": ["first", "thread", "waits"]}
    assert sorted(work.ran) == ["first", "thread", "waits", "waits"]


@pytest.mark.parametrize("held", [False, True], ids=["dropped", "held"])
def test_a_stream_in_node_code_that_is_open_when_its_loop_ends_is_wound_down(
    saver: Saver, thread: Thread, run: Runner, loud: Callable[[], list[str]], held: bool
) -> None:
    work, left = Work(), Left()
    inner = work.graph().compile()

    async def call(state: State) -> dict[str, Any]:
        shown = inner.astream({"a": []}, stream_mode="custom")
        if held:
            left.append(shown)
        return {"a": [str(data) async for data in shown if get_stream_writer()(data) is None]}

    app = StateGraph(State).add_node("call", call).add_edge(START, "call").compile(checkpointer=saver)

    async def main() -> None:
        shown: Any = app.astream({"a": []}, thread("1"), stream_mode="custom")
        left.append(shown)
        assert {await anext(shown), await anext(shown)} == {"thread", "waits"}

    asyncio.run(main())

    assert loud() == []
    assert run.state(app, thread("1")).next == ("call",)
    assert run.invoke(app, None, thread("1"))["a"] != []
    assert work.ran.count("first") == 1


def test_a_run_object_whose_loop_has_ended_says_so(thread: Thread, loud: Callable[[], list[str]]) -> None:
    left, app = Left(), Work().graph().compile()
    asyncio.run(run_object(app, thread("1"), left))

    async def read() -> Any:
        return await left[0].output()

    with pytest.raises(StreamUseError, match="event loop of this run ended before the run did"):
        asyncio.run(read())
    assert loud() == []


def test_a_follower_that_is_open_when_its_loop_ends_ends_in_silence(
    saver: Saver, thread: Thread, run: Runner, loud: Callable[[], list[str]]
) -> None:
    left, work = Left(), Work()
    work.ran.append("waits")
    app = work.graph().compile(checkpointer=journal_of(saver), journal_stream=True)
    run.invoke(app, {"a": []}, thread("1"))

    async def main() -> None:
        left.append(app.afollow(thread("1")))
        await anext(left[0])

    asyncio.run(main())

    assert loud() == []


PROGRAM = """
import asyncio
from typing import TypedDict
from pregel import START, StateGraph, get_stream_writer

class State(TypedDict, total=False):
    n: int

async def one(state):
    get_stream_writer()("one")
    await asyncio.Event().wait()

inner = StateGraph(State).add_node("one", one).add_edge(START, "one").compile()

async def call(state):
    async for chunk in inner.astream(state, stream_mode="custom"):
        get_stream_writer()(chunk)

outer = StateGraph(State).add_node("call", call).add_edge(START, "call").compile()
held = []

async def main():
    for graph in inner, outer:
        held.append(graph.astream({"n": 1}, stream_mode="custom"))
        held.append(aiter(graph.astream_events({"n": 1}, version="v3")))
        print([await anext(one) for one in held[-2:]][0])
    await anext(graph.astream({"n": 1}, stream_mode="custom"))

asyncio.run(main())
"""


def test_a_program_that_leaves_its_streams_open_ends_without_a_word() -> None:
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": os.getcwd()})

    assert (done.returncode, done.stdout, done.stderr) == (0, "one\none\n", "")
