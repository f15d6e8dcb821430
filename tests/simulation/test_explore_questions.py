"""Questions: a death between asking and answering, and after it, asks nothing twice and loses no answer."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.testing import crash_matrix, explore
from pregel.types import Command, Interrupt
from tests.simulation.graphs import IN, answering, asking


@pytest.mark.acceptance("S1-24", "S1-25")
def test_an_answer_survives_every_death_of_the_run_that_got_it() -> None:
    report = explore(answering(), IN, Command(resume="yes"))

    assert ["interrupted", "done"] == [end.status for end in report.ends]
    assert ["in", "first/1", "answer yes", "work/2", "last/4"] == report.ends[1].values["log"]
    assert report.exhaustive


@pytest.mark.acceptance("S1-38")
def test_questions_of_a_node_and_of_a_subgraph_are_answered_by_id_across_every_death() -> None:
    report = crash_matrix(asking(), IN, by_id, Command(resume="last"))

    assert [("one?", "inner?"), ("two?",), ()] == [end.asked for end in report.ends]
    assert ["in", "ask ONE? last", "in", "before", "inner INNER?", "join/5"] == report.ends[2].values["log"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_questions_are_answered_by_id_in_every_order() -> None:
    assert explore(asking(), IN, by_id, Command(resume="last")).exhaustive


def by_id(asked: tuple[Interrupt, ...]) -> Command[Any]:
    """An answer to each question."""
    return Command(resume={question.id: question.value.upper() for question in asked})
