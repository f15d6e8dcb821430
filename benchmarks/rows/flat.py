"""Whether a superstep costs the same in a large graph as in a small one, and late in a run as early."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from types import SimpleNamespace
from typing import Any

from benchmarks.graphs import invoke, loop, new_thread
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.timing import Repetition, Sample, timed

TURNS = 3


def ratio(small: Callable[[], tuple[Sample, ...]], large: Callable[[], tuple[Sample, ...]]) -> Repetition:
    """The least of some turns of a large thing as a multiple of a small one's."""

    def repeat() -> tuple[Sample, ...]:
        turns = [(small()[0], large()[0]) for _ in range(TURNS)]
        least = [min(one.value / (one.spin or 1) for one in side) for side in zip(*turns, strict=True)]
        return (Sample(least[1] / least[0]),)

    return repeat


@measured(Row("flat.nodes", "superstep in a graph of 1,000 nodes against one of 10", "x"))
def nodes(bench: Bench) -> Sides:
    steps = bench.size(200, 100)

    def compared(side: SimpleNamespace) -> Repetition:
        small, large = loop(side, idle=9), loop(side, idle=999)
        return ratio(timed(lambda: invoke(small, steps), steps), timed(lambda: invoke(large, steps), steps))

    return bench.each(compared)


def in_steps(name: str, what: str, saved: bool) -> None:
    """A row of the last tenth of a run against the first."""

    @measured(
        Row(
            f"flat.steps_{name}",
            f"superstep, {what}: the last tenth of 10,000 (peer: 1,000; check: 3,000) against the first",
            "x",
        )
    )
    def steps(bench: Bench) -> Sides:
        def compared(side: SimpleNamespace) -> Repetition:
            length = bench.size(10_000, 3_000) if side.package == "pregel" else 1_000
            return lambda: (Sample(tenths(loop(side, side.InMemorySaver() if saved else None), length)),)

        return bench.each(compared)


def tenths(graph: Any, steps: int) -> float:
    """CPU time of the last tenth of a run as a multiple of the first's; each as ten times its quickest hundredth."""
    chunks = graph.stream({"n": 0, "until": steps}, new_thread(steps), stream_mode="updates")
    marks = [process_time() for _ in chunks]
    part = steps // 100
    hundredths = [marks[at + part] - marks[at] for at in range(0, steps - part, part)]
    return min(hundredths[-10:]) / min(hundredths[:10])


in_steps("none", "no saver", False)
in_steps("memory", "in-memory saver", True)
