"""What a state of many channels costs when all are read and one changes, and how long that holds an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import thread_time
from types import SimpleNamespace
from typing import Any, TypedDict

from benchmarks.graphs import new_thread
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR
from benchmarks.timing import Repetition, around, timed


def wide(side: SimpleNamespace, channels: int, saver: Any = None, awaits: bool = False) -> Any:
    """A compiled loop of a node that is given all channels and changes one."""
    State = TypedDict("State", {"n": int, "until": int, **{f"c{number}": int for number in range(channels - 2)}})  # type: ignore[misc]

    def node(state: Any) -> dict[str, int]:
        return {"n": state["n"] + 1}

    async def anode(state: Any) -> dict[str, int]:
        return node(state)

    graph = side.StateGraph(State)
    graph.add_node("n", anode if awaits else node)
    graph.add_edge(side.START, "n")
    graph.add_conditional_edges("n", lambda state: "n" if state["n"] < state["until"] else side.END, ["n", side.END])
    return graph.compile(saver)


def given(channels: int, steps: int) -> dict[str, int]:
    """A value for each channel."""
    return {"n": 0, "until": steps, **{f"c{number}": number for number in range(channels - 2)}}


def copying(channels: int, steps: int) -> Callable[[], Any]:
    """The bare loop: the node and the branch get a new dict each."""

    def run() -> None:
        state = given(channels, steps)
        while state["n"] < state["until"]:
            seen = dict(state)
            state = {**state, "n": seen["n"] + 1}

    return run


def row(channels: int) -> None:
    """The row of so many channels."""

    @measured(Row(f"channels.{channels}", f"superstep, {channels:,} channels, all read, one changed, no saver"))
    def read_whole(bench: Bench) -> Sides:
        steps = bench.size(30_000, 15_000) // channels

        def repetition(side: SimpleNamespace) -> Repetition:
            graph, values = wide(side, channels), given(channels, steps)
            return timed(lambda: partial(graph.invoke, values, new_thread(steps)), steps)

        return {**bench.each(repetition), FLOOR: timed(lambda: copying(channels, steps), steps)}


row(300)
row(3_000)


@measured(Row("channels.block", "longest hold of the event loop, 3,000 channels, in-memory saver"))
def held_up(bench: Bench) -> Sides:
    steps = bench.size(10, 4)

    def repetition(side: SimpleNamespace) -> Repetition:
        graph, values = wide(side, 3_000, side.InMemorySaver(), awaits=True), given(3_000, steps)
        return lambda: around(lambda: (asyncio.run(longest(graph, values, steps)) * 1e6,))

    return {**bench.each(repetition), FLOOR: timed(lambda: copying(3_000, steps), steps)}


async def longest(graph: Any, values: dict[str, int], steps: int) -> float:
    """CPU seconds of the longest turn of the event loop while a run goes on beside a task that asks for every turn."""
    run = asyncio.ensure_future(graph.ainvoke(values, new_thread(steps)))
    most, before = 0.0, thread_time()
    while not run.done():
        await asyncio.sleep(0)
        now = thread_time()
        most, before = max(most, now - before), now
    await run
    return most
