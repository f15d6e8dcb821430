"""`python -m benchmarks`: measure rows, ours beside the floor and, when asked, the peer; or check the budgets.

python -m benchmarks                      every row, as a Markdown table
python -m benchmarks superstep send       groups; or rows like superstep.none
python -m benchmarks --peer langgraph     the peer beside it (extra `compare`)
python -m benchmarks --out DIR            also results.json, results.md and a plot of each growth curve
python -m benchmarks --check              the budgets, in less than 45 s; exit code 1 when one is broken
python -m benchmarks --check --full       the same from a full run of every row, with the peer
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path
from time import perf_counter

from benchmarks import rows as _rows  # noqa: F401  # registers the measurements
from benchmarks.budgets import Budget, budgets
from benchmarks.check import check
from benchmarks.measured import Bench, Measurement, Missing, Samples, groups, named, take
from benchmarks.peer import Elsewhere
from benchmarks.report import Report
from benchmarks.results import measured_curves, table, write
from benchmarks.sides import OURS, PEERS, implementation_of
from benchmarks.timing import spin

LEAST_ROUNDS = 5
CURVES = "curves"


def options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help=f"rows or groups: {', '.join([*groups(), CURVES])}")
    parser.add_argument("--peer", choices=PEERS, help="measure it beside ours")
    parser.add_argument("--rounds", type=int, default=LEAST_ROUNDS, help="of all sides in turn (default: 5)")
    parser.add_argument("--quick", action="store_true", help="fewer units in a repetition, and no long rows")
    parser.add_argument("--out", type=Path, help="where results.json, results.md and the plots go")
    parser.add_argument("--check", action="store_true", help="hold fresh figures against budgets.toml")
    parser.add_argument("--full", action="store_true", help="with --check: every row, and the peer")
    return parser.parse_args(arguments)


def selected(names: Sequence[str], order: Sequence[str], quick: bool) -> list[Measurement]:
    """What these names mean; without names, everything but what is too long for a quick run. LookupError for none."""
    rows = [name for name in names if name != CURVES]
    chosen = named(rows, order) if rows or not names else []
    return [one for one in chosen if rows or not (quick and one.full)]


def measure(chosen: list[Measurement], bench: Bench, rounds: int, report: Report) -> None:
    """Every row of some measurements; what they need and is not here is said."""
    taken: list[Samples] = []
    for one in chosen:
        began = perf_counter()
        try:
            taken.append(take(one, bench, rounds))
        except Missing as missing:
            report.missing.update((row.name, str(missing)) for row in one.rows)
        print(f"  {one.rows[0].name}: {perf_counter() - began:.1f} s", file=sys.stderr, flush=True)
    report.quiet = min((quick for samples in taken for quick in samples.spins()), default=spin())
    for samples in taken:
        figures = samples.figures(report.quiet)
        report.rows += [(row, figures[row.name]) for row in samples.measurement.rows]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. The exit code: 1 when a budget that is held is broken, 2 when it cannot be measured."""
    given = options(arguments)
    quick = given.quick or (given.check and not given.full)
    peer = given.peer or ("langgraph" if given.check and given.full else None)
    known = budgets()
    try:
        chosen = selected(given.names, list(known), quick)
        bench = Bench({OURS: implementation_of(OURS)}, quick, started(peer, quick))
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    gc.freeze()  # what the benchmarks themselves hold is not collected again and again
    try:
        if given.check and not given.full:
            chosen = [one for one in chosen if any(row.name in known for row in one.rows)]
            return 0 if check(chosen, bench, known, lambda line: print(line, flush=True)) else 1
        return full(chosen, bench, known, given)
    finally:
        if bench.peer is not None:
            bench.peer.end()


def started(peer: str | None, quick: bool) -> Elsewhere | None:
    """The process of the peer. LookupError when the peer is not installed."""
    if peer is None:
        return None
    if util.find_spec(PEERS[peer]) is None:
        raise LookupError(f"{peer} is not installed in this environment: pip install 'pregel[compare]'.")
    return Elsewhere(peer, quick)


def full(chosen: list[Measurement], bench: Bench, known: Mapping[str, Budget], given: argparse.Namespace) -> int:
    """Every row that was asked for, and the curves; the exit code."""
    report = Report(known, bench.peer.name if bench.peer else None)
    measure(chosen, bench, max(given.rounds, 1), report)
    curves = measured_curves(bench, 1 if bench.quick else 3) if CURVES in given.names or not given.names else {}
    print(report.markdown() + ("\n" + table(curves) if curves else ""))
    if given.out:
        write(given.out, report, curves)
    return 1 if given.check and report.broken() else 0


if __name__ == "__main__":
    sys.exit(main())
