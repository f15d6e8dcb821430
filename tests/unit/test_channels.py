"""Each channel as a table: what is written, superstep by superstep, and what can be read after it."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from pregel.channels import (
    MISSING,
    AnyValue,
    BinaryOperatorAggregate,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from pregel.errors import ConcurrentUpdateError, EmptyChannelError, InvalidUpdateError
from pregel.types import Overwrite
from tests.unit.few_channels import Channel, adder, barrier, delta, lister, unstarted, value_of

# Per superstep: the writes, whether they changed the channel, what it holds after.
Steps = list[tuple[Sequence[Any], bool, Any]]
TABLE: dict[str, tuple[Callable[[], Channel], Steps]] = {
    "last value": (lambda: LastValue(int), [([1], True, 1), ([], False, 1), ([2], True, 2), ([2], True, 2)]),
    "last value, overwrite": (lambda: LastValue(int), [([Overwrite(1)], True, 1), ([2, Overwrite(3), 4], True, 3)]),
    "last value, overwrite from JSON": (
        lambda: LastValue(int),
        [([{"__overwrite__": 1}], True, 1), ([2, {"type": "__overwrite__", "value": 3}], True, 3)],
    ),
    "last value, none is a value": (lambda: LastValue(int), [([None], True, None)]),
    "any value": (lambda: AnyValue(int), [([1, 2], True, 2), ([], True, MISSING), ([], False, MISSING)]),
    "any value, overwrite": (lambda: AnyValue(int), [([Overwrite(1), 2], True, 1)]),
    "ephemeral": (lambda: EphemeralValue(int), [([1], True, 1), ([], True, MISSING), ([], False, MISSING)]),
    "ephemeral, overwrite": (lambda: EphemeralValue(int), [([1, Overwrite(2)], True, 2)]),
    "ephemeral, unguarded": (
        lambda: EphemeralValue(int, guard=False),
        [([1, 2], True, 2), ([Overwrite(3), 4], True, 3)],
    ),
    "untracked": (lambda: UntrackedValue(int), [([1], True, 1), ([], False, 1), ([Overwrite(2)], True, 2)]),
    "untracked, unguarded": (lambda: UntrackedValue(int, guard=False), [([1, 2], True, 2)]),
    "reducer": (adder, [([], False, 0), ([1, 2], True, 3), ([], False, 3), ([4], True, 7)]),
    "reducer, overwrite": (adder, [([1, Overwrite(5), 2], True, 5), ([1], True, 6)]),
    "reducer, overwrite from JSON": (
        lister,
        [([[1]], True, [1]), ([{"__overwrite__": [2]}, [9]], True, [2]), ([[3]], True, [2, 3])],
    ),
    "reducer, overwrite from typed JSON": (
        lister,
        [([[1], {"type": "__overwrite__", "value": [2], "x": 0}], True, [2])],
    ),
    "reducer, overwrite with none": (lister, [([Overwrite(None)], True, None)]),
    "reducer without a start": (unstarted, [([], False, MISSING), ([1], True, 1), ([2, 3], True, 6)]),
    "reducer without a start, several": (unstarted, [([1, 2, 3], True, 6)]),
    "reducer without a start, overwrite": (unstarted, [([Overwrite(1)], True, 1), ([2], True, 3)]),
    "reducer without a start, overwrite from JSON": (unstarted, [([{"__overwrite__": 1}, 7], True, 1), ([2], True, 3)]),
    "reducer of dicts": (
        lambda: BinaryOperatorAggregate(dict, operator.or_),
        [
            ([{"a": 1}, {"b": 2}, {"a": 3}], True, {"a": 3, "b": 2}),
            ([{"type": "x"}], True, {"a": 3, "b": 2, "type": "x"}),
        ],
    ),
    "topic": (
        lambda: Topic(str),
        [(["a", ["b", "c"], ("d",)], True, ["a", "b", "c", ("d",)]), (["e"], True, ["e"]), ([], True, MISSING)],
    ),
    "topic, nothing": (lambda: Topic(str), [([], False, MISSING), ([[]], False, MISSING)]),
    "topic, an empty list clears": (lambda: Topic(str), [(["a"], True, ["a"]), ([[]], True, MISSING)]),
    "topic, overwrite": (lambda: Topic(str), [(["a", Overwrite(["b", "c"])], True, ["b", "c"])]),
    "topic, accumulating": (
        lambda: Topic(str, accumulate=True),
        [
            (["a", ["b"]], True, ["a", "b"]),
            ([], False, ["a", "b"]),
            ([[]], False, ["a", "b"]),
            (["a"], True, ["a", "b", "a"]),
        ],
    ),
    "topic, accumulating, overwrite": (
        lambda: Topic(str, accumulate=True),
        [(["a"], True, ["a"]), (["b", Overwrite(["c"])], True, ["c"]), ([Overwrite([])], True, MISSING)],
    ),
    "barrier": (barrier, [(["a"], True, MISSING), (["a"], False, MISSING), ([], False, MISSING), (["b"], True, None)]),
    "barrier, at once": (barrier, [(["b", "a"], True, None), (["a"], False, None)]),
    "delta": (delta, [([], False, []), ([[1], [2]], True, [1, 2]), ([], False, [1, 2]), ([[3]], True, [1, 2, 3])]),
    "delta, overwrite": (delta, [([[1]], True, [1]), ([[2], Overwrite([3]), [4]], True, [3]), ([[5]], True, [3, 5])]),
    "delta, overwrite from JSON": (delta, [([{"__overwrite__": [3]}, [4]], True, [3])]),
    "delta, reset": (delta, [([[1]], True, [1]), ([Overwrite(None)], True, [])]),
}


@pytest.mark.parametrize(("make", "steps"), TABLE.values(), ids=TABLE)
def test_writes_become_the_value(make: Callable[[], Channel], steps: Steps) -> None:
    channel = make()

    seen = [(writes, channel.update(writes), value_of(channel)) for writes, _, _ in steps]

    assert steps == seen


@pytest.mark.acceptance("S1-31")
@pytest.mark.parametrize("make", [LastValue, EphemeralValue, UntrackedValue])
@pytest.mark.parametrize("writes", [(11, 12), (11, 11)])
def test_two_writers_of_a_single_value_are_refused_even_when_they_agree(
    make: Callable[[Any], Channel], writes: tuple[int, int]
) -> None:
    channel = make(int)
    channel.key = "total"
    channel.update([10])

    with pytest.raises(InvalidUpdateError) as caught:
        channel.update(writes)

    assert type(caught.value) is ConcurrentUpdateError
    assert str(caught.value) == caught.value.message
    assert caught.value.message == (
        "At key 'total': Can receive only one value per step. Use an Annotated key to handle multiple values."
    )
    assert caught.value.channel == "total"
    assert channel.get() == 10


@pytest.mark.parametrize(
    "make",
    [
        lambda: LastValue(int),
        lambda: LastValueAfterFinish(int),
        lambda: AnyValue(int),
        lambda: EphemeralValue(int),
        lambda: EphemeralValue(int, guard=False),
        lambda: UntrackedValue(int, guard=False),
        adder,
        unstarted,
        lambda: Topic(int),
        delta,
    ],
)
def test_two_overwrites_in_one_superstep_are_refused(make: Callable[[], Channel]) -> None:
    channel = make()
    channel.key = "total"
    before = value_of(channel)

    with pytest.raises(InvalidUpdateError, match="At key 'total': Can receive only one Overwrite per step"):
        channel.update([Overwrite([1]), [2], {"__overwrite__": [1]}])

    assert before == value_of(channel)


@pytest.mark.parametrize(
    "write",
    [
        {},
        {"__overwrite__": 1, "other": 2},
        {"type": "__overwrite__"},
        {"type": "other", "value": 1},
        {"type": ["__overwrite__"], "value": 1},
        {"value": 1},
        "__overwrite__",
    ],
    ids=repr,
)
def test_what_only_looks_like_an_overwrite_is_a_value(write: Any) -> None:
    channel = LastValue[Any](object)

    channel.update([write])

    assert channel.get() == write


def test_no_writes_change_nothing_of_an_empty_channel() -> None:
    every: list[Channel] = [
        LastValue(int),
        LastValueAfterFinish(int),
        AnyValue(int),
        EphemeralValue(int),
        UntrackedValue(int),
        unstarted(),
        Topic(int),
        barrier(),
        NamedBarrierValueAfterFinish(str, {"a"}),
    ]

    assert [False] * len(every) == [channel.update(()) for channel in every]
    assert [MISSING] * len(every) == [value_of(channel) for channel in every]


def test_an_empty_channel_says_which_one_it_is() -> None:
    with pytest.raises(EmptyChannelError) as caught:
        LastValue(int, "total").get()

    assert caught.value.channel == "total"


@pytest.mark.acceptance("S1-66")
def test_ephemeral_values_live_one_superstep_and_untracked_ones_are_never_stored() -> None:
    ephemeral, untracked = EphemeralValue[int](int), UntrackedValue[int](int)
    gathering, passing = Topic[int](int, accumulate=True), Topic[int](int)
    every: list[Channel] = [ephemeral, untracked, gathering, passing]

    for channel in every:
        channel.update([1])
    stored = [channel.checkpoint() for channel in every]
    for channel in every:
        channel.update(())

    assert stored == [1, MISSING, [1], [1]]
    assert [value_of(channel) for channel in every] == [MISSING, 1, [1], MISSING]


# -- topics ------------------------------------------------------------------------------------------------------------


def test_a_topic_says_its_types() -> None:
    topic = Topic[int](int)

    assert topic.ValueType == Sequence[int]
    assert topic.UpdateType == int | list[int]


def test_a_topic_reads_what_the_reference_once_stored() -> None:
    assert Topic[int](int).from_checkpoint(({1, 2}, [1, 2])).get() == [1, 2]  # type: ignore[arg-type]


def test_a_topic_gives_each_reader_a_list_of_its_own() -> None:
    topic = Topic[int](int)
    topic.update([1])

    topic.get().append(2)

    assert topic.get() == [1]
