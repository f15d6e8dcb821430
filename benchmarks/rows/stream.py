"""What watching a run costs: the time to the first chunk, a chunk that a node writes, and a superstep in each mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from benchmarks.graphs import Counter, loop, new_thread, python
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR
from benchmarks.timing import Repetition, timed

MODES = ("updates", "values", "tasks", "checkpoints", "debug", "messages")


def writing(side: SimpleNamespace, count: int) -> Any:
    """A graph whose node writes that many chunks."""
    config = import_module(f"{side.package}.config")

    def node(state: Counter) -> dict[str, int]:
        write = config.get_stream_writer()
        for number in range(count):
            write(number)
        return {"n": count}

    return side.StateGraph(Counter).add_node("n", node).add_edge(side.START, "n").compile()


def first_chunks(graph: Any, runs: int) -> Callable[[], Any]:
    """The first chunk of so many runs; the rest of each counts too, which is next to nothing."""

    def take() -> None:
        for _ in range(runs):
            chunks = graph.stream({"n": 0, "until": 0}, stream_mode="custom")
            next(chunks)
            chunks.close()

    return take


@measured(Row("stream.first", "from the call to the first chunk"))
def first(bench: Bench) -> Sides:
    runs = bench.size(100, 30)
    sides = bench.each(lambda side: timed(partial(first_chunks, writing(side, 1), runs), runs))
    return {**sides, FLOOR: python()}


@measured(Row("stream.chunk", "a chunk that a node writes, one of 20,000"))
def chunk(bench: Bench) -> Sides:
    count = bench.size(20_000, 5_000)

    def all_of(side: SimpleNamespace) -> Repetition:
        graph = writing(side, count)
        return timed(lambda: lambda: sum(1 for _ in graph.stream({"n": 0}, stream_mode="custom")), count)

    return {**bench.each(all_of), FLOOR: python()}


def watched(mode: str) -> None:
    """The row of a mode."""

    @measured(Row(f"stream.{mode}", f"superstep watched in mode {mode}, in-memory saver"))
    def watching(bench: Bench) -> Sides:
        steps = bench.size(300, 100)

        def repetition(side: SimpleNamespace) -> Repetition:
            graph = loop(side, side.InMemorySaver())

            def prepare() -> Callable[[], Any]:
                config = new_thread(steps)
                return lambda: sum(1 for _ in graph.stream({"n": 0, "until": steps}, config, stream_mode=mode))

            return timed(prepare, steps)

        return {**bench.each(repetition), FLOOR: python()}


for one in MODES:
    watched(one)
