"""Rows, what they are measured by, and the samples that come of it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING

from benchmarks.sides import FLOOR, OURS
from benchmarks.timing import Repetition, Sample

if TYPE_CHECKING:
    from benchmarks.peer import Elsewhere

EXACT = ("B", "kB", "MB", "x")
"""Units of what is the same on every machine, or nearly so; anything else is a time."""


class Missing(Exception):
    """Something that a row needs is not here; the message says what."""


@dataclass(frozen=True)
class Row:
    """A line of the report. `name` is what the command line and budgets.toml call it."""

    name: str
    what: str
    unit: str = "µs"

    @property
    def exact(self) -> bool:
        return self.unit in EXACT


@dataclass
class Bench:
    """What a measurement is made with: one implementation here, and the peer in another process where it is asked for.

    What a measurement opens on `stack` is closed when its samples are in.
    """

    sides: Mapping[str, SimpleNamespace]
    quick: bool = False
    peer: Elsewhere | None = None
    stack: ExitStack = field(default_factory=ExitStack)

    def size(self, full: int, quick: int) -> int:
        """How many units a repetition does."""
        return quick if self.quick else full

    @property
    def ours(self) -> SimpleNamespace:
        """Our implementation, for what only ours does."""
        if OURS not in self.sides:
            raise Missing("It is measured for ours alone.")
        return self.sides[OURS]

    def each(self, repetition: Callable[[SimpleNamespace], Repetition]) -> dict[str, Repetition]:
        """The same for every implementation."""
        return {name: repetition(side) for name, side in self.sides.items()}


Sides = Mapping[str, Repetition]


@dataclass(frozen=True)
class Measurement:
    """Rows that come from the same repetitions. `full`: too long for a check; `rounds`: no more than so many."""

    rows: tuple[Row, ...]
    sides: Callable[[Bench], Sides]
    full: bool = False
    rounds: int | None = None


MEASUREMENTS: list[Measurement] = []


def measured(
    *rows: Row, full: bool = False, rounds: int | None = None
) -> Callable[[Callable[[Bench], Sides]], Callable[[Bench], Sides]]:
    """Register what a function returns as the measurement of some rows."""

    def register(sides: Callable[[Bench], Sides]) -> Callable[[Bench], Sides]:
        MEASUREMENTS.append(Measurement(rows, sides, full, rounds))
        return sides

    return register


def named(names: Sequence[str], order: Sequence[str] = ()) -> list[Measurement]:
    """The measurements with a row of one of these names or groups; all of them without a name.

    Rows of `order` come first, in that order.
    """
    rank = {name: place for place, name in enumerate(order)}
    ordered = sorted(MEASUREMENTS, key=lambda one: rank.get(one.rows[0].name, len(rank)))
    known = {row.name for one in MEASUREMENTS for row in one.rows}
    for name in names:
        if not any(row == name or row.startswith(f"{name}.") for row in known):
            raise LookupError(f"There is no row or group {name!r}. Groups: {', '.join(groups())}.")
    return [
        one
        for one in ordered
        if not names or any(row.name == name or row.name.startswith(f"{name}.") for row in one.rows for name in names)
    ]


def groups() -> list[str]:
    """The first parts of the names of rows."""
    return list(dict.fromkeys(row.name.split(".")[0] for one in MEASUREMENTS for row in one.rows))


# -- samples ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """Median, least and greatest of the rounds."""

    median: float
    least: float
    greatest: float
    rounds: int

    @classmethod
    def of(cls, samples: Sequence[Sample], quiet: float) -> Figure:
        """Times are set to a machine whose spin loop takes `quiet`."""
        values = [one.value if one.spin is None else one.value * quiet / one.spin for one in samples]
        return cls(statistics.median(values), min(values), max(values), len(values))


class Samples:
    """The samples of one measurement, by row and side."""

    def __init__(self, measurement: Measurement) -> None:
        self.measurement = measurement
        self.taken: dict[str, list[tuple[Sample, ...]]] = {}

    def add(self, side: str, samples: tuple[Sample, ...]) -> None:
        self.taken.setdefault(side, []).append(samples)

    def spins(self) -> Iterator[float]:
        """What the spin loop took around each."""
        for rounds in self.taken.values():
            for samples in rounds:
                yield from (sample.spin for sample in samples if sample.spin is not None)

    def figures(self, quiet: float) -> dict[str, dict[str, Figure]]:
        """By name of a row and side. A floor of one figure is that of every time, and of nothing else."""
        found: dict[str, dict[str, Figure]] = {}
        for at, row in enumerate(self.measurement.rows):
            found[row.name] = {
                side: Figure.of([samples[min(at, len(samples) - 1)] for samples in rounds], quiet)
                for side, rounds in self.taken.items()
                if at < len(rounds[0]) or not row.exact
            }
        return found


@contextmanager
def opened(measurement: Measurement, bench: Bench) -> Iterator[Sides]:
    """The repetitions of a measurement; what they need is there for a `with` block."""
    with ExitStack() as stack:
        bench.stack = stack
        sides = dict(measurement.sides(bench))
        theirs = stack.enter_context(bench.peer.opened(measurement)) if bench.peer is not None else None
        if bench.peer is not None and theirs is not None:
            floor = {FLOOR: sides.pop(FLOOR)} if FLOOR in sides else {}
            sides |= {bench.peer.name: theirs} | floor
        yield sides


def take(measurement: Measurement, bench: Bench, rounds: int, until: float = float("inf")) -> Samples:
    """Measure: one round to warm up, then the sides in turn (A B A B); past `until` (`perf_counter`) no more."""
    samples = Samples(measurement)
    rounds = min(rounds, measurement.rounds or rounds)
    with opened(measurement, bench) as sides:
        if measurement.rounds != 1:
            for repeat in sides.values():
                repeat()
        for turn in range(rounds):
            if turn and perf_counter() > until:
                break
            for side, repeat in sides.items():
                samples.add(side, repeat())
    return samples


def times_floor(figures: Mapping[str, Figure], side: str) -> float:
    """A side's figure as a multiple of the floor's: medians, since a floor's least can be a fluke."""
    return figures[side].median / figures[FLOOR].median
