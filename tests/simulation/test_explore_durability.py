"""The other durabilities: what is lost is at most what they say, and what is left can be continued."""

from __future__ import annotations

import pytest

from pregel.testing import crash_matrix, explore
from pregel.types import Command, Durability
from tests.simulation.graphs import IN, answering, deep, flat


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_a_fan_out_ends_the_same_after_every_death(durability: Durability) -> None:
    report = explore(flat(2), IN, durability=durability)

    assert ("done", True) == (report.ends[0].status, report.exhaustive)


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_an_answer_is_stored_before_anything_runs(durability: Durability) -> None:
    report = crash_matrix(answering(), IN, Command(resume="yes"), durability=durability)

    assert ["interrupted", "done"] == [end.status for end in report.ends]


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_subgraphs_end_the_same_after_a_crash_and_a_cancellation(durability: Durability) -> None:
    report = crash_matrix(deep(), IN, durability=durability, faults=("crash", "stubborn"))

    assert ["done"] == [end.status for end in report.ends]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", ["async", "exit"])
def test_subgraphs_end_the_same_after_every_death(durability: Durability) -> None:
    report = explore(deep(), IN, durability=durability, orders=4)

    assert ["done"] == [end.status for end in report.ends]
