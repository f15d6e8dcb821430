"""How the benchmarks measure: CPU time, contenders interleaved in one process, the least of some rounds, as a table.

1. Only ratios of one run on one machine mean something; the absolute budgets are for the machine of the design notes.
2. CPU time of the whole process (`time.process_time`): threads count, waiting does not.
3. Contenders take turns within each round, so that a busy machine disturbs all of them alike; the least time wins.
4. A benchmark reports and never fails: its exit code is 0 whatever it finds.
"""

from __future__ import annotations

import argparse
import gc
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import import_module, metadata, util
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any

OURS, REFERENCE, BARE = "ours", "reference", "bare"
PACKAGES = {OURS: "pregel", REFERENCE: "langgraph"}


# -- what competes ----------------------------------------------------------------------------------------------------


@cache
def sides() -> dict[str, SimpleNamespace]:
    """The public names of each implementation that is installed: ours, and the reference when it is there."""
    return {side: names(PACKAGES[side]) for side in installed()}


def installed() -> list[str]:
    """The implementations that can be imported."""
    return [
        side for side, package in PACKAGES.items() if util.find_spec(package) and util.find_spec(f"{package}.graph")
    ]


def names(package: str) -> SimpleNamespace:
    """What the benchmarks use of one implementation."""
    graph, types = import_module(f"{package}.graph"), import_module(f"{package}.types")
    return SimpleNamespace(
        package=package,
        StateGraph=graph.StateGraph,
        START=graph.START,
        END=graph.END,
        Send=types.Send,
        InMemorySaver=import_module(f"{package}.checkpoint.memory").InMemorySaver,
    )


@dataclass(frozen=True)
class Contender:
    """Something to time. `prepare` is not timed and returns what is; `units` is how many things that does."""

    name: str
    prepare: Callable[[], Callable[[], Any]]
    units: int


@dataclass
class Timing:
    """The least CPU and wall time of one unit, in microseconds."""

    cpu: float = float("inf")
    wall: float = float("inf")

    def note(self, cpu: float, wall: float) -> None:
        self.cpu, self.wall = min(self.cpu, cpu), min(self.wall, wall)


def measure(contenders: Sequence[Contender], rounds: int) -> dict[str, Timing]:
    """The least time per unit of each contender over some interleaved rounds, after one round to warm up."""
    timings = {contender.name: Timing() for contender in contenders}
    for turn in range(rounds + 1):
        for contender in contenders:
            timed = contender.prepare()
            gc.collect()
            wall, cpu = perf_counter(), process_time()
            timed()
            cpu, wall = process_time() - cpu, perf_counter() - wall
            if turn or rounds == 0:
                timings[contender.name].note(cpu * 1e6 / contender.units, wall * 1e6 / contender.units)
    return timings


# -- what is reported -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """A row of the design's budgets: what ours must not exceed, what it aims at, and how many times less it must be."""

    must: float
    aim: float
    factor: float | None = None


@dataclass(frozen=True)
class Row:
    """A line of a report: figures by side, in the unit that `what` names, and the budget they are held against."""

    what: str
    figures: Mapping[str, float]
    budget: Budget | None = None
    digits: int = 1

    def times_less(self) -> float | None:
        """How many times less ours is than the reference."""
        ours, reference = self.figures.get(OURS), self.figures.get(REFERENCE)
        return reference / ours if ours and reference else None

    def verdict(self) -> str:
        """ok or miss against the budget; nothing without one."""
        ours = self.figures.get(OURS)
        if ours is None or self.budget is None:
            return ""
        if ours <= self.budget.aim:
            return "ok, aim met"
        factor, times = self.budget.factor, self.times_less()
        short = factor is not None and times is not None and times < factor
        return "miss" if ours > self.budget.must or short else "ok"


@dataclass
class Report:
    """Rows under a title, printed as a markdown table."""

    title: str
    rows: list[Row] = field(default_factory=list)

    def add(self, what: str, figures: Mapping[str, float], budget: Budget | None = None, digits: int = 1) -> None:
        """Add a row and show that it is done."""
        self.rows.append(Row(what, dict(figures), budget, digits))

    def show(self) -> None:
        """Print the table with the date and the versions that it was measured with."""
        print(f"## {self.title}\n\n{provenance()}\n")
        print("| what | ours | bare Python | reference | times less | must | aim | |")
        print("|---|---:|---:|---:|---:|---:|---:|---|")
        for row in self.rows:
            print(f"| {' | '.join(cells(row))} |")
        print()


def cells(row: Row) -> list[str]:
    """The cells of a line."""
    budget, times = row.budget, row.times_less()
    figures = [number(row.figures.get(side), row.digits) for side in (OURS, BARE, REFERENCE)]
    if budget is None:
        bounds = ["", ""]
    else:
        factor = "" if budget.factor is None else f" ({budget.factor:g}x)"
        bounds = [f"{budget.must:g}{factor}", f"{budget.aim:g}"]
    return [row.what, *figures, "" if times is None else f"{times:.1f}x", *bounds, row.verdict()]


def number(value: float | None, digits: int) -> str:
    """A figure, or nothing."""
    return "" if value is None else f"{value:,.{digits}f}"


def provenance() -> str:
    """When, and with what."""
    versions = [f"{name} {version(name)}" for name in ("pregel", "langgraph", "langgraph-checkpoint-sqlite")]
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {python}, {platform.machine()}, {', '.join(versions)}"


def version(distribution: str) -> str:
    """An installed version; "source" for ours from a checkout, "not installed" for anything else."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "(source)" if distribution == PACKAGES[OURS] else "(not installed)"


def options(title: str) -> argparse.Namespace:
    """The command line that all benchmarks share."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="fewer units and rounds: a first look in some seconds")
    parser.add_argument("--rounds", type=int, default=None, help="interleaved rounds per figure, the least one counts")
    given = parser.parse_args()
    given.rounds = given.rounds if given.rounds is not None else 2 if given.quick else 5
    return given
