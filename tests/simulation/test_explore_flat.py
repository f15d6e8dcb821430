"""Three steps with a fan-out: every order of completion, every death at every effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.testing import End, crash_matrix, explore
from pregel.testing.explore import FAULTS
from pregel.testing.scripted import FaultKind
from tests.simulation.graphs import IN, conflicting, failing, flat

ALL = {"crash", "raise", "lost", "cancel", "stubborn", "zombie"}


@pytest.mark.acceptance("S1-32", "S1-34")
def test_a_fan_out_ends_the_same_in_every_order_and_after_every_death() -> None:
    report = explore(flat(3), IN)

    assert [End("done", {"log": ["in", "first", "n0/2", "n2/2", "join of 4"], "last": "first!"}, (), "")] == report.ends
    assert (6, True, ALL) == (report.orders, report.exhaustive, set(report.faults))
    assert report.runs > 500


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("width", "orders", "faults"), [(4, 24, FAULTS), (5, 120, ("crash",))])
def test_every_order_of_a_wide_fan_out(width: int, orders: int, faults: tuple[FaultKind, ...]) -> None:
    report = explore(flat(width), IN, faults=faults)

    assert ("done", orders, True) == (report.ends[0].status, report.orders, report.exhaustive)


def test_a_second_input_on_the_thread_goes_the_same_way() -> None:
    report = explore(flat(2), IN, IN, faults=("crash", "zombie"))

    assert (["done", "done"], 4) == ([end.status for end in report.ends], report.orders)


def test_what_sqlite_stores_survives_every_death(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db"), synchronous="NORMAL") as saver:
        report = crash_matrix(flat(2), IN, saver=saver)

    assert ALL == set(report.faults)


@pytest.mark.acceptance("S1-39")
def test_attempts_beside_other_work_repeat_nothing_that_is_stored() -> None:
    report = explore(failing(), IN, orders=3)

    assert (["in", "flaky", "work/1", "join/3"], ALL) == (report.ends[0].values["log"], set(report.faults))


def test_a_step_that_cannot_be_applied_is_stored_whole_and_fails_again_without_running() -> None:
    report = explore(conflicting(), IN)

    assert ("failed", ALL) == (report.ends[0].status, set(report.faults))
    assert "Can receive only one value per step" in report.ends[0].error
