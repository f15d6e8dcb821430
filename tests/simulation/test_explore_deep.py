"""Three levels of graphs in two Sends: every effect of every level."""

from __future__ import annotations

import pytest

from pregel.testing import crash_matrix, explore
from tests.simulation.graphs import IN, deep, typed

LOG = ["in", "route", "x/0", "q1 after p1", "x/0", "q2 after p2", "after/6"]


@pytest.mark.slow
def test_subgraphs_in_sends_survive_every_death_at_every_level() -> None:
    report = crash_matrix(deep(), IN)

    assert LOG == report.ends[0].values["log"]
    assert report.effects > 40


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_subgraphs_survive_every_death_in_many_orders() -> None:
    report = explore(deep(), IN, orders=8)

    assert (LOG, 8) == (report.ends[0].values["log"], report.orders)


@pytest.mark.slow
def test_subgraphs_whose_input_is_made_by_user_code_survive_every_death() -> None:
    report = explore(typed(), {"log": ["in"], "item": 3}, orders=3, faults=("crash", "cancel", "stubborn"))

    assert ["in", "in", "x3", "y2", "in", "x3", "y2", "after/7"] == report.ends[0].values["log"]
