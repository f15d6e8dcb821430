"""The budgets: each names a row, and what a check says of a figure."""

from __future__ import annotations

import pytest

from benchmarks import rows
from benchmarks.budgets import Budget, budgets
from benchmarks.curves import exponent
from benchmarks.measured import MEASUREMENTS, Figure, named
from benchmarks.sides import FLOOR, OURS

assert rows, "importing it registers the rows"


def figures(ours: float, floor: float) -> dict[str, Figure]:
    return {OURS: Figure(ours, ours, ours, 1), FLOOR: Figure(floor, floor, floor, 1)}


def test_every_budget_is_that_of_a_row() -> None:
    measured = [row.name for one in MEASUREMENTS for row in one.rows]

    assert len(measured) == len(set(measured))
    assert set(budgets()) <= set(measured)


def test_a_must_is_met_or_what_holds_today_is_written_down() -> None:
    assert [] == [
        name for name, budget in budgets().items() if budget.today is not None and budget.today <= budget.must
    ]


@pytest.mark.parametrize(
    ("budget", "ours", "word", "kept"),
    [
        (Budget(20, 12, floor=0.5), 20.0, "aim met", True),  # a machine half as fast: 10 on that of the musts
        (Budget(20, 12, floor=0.5), 39.0, "met", True),
        (Budget(20, 12, floor=0.5), 79.0, "met within the noise", True),
        (Budget(20, 12, floor=0.5), 81.0, "BROKEN", False),
        (Budget(20, 12, floor=0.5, today=30), 39.0, "met", True),
        (Budget(20, 12, floor=0.5, today=30), 60.0, "not met: 1.5x", True),
        (Budget(20, 12, floor=0.5, today=30), 121.0, "not met: 3.0x, WORSE than today", False),
        (Budget(20, 12), 21.0, "met within the noise", True),
    ],
)
def test_a_figure_is_judged_by_its_floor(budget: Budget, ours: float, word: str, kept: bool) -> None:
    verdict = budget.verdict(figures(ours, floor=1.0))

    assert (word, kept) == (verdict.word, verdict.used <= 1)


def test_one_odd_round_of_the_floor_or_of_ours_breaks_no_budget() -> None:
    """A floor once took 14 µs in one round of twelve and 50 in the others: the row it stood beside was refused."""
    ours, floor = Figure(1_700, 1_650, 9_000, 12), Figure(50, 14, 54, 12)
    budget = Budget(1_500, 900, floor=90.0, today=2_300)

    assert ("not met: 2.0x", True) == (lambda it: (it.word, it.used <= 1))(budget.verdict({OURS: ours, FLOOR: floor}))


def test_a_group_is_chosen_by_its_name() -> None:
    assert {"superstep"} == {row.name.split(".")[0] for one in named(["superstep"]) for row in one.rows}
    with pytest.raises(LookupError, match="no row or group 'supersteps'"):
        named(["supersteps"])


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
def test_the_exponent_of_a_power_law_is_found_behind_a_fixed_cost(power: float) -> None:
    points = [(float(size), 3.0 * size**power + 5) for size in (1, 10, 100, 1_000, 10_000, 100_000)]

    assert exponent(points) == pytest.approx(power, abs=0.06)
