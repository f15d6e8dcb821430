"""What watching a run costs: its first chunk, chunks that a node writes, a superstep in each mode, and run objects."""

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


@measured(Row("stream.run", "a run object of a graph of one node, read to its end"))
def run_object(bench: Bench) -> Sides:
    runs = bench.size(100, 20)

    def all_of(side: SimpleNamespace) -> Repetition:
        graph = loop(side)

        def read() -> None:
            for _ in range(runs):
                assert graph.stream_events({"n": 0, "until": 1}, version="v3").output["n"] == 1

        return timed(lambda: read, runs)

    return {**bench.each(all_of), FLOOR: python()}


@measured(Row("stream.run_chunk", "a chunk that a node writes, one of 20,000, from a projection of a run object"))
def run_object_chunk(bench: Bench) -> Sides:
    count = bench.size(20_000, 2_000)

    def all_of(side: SimpleNamespace) -> Repetition:
        graph = writing(side, count)
        transformer = import_module(f"{side.package}.stream.transformers").CustomTransformer

        def read() -> int:
            run = graph.stream_events({"n": 0}, version="v3", transformers=[transformer])
            return sum(1 for _ in run.extensions["custom"])

        return timed(lambda: read, count)

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
