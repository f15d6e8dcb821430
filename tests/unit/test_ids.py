"""Ids: checkpoint ids that only rise, and hashes that name one piece of work each."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from pregel.checkpoint.keys import task_parts
from pregel.engine.ids import Ids, Lineage, interrupt_id, ticks_of
from pregel.testing import FakeClock

BASE = ("1ef0", "ns", 3, "node", "__pregel_pull", "branch:to:node")


def test_ids_rise_within_a_tick_and_when_the_clock_is_set_back() -> None:
    clock = FakeClock()
    ids = Ids(clock, 1)
    made = [ids.next(0), ids.next(1)]
    clock.advance(-3600)
    made.append(ids.next(2))
    clock.advance(7200)
    made.append(ids.next(3))

    assert sorted(made) == made
    assert [1, 1] == [ticks_of(b) - ticks_of(a) for a, b in pairwise(made[:3])]


def test_ids_follow_those_that_the_thread_has_by_any_clock() -> None:
    ahead = FakeClock()
    ahead.advance(3600)
    other = Ids(ahead, 1).next(7)
    ids = Ids(FakeClock(), 2)

    ids.follow(other)

    assert ids.next(0) > other


@pytest.mark.parametrize(
    ("place", "other"),
    [(0, "1ef1"), (1, ""), (1, "ns2"), (2, 4), (3, "node2"), (4, "__pregel_push"), (5, "branch:to:other")],
)
def test_each_part_of_a_piece_of_work_makes_another_task_parts(place: int, other: Any) -> None:
    changed: list[Any] = list(BASE)
    changed[place] = other

    assert task_parts(*BASE) != task_parts(*changed)
    assert task_parts(*BASE) == task_parts(*BASE)


def test_questions_of_a_task_have_ids_of_their_own() -> None:
    ids = {interrupt_id(task, scope, index) for task in "ab" for scope in ("", "call") for index in (0, 1)}

    assert {(32, True)} == {(len(id), set(id) <= set("0123456789abcdef")) for id in ids}
    assert 8 == len(ids)


def test_a_lineage_says_what_was_applied_and_where_it_started_anew() -> None:
    root = bytes(16)
    lineages = {
        root,
        bytes(Lineage(root, ())),
        bytes(Lineage(root, ("a",))),
        bytes(Lineage(root, ("a", "b"))),
        bytes(Lineage(root, ("input", "0"))),
        bytes(Lineage(root, ("fork", "0"))),
        bytes(Lineage(root, ("input", "1"))),
    }

    assert 7 == len(lineages)
    assert bytes(Lineage(root, ("a",))) == bytes(Lineage(root, ("a",)))


def test_a_lineage_that_nobody_asked_for_in_many_steps_is_the_same() -> None:
    digest, late = bytes(16), Lineage(bytes(16), ("start",))
    steps = [("start",), *((f"n{i}",) for i in range(20_000))]
    for parts in steps:
        digest = bytes(Lineage(digest, parts))
    for parts in steps[1:]:
        late = Lineage(late, parts)

    assert digest == bytes(late)
