"""How one repetition is timed.

1. CPU time of the whole process (`time.process_time`): threads count, waiting does not. A row of wall time says so.
2. A spin loop runs before and after each repetition: its time says how fast the machine is just then. A time is given
   as what it would have been while the spin loop ran fastest.
3. Garbage of what came before is collected first; the collector runs meanwhile as it does in a program.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Any

TURNS = 40_000


@dataclass(frozen=True, slots=True)
class Sample:
    """A figure of one repetition; `spin` is what the spin loop took around it, None for what is not a time."""

    value: float
    spin: float | None = None


Repetition = Callable[[], tuple[Sample, ...]]
"""Does something once and returns a sample for each row that it is measured for."""


def spin() -> float:
    """CPU microseconds of a loop that touches no memory: how fast the machine is just now."""
    start, total = process_time(), 0
    for number in range(TURNS):
        total += number
    return (process_time() - start) * 1e6


def around(work: Callable[[], tuple[float, ...]]) -> tuple[Sample, ...]:
    """Samples of the times that a piece of work returns."""
    gc.collect()
    before = spin()
    times = work()
    spun = (before + spin()) / 2
    return tuple(Sample(time, spun) for time in times)


def timed(
    prepare: Callable[[], Callable[[], Any]], units: int, clock: Callable[[], float] = process_time, scale: float = 1e6
) -> Repetition:
    """Time what `prepare` returns; it is not timed itself. Per unit, in microseconds unless `scale` says otherwise."""

    def repeat() -> tuple[Sample, ...]:
        work = prepare()

        def run() -> tuple[float]:
            start = clock()
            work()
            return ((clock() - start) * scale / units,)

        return around(run)

    return repeat


def exact(figures: Callable[[], tuple[float, ...]]) -> Repetition:
    """Figures that are not times: bytes, counts."""
    return lambda: tuple(Sample(figure) for figure in figures())


def once(repetition: Repetition) -> Repetition:
    """The first samples again and again, for what takes minutes."""
    taken: list[tuple[Sample, ...]] = []

    def repeat() -> tuple[Sample, ...]:
        if not taken:
            taken.append(repetition())
        return taken[0]

    return repeat
