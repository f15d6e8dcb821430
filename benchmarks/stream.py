"""What watching a run costs: the time to the first chunk, a chunk that a node writes, and a superstep in each mode."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any

from benchmarks._harness import OURS, Contender, Report, measure, options, sides
from benchmarks.superstep import THREADS, Counter, cpu, loop

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


def first_chunk(graph: Any) -> Callable[[], Any]:
    """The first chunk of a run, which then ends."""

    def take() -> None:
        chunks = graph.stream({"n": 0, "until": 0}, stream_mode="custom")
        next(chunks)
        chunks.close()

    return take


def all_chunks(graph: Any) -> Callable[[], Any]:
    """Every chunk of a run."""
    return lambda: sum(1 for _ in graph.stream({"n": 0, "until": 0}, stream_mode="custom"))


def watched(graph: Any, steps: int, mode: str) -> Callable[[], Any]:
    """A loop that is watched in a mode."""
    config = {"recursion_limit": steps + 10, "configurable": {"thread_id": f"t{next(THREADS)}"}}
    return lambda: sum(1 for _ in graph.stream({"n": 0, "until": steps}, config, stream_mode=mode))


def main() -> None:
    """Measure and print."""
    given = options(__doc__ or "")
    chunks, steps = (2_000, 50) if given.quick else (100_000, 500)
    report = Report("Streams: CPU time")
    one = {name: writing(side, 1) for name, side in sides().items()}
    wall = measure([Contender(name, partial(first_chunk, graph), 1) for name, graph in one.items()], given.rounds)
    report.add("first chunk of a run, wall µs", {name: timing.wall for name, timing in wall.items()})
    many = {name: writing(side, chunks) for name, side in sides().items()}
    rivals = [Contender(name, partial(all_chunks, graph), chunks) for name, graph in many.items()]
    report.add(f"chunk of {chunks:,} that a node writes, µs", cpu(measure(rivals, given.rounds)))
    loops = {name: loop(side, side.InMemorySaver()) for name, side in sides().items()}
    for mode in MODES:
        length = {name: steps if name == OURS else min(steps, 100) for name in loops}
        rivals = [Contender(n, partial(watched, graph, length[n], mode), length[n]) for n, graph in loops.items()]
        report.add(f"superstep watched in mode {mode}, in-memory saver, µs", cpu(measure(rivals, given.rounds)))
    report.show()


if __name__ == "__main__":
    main()
