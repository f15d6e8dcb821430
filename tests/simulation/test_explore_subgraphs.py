"""Subgraphs that keep their state, keep none, ask, retry, or talk to their parent."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.testing import crash_matrix, explore
from pregel.types import Command, Interrupt
from tests.simulation.graphs import IN, flaky, nested, sending

FIRST = ["in", "beside/1", "in", "x/1", "answer 1", "end/5"]


@pytest.mark.slow
def test_a_subgraph_that_keeps_its_state_takes_each_new_input_after_every_death() -> None:
    report = crash_matrix(nested(True), IN, Command(resume="1"), IN, Command(resume="2"))

    kept = ["in", "x/1", "answer 1"]
    taken = [*FIRST, "in"]
    assert FIRST == report.ends[1].values["log"]
    assert [*taken, "beside/7", *kept, *taken, "x/10", "answer 2", "end/20"] == report.ends[3].values["log"]


@pytest.mark.parametrize("checkpointer", [None, False])
def test_a_subgraph_that_starts_anew_each_time_takes_an_answer_after_every_death(checkpointer: bool | None) -> None:
    report = crash_matrix(nested(checkpointer), IN, Command(resume="1"))

    assert FIRST == report.ends[1].values["log"]


def test_attempts_inside_a_subgraph_go_on_after_every_death() -> None:
    report = crash_matrix(nested(None, last=flaky), IN)

    assert ["in", "beside/1", "in", "x/1", "flaky", "end/5"] == report.ends[0].values["log"]


def test_a_command_for_the_parent_arrives_once_after_every_death() -> None:
    report = crash_matrix(nested(None, last=up), IN)

    assert ["in", "beside/1", "up", "end/3"] == report.ends[0].values["log"]


def up(state: dict[str, Any]) -> Command[Any]:
    return Command(graph=Command.PARENT, update={"log": ["up"]}, goto="end")


@pytest.mark.acceptance("S1-25")
def test_questions_of_sends_are_answered_by_id_in_any_order_after_every_death() -> None:
    report = explore(sending(), IN, by_value, orders=3, faults=("crash", "stubborn"))

    assert ["in", "route", "0 a0", "1 ", "2 a2", "end/5"] == report.ends[1].values["log"]


def by_value(asked: tuple[Interrupt, ...]) -> Command[Any]:
    return Command(resume={question.id: f"a{question.value}" for question in asked})
