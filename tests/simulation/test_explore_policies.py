"""Attempts, limits of time and error handlers: every death resumes to the same state, and nothing stored runs again."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.testing import crash_matrix, explore
from pregel.types import Command, Interrupt
from tests.simulation.graphs import IN, asking_handler, handled_sends, handling, timed

ALL = {"crash", "raise", "lost", "cancel", "stubborn", "zombie"}


@pytest.mark.acceptance("S1-39")
def test_a_handled_failure_ends_the_same_after_every_death() -> None:
    report = explore(handling(), IN, orders=2)

    assert (["in", "flaky", "refund after pay", "end/3"], ALL) == (report.ends[0].values["log"], set(report.faults))


def test_the_question_of_a_handler_is_asked_once_and_answered_across_every_death() -> None:
    report = crash_matrix(asking_handler(), IN, Command(resume="yes"))

    assert [("refund?",), ()] == [end.asked for end in report.ends]
    assert ["in", "refund yes", "work/1", "end/3"] == report.ends[1].values["log"]


@pytest.mark.slow
def test_handlers_of_sends_ask_and_send_once_across_every_death() -> None:
    report = crash_matrix(handled_sends(), IN, by_value)

    assert [("1?", "3?"), ()] == [end.asked for end in report.ends]
    sent = ["work 10", "work 30", "end/7"]
    assert ["in", "1 a1?", "work 2", "3 a3?", "end/4", *sent] == report.ends[1].values["log"]


def by_value(asked: tuple[Interrupt, ...]) -> Command[Any]:
    """An answer to each question."""
    return Command(resume={question.id: f"a{question.value}" for question in asked})


def test_a_limit_that_is_passed_at_any_time_ends_the_same_after_every_death() -> None:
    report = explore(timed(), IN, orders=2)

    assert (["in", "in", "x/1", "end/3"], ALL) == (report.ends[0].values["log"], set(report.faults))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("durability", ["async", "exit"])
def test_policies_in_every_durability(durability: str) -> None:
    for graph in (handling(), timed()):
        explore(graph, IN, orders=10, durability=durability)  # type: ignore[arg-type]  # one of the names
