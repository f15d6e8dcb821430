"""Holds fresh figures against the budgets, within a time that CI can spare.

1. Only figures that a floor of the same run stands beside, or that no machine changes.
2. Ours by the least of some rounds, the floor by the median. A row that is over is measured again before it fails,
   twice at most, and all rounds count.
3. A row whose database is not here fails. One that the machine is too busy for is left out, which is said; when that is
   more than half of them, the check fails, since nobody knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter

from benchmarks.budgets import Budget
from benchmarks.measured import Bench, Measurement, Missing, Samples, take
from benchmarks.timing import spin

SECONDS = 45.0
RESERVED = 8.0
"""Of these, kept for measuring again."""
ROUNDS, AGAIN = 12, 2


def check(
    measurements: list[Measurement], bench: Bench, budgets: Mapping[str, Budget], say: Callable[[str], None]
) -> bool:
    """Whether all budgets of these measurements are kept. Says a line for each row."""
    began = perf_counter()
    end = began + SECONDS
    taken, kept = first_look(measurements, bench, end - RESERVED, say)
    for one, samples in taken.items():
        for _ in range(AGAIN):
            if perf_counter() > end - 2 or kept_by(one, samples, budgets):
                break
            more = take(one, bench, ROUNDS, end - 2)
            for side, rounds in more.taken.items():
                samples.taken[side] += rounds
        kept = report(one, samples, budgets, say) and kept
    enough = 2 * len(taken) >= len(measurements)
    word = ("kept" if kept else "BROKEN") if enough else "too few to say"
    say(f"{len(taken)} of {len(measurements)} measured in {perf_counter() - began:.0f} s: {word}")
    return kept and enough


def first_look(
    measurements: list[Measurement], bench: Bench, end: float, say: Callable[[str], None]
) -> tuple[dict[Measurement, Samples], bool]:
    """The samples of each, within a fair share of the time; whether everything that they need is here."""
    taken: dict[Measurement, Samples] = {}
    kept = True
    for at, one in enumerate(measurements):
        now = perf_counter()
        if now > end:
            say(f"left out, the machine is too busy: {', '.join(row.name for row in one.rows)}")
            continue
        try:
            taken[one] = take(one, bench, ROUNDS, now + (end - now) / (len(measurements) - at))
        except Missing as missing:
            kept = False
            say(f"MISSING {one.rows[0].name}: {missing}")
    return taken, kept


def kept_by(measurement: Measurement, samples: Samples, budgets: Mapping[str, Budget]) -> bool:
    """Whether every row is within what is allowed."""
    return report(measurement, samples, budgets, lambda line: None)


def report(
    measurement: Measurement, samples: Samples, budgets: Mapping[str, Budget], say: Callable[[str], None]
) -> bool:
    """Say a line for each row; whether all are within what is allowed."""
    quiet = min(samples.spins(), default=spin())
    figures, kept = samples.figures(quiet), True
    for row in measurement.rows:
        if row.name not in budgets:
            continue
        budget = budgets[row.name]
        verdict = budget.verdict(figures[row.name])
        kept = kept and verdict.used <= 1
        ours = budget.measured(figures[row.name])
        held = "" if budget.today is None else f", today's {budget.today:g}"
        say(
            f"{'ok    ' if verdict.used <= 1 else 'BROKEN'}  {row.name:28} {ours:10.3g} {row.unit:3}"
            f" of {budget.must:g}{held}: {verdict.word}"
        )
    return kept
