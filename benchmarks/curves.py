"""Growth curves: time and bytes against steps, turns, channels, nodes and fan-out width, with the fitted exponent.

An exponent says what happens when the size doubles: 0 nothing, 1 twice as much, 2 four times as much.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import process_time
from types import SimpleNamespace
from typing import Any

from benchmarks.databases import sqlite
from benchmarks.graphs import invoke, loop, new_thread
from benchmarks.measured import Bench, Figure
from benchmarks.rows.channels import given, wide
from benchmarks.rows.conversation import tool_loop
from benchmarks.rows.send import fan, work
from benchmarks.sides import OURS, messages_of
from benchmarks.timing import Sample, around

Point = tuple[float, float]


@dataclass(frozen=True)
class Curve:
    """What a size costs. `cost` returns (CPU milliseconds, stored kilobytes) for an implementation and a size."""

    name: str
    of: str
    against: str
    sizes: tuple[int, ...]
    peer_up_to: int
    cost: Callable[[SimpleNamespace, int], tuple[Sample, Sample]]


@dataclass(frozen=True)
class Drawn:
    """The points of one side, and the exponent that fits them best."""

    side: str
    points: tuple[Point, ...]

    @property
    def exponent(self) -> float:
        return exponent(self.points)


def exponent(points: Sequence[Point]) -> float:
    """The slope of the line of least squares through the logarithms of the upper half of the points.

    The lower half is left out: there the fixed cost of a run hides how it grows.
    """
    upper = [(math.log(x), math.log(max(y, 1e-9))) for x, y in points[len(points) // 2 - 1 :]]
    mean_x, mean_y = (sum(axis) / len(upper) for axis in zip(*upper, strict=True))
    above = sum((x - mean_x) * (y - mean_y) for x, y in upper)
    return float(above / sum((x - mean_x) ** 2 for x, _ in upper))


# -- what grows -------------------------------------------------------------------------------------------------------


def stored(graph_of: Callable[[Any], Callable[[], Any]]) -> Callable[[SimpleNamespace], tuple[Sample, Sample]]:
    """CPU milliseconds and stored kilobytes of a run on a new SQLite file."""

    def cost(side: SimpleNamespace) -> tuple[Sample, Sample]:
        with sqlite(side) as file:
            run, empty = graph_of(file.saver), file.size()

            def timed_run() -> tuple[float]:
                start = process_time()
                run()
                return ((process_time() - start) * 1e3,)

            (time,) = around(timed_run)
            return time, Sample((file.size() - empty) / 1024)

    return cost


def steps(side: SimpleNamespace, size: int) -> tuple[Sample, Sample]:
    return stored(lambda saver: invoke(loop(side, saver), size, durability="async"))(side)


def turns(side: SimpleNamespace, size: int) -> tuple[Sample, Sample]:
    def run(saver: Any) -> Callable[[], Any]:
        start = {"messages": [messages_of(side).human("hi", id="h")], "turn": 0}
        return partial(tool_loop(side, size, saver).invoke, start, new_thread(1_000_000), durability="async")

    return stored(run)(side)


def channels(side: SimpleNamespace, size: int) -> tuple[Sample, Sample]:
    def run(saver: Any) -> Callable[[], Any]:
        return partial(wide(side, size, saver).invoke, given(size, 10), new_thread(10), durability="async")

    return stored(run)(side)


def nodes(side: SimpleNamespace, size: int) -> tuple[Sample, Sample]:
    return stored(lambda saver: invoke(loop(side, saver, idle=size - 1), 50, durability="async"))(side)


def width(side: SimpleNamespace, size: int) -> tuple[Sample, Sample]:
    def run(saver: Any) -> Callable[[], Any]:
        return partial(fan(side, work, saver).invoke, {"items": list(range(size))}, new_thread(), durability="async")

    return stored(run)(side)


CURVES = (
    Curve("steps", "a run of so many supersteps", "supersteps", (30, 100, 300, 1_000, 3_000, 10_000), 1_000, steps),
    Curve("turns", "a loop of so many tool calls", "tool turns", (8, 16, 32, 64, 128, 256, 512), 64, turns),
    Curve(
        "channels", "ten supersteps in so many channels", "channels", (10, 30, 100, 300, 1_000, 3_000), 1_000, channels
    ),
    Curve("nodes", "fifty supersteps in a graph of so many nodes", "nodes", (10, 30, 100, 300, 1_000), 1_000, nodes),
    Curve("width", "a fan-out to so many tasks", "tasks", (10, 30, 100, 300, 1_000, 3_000, 10_000), 300, width),
)


def drawn(curve: Curve, bench: Bench, rounds: int) -> tuple[list[Drawn], list[Drawn]]:
    """(time in milliseconds, stored kilobytes) of each side: least times, sides in turn at each size."""
    times: dict[str, list[Point]] = {}
    stored: dict[str, list[Point]] = {}
    for size in curve.sizes[:-2] if bench.quick else curve.sizes:
        taken: dict[str, list[tuple[Sample, ...]]] = {}
        for _ in range(rounds):
            for name, cost in costs(curve, bench, size).items():
                taken.setdefault(name, []).append(cost(size))
        for name, samples in taken.items():
            quiet = min(time.spin or 0 for time, _ in samples)
            times.setdefault(name, []).append((size, Figure.of([time for time, _ in samples], quiet).least))
            stored.setdefault(name, []).append((size, Figure.of([kept for _, kept in samples], quiet).median))
    return [Drawn(name, tuple(points)) for name, points in times.items()], [
        Drawn(name, tuple(points)) for name, points in stored.items()
    ]


def costs(curve: Curve, bench: Bench, size: int) -> dict[str, Callable[[int], tuple[Sample, ...]]]:
    """What each side does for a point: ours, and the peer where it takes no minutes."""
    found: dict[str, Callable[[int], tuple[Sample, ...]]] = {OURS: partial(curve.cost, bench.ours)}
    if bench.peer is not None and size <= curve.peer_up_to:
        found[bench.peer.name] = partial(bench.peer.point, curve.name)
    return found
