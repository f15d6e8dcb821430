"""Channels that add up: a reducer on one write at a time, and on the batch of a superstep (delta)."""

from __future__ import annotations

import collections.abc
import operator
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NotRequired

import pytest

from pregel.channels import MISSING, BinaryOperatorAggregate, DeltaChannel, DeltaSnapshot
from pregel.errors import DefinitionError
from pregel.types import Overwrite
from tests.unit.few_channels import Channel, adder, delta, joined, lister, value_of


@pytest.mark.parametrize(
    ("typ", "start"),
    [
        (int, 0),
        (str, ""),
        (tuple, ()),
        (frozenset, frozenset()),
        (list[int], []),
        (Sequence[int], []),
        (collections.abc.MutableSequence, []),
        (collections.abc.Set, set()),
        (collections.abc.MutableSet, set()),
        (collections.abc.Mapping, {}),
        (dict[str, int], {}),
        (Annotated[list[int], "note"], []),
        (NotRequired[Annotated[int, "note"]], 0),
        (int | None, MISSING),
        (collections.abc.Iterable, MISSING),
        (Any, MISSING),
    ],
)
def test_a_reducer_starts_from_the_empty_value_of_its_type(typ: Any, start: Any) -> None:
    channel = BinaryOperatorAggregate[Any](typ, operator.add)

    assert value_of(channel) == start
    assert type(value_of(channel)) is type(start)
    assert channel.typ is typ


@pytest.mark.parametrize(
    "make",
    [
        lambda start: BinaryOperatorAggregate(int | None, operator.add, default_factory=start),
        lambda start: DeltaChannel(joined, Sequence, default_factory=start),
    ],
)
def test_a_default_is_where_a_reducer_starts_and_stays_as_it_was(make: Callable[[Callable[[], Any]], Channel]) -> None:
    default = [1]
    channel = make(lambda: default)

    channel.update([[2]])
    fresh = channel.from_checkpoint(MISSING)

    assert channel.get() == [1, 2]
    assert fresh.get() == default == [1]
    assert fresh.get() is not default


def grow(value: list[int], write: list[int]) -> list[int]:
    value.extend(write)
    return value


def take(value: list[int], write: list[int]) -> list[int]:
    """As people write it: the first list is taken over as it is, and grows."""
    return grow(value, write) if value else write


def grow_all(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    for write in writes:
        value.extend(write)
    return value


def take_all(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    return grow_all(value, writes) if value else grow_all(writes[0], writes[1:]) if len(writes) > 1 else writes[0]


IN_PLACE: dict[str, Callable[[], Channel]] = {
    "iadd": lambda: BinaryOperatorAggregate(list, operator.iadd),
    "iadd, no start": lambda: BinaryOperatorAggregate(list | None, operator.iadd),
    "take": lambda: BinaryOperatorAggregate(list, take),
    "delta": lambda: DeltaChannel(grow_all, list),
    "delta, take": lambda: DeltaChannel(take_all, list),
}


@pytest.mark.parametrize("make", IN_PLACE.values(), ids=IN_PLACE)
def test_a_reducer_that_works_in_place_changes_nobody_elses_list(make: Callable[[], Channel]) -> None:
    channel = make()
    write, whole, stored = [1], [5], [7]

    channel.update([write])
    seen, twin = channel.get(), channel.copy()
    channel.update([[2], [3]])
    read = channel.get()
    channel.update([Overwrite(whole)])
    channel.update([[6]])
    restored = channel.from_checkpoint(stored)
    restored.update([[8]])

    assert (seen, twin.get(), read) == ([1], [1], [1, 2, 3])
    assert (channel.get(), restored.get()) == ([5, 6], [7, 8])
    assert (write, whole, stored) == ([1], [5], [7])


def test_a_reducer_that_keeps_the_newest_does_not_share_it() -> None:
    channel = BinaryOperatorAggregate[list[int]](list, lambda old, new: new)
    write = [1]

    channel.update([write])
    write.append(2)

    assert channel.get() == [1]


@pytest.mark.parametrize("make", [adder, lambda: DeltaChannel(operator.add, int)], ids=["reducer", "delta"])
def test_a_reducer_that_raises_leaves_the_value(make: Callable[[], Channel]) -> None:
    channel = make()

    with pytest.raises(TypeError):
        channel.update([1, "x"])

    assert channel.get() == 0


def test_a_reducer_takes_over_the_value_of_a_delta_channel() -> None:
    assert lister().from_checkpoint(DeltaSnapshot([1])).get() == [1]


# -- delta ------------------------------------------------------------------------------------------------------------


def test_a_delta_reducer_gets_the_batch_of_a_superstep_in_one_call() -> None:
    calls: list[list[int]] = []

    def note(value: int, writes: Sequence[int]) -> int:
        calls.append(list(writes))
        return value + sum(writes)

    channel = DeltaChannel(note, int)
    channel.update([1, 2])
    channel.update((3,))

    assert calls == [[1, 2], [3]]
    assert channel.get() == 6


@pytest.mark.parametrize("stored", [[1], DeltaSnapshot([1])])
def test_a_delta_channel_is_built_from_a_snapshot_and_replayed_writes(stored: Any) -> None:
    channel = delta().from_checkpoint(stored)

    channel.replay_writes([("t1", "log", [2]), ("t2", "log", [3])])

    assert channel.get() == [1, 2, 3]


def test_the_last_overwrite_of_a_replay_resets_the_value() -> None:
    channel = delta().from_checkpoint([1])

    channel.replay_writes(
        [("t", "log", [2]), ("t", "log", Overwrite([3])), ("t", "log", {"__overwrite__": [4]}), ("t", "log", [5])]
    )

    assert channel.get() == [4, 5]


def test_a_replay_of_nothing_does_not_call_the_reducer() -> None:
    channel = DeltaChannel(lambda value, writes: [*value, "called"], list)

    channel.replay_writes([])
    channel.replay_writes([("t", "log", Overwrite(["a"]))])

    assert channel.get() == ["a"]


@pytest.mark.parametrize("stored", [MISSING, None])
def test_a_delta_channel_without_a_stored_value_starts_empty(stored: Any) -> None:
    assert delta().from_checkpoint(stored).get() == []


@pytest.mark.parametrize("value", [[1], [], None, DeltaSnapshot(1)])
def test_a_snapshot_holds_the_whole_value_and_the_checkpoint_nothing(value: Any) -> None:
    channel = DeltaChannel(lambda old, writes: writes[-1], object)
    channel.update([value])

    assert channel.checkpoint() is MISSING
    assert channel.from_checkpoint(channel.snapshot()).get() == value


@pytest.mark.parametrize("frequency", [0, -1])
def test_a_snapshot_frequency_is_positive(frequency: int) -> None:
    with pytest.raises(ValueError, match=f"snapshot_frequency must be a positive int, got {frequency}"):
        DeltaChannel(joined, snapshot_frequency=frequency)


def test_a_delta_channel_needs_a_value_to_start_from() -> None:
    with pytest.raises(DefinitionError, match="needs a value to start from"):
        DeltaChannel(joined, list | None)


def test_a_delta_channel_takes_the_annotated_type_and_keeps_its_settings() -> None:
    given: DeltaChannel[Any] = DeltaChannel(joined, snapshot_frequency=3, name="log/1")

    made = given.for_type(tuple[int, ...])
    with_default = given.for_type(list[int], lambda: [1])

    assert given.typ is list
    assert (made.typ, made.get(), made.snapshot_frequency, made.fold) == (tuple[int, ...], (), 3, "log/1")
    assert with_default.get() == with_default.from_checkpoint(MISSING).get() == [1]


def test_deltas_are_stored_under_the_reducers_name() -> None:
    class Joiner:
        def __call__(self, value: Any, writes: Sequence[Any]) -> Any:
            return value

    local = "test_deltas_are_stored_under_the_reducers_name.<locals>.Joiner"

    assert DeltaChannel(joined).fold == f"{joined.__module__}:joined"
    assert DeltaChannel(Joiner()).fold == f"{__name__}:{local}"
    assert DeltaChannel(joined, name="log/1").fold == "log/1"
