"""Tasks and graphs that nodes call: every death at every effect, and what ended does not run again."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.testing import crash_matrix, explore
from pregel.types import Command, Durability, Interrupt
from tests.simulation.graphs import IN, broken_calls, calling, caught_calls, invoking


def in_turn(asked: tuple[Interrupt, ...]) -> Command[Any]:
    """An answer to each question."""
    return Command(resume={question.id: f"{question.value}!" for question in asked})


CALLED = ["in", "beside/1", "made at 1", "a", "q? q?!", "b", "again/6"]


def invoked(*names: str) -> list[str]:
    return ["in", "beside/1", *(text for name in names for text in (name, "x/1", f"answer {name}!"))]


def test_tasks_end_the_same_after_every_death() -> None:
    report = crash_matrix(calling(), IN, in_turn)

    assert ["interrupted", "done"] == [end.status for end in report.ends]
    assert CALLED == report.ends[1].values["log"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_tasks_end_the_same_in_many_orders() -> None:
    assert CALLED == explore(calling(), IN, in_turn, orders=16).ends[1].values["log"]


def test_attempts_of_calls_and_of_their_caller_never_overlap() -> None:
    report = crash_matrix(broken_calls(), IN, faults=("crash", "cancel", "stubborn"))

    assert [("done", ["in", "beside/1", "shaky"])] == [(end.status, end.values["log"]) for end in report.ends]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_attempts_of_calls_and_of_their_caller_overlap_in_no_order() -> None:
    assert "done" == explore(broken_calls(), IN, orders=6).ends[0].status


@pytest.mark.slow
def test_failures_that_were_caught_stay_so_after_every_death() -> None:
    report = crash_matrix(caught_calls(), IN, in_turn)

    assert ["in", "beside/1", "no a", "a", "no b", "b", "go on?!", "made"] == report.ends[1].values["log"]


@pytest.mark.slow
def test_called_graphs_end_the_same_after_every_death() -> None:
    report = crash_matrix(invoking("first"), IN, in_turn, in_turn, faults=("crash",))

    assert [*invoked("first", "last"), "end/8"] == report.ends[2].values["log"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("checkpointer", [None, False, True])
def test_called_graphs_end_the_same_in_many_orders(checkpointer: bool | None) -> None:
    report = explore(invoking("first", "second", checkpointer=checkpointer), IN, in_turn, in_turn, in_turn, orders=4)

    assert [*invoked("first", "second", "last"), "end/11"] == report.ends[3].values["log"]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("durability", ["async", "exit"])
def test_calls_end_the_same_in_the_other_durabilities(durability: Durability) -> None:
    report = crash_matrix(calling(), IN, in_turn, durability=durability)

    assert CALLED == report.ends[1].values["log"]
