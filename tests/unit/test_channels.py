"""Each channel as a table: what is written, superstep by superstep, and what can be read after it."""

from __future__ import annotations

import collections.abc
import copy
import operator
import pickle
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NotRequired, Self

import pytest

from pregel import channels
from pregel.channels import (
    MISSING,
    AnyValue,
    BaseChannel,
    BinaryOperatorAggregate,
    DeltaChannel,
    DeltaSnapshot,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from pregel.errors import ConcurrentUpdateError, DefinitionError, EmptyChannelError, InvalidUpdateError
from pregel.types import Overwrite

Channel = BaseChannel[Any, Any, Any]


def joined(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    return value + [item for write in writes for item in write]


def adder() -> BinaryOperatorAggregate[int]:
    return BinaryOperatorAggregate(int, operator.add)


def lister() -> BinaryOperatorAggregate[list[int]]:
    return BinaryOperatorAggregate(list, operator.add)


def unstarted() -> BinaryOperatorAggregate[Any]:
    return BinaryOperatorAggregate(int | None, operator.add)


def delta() -> DeltaChannel[list[int]]:
    return DeltaChannel(joined, list)


def barrier() -> NamedBarrierValue[str]:
    return NamedBarrierValue(str, {"a", "b"})


def value_of(channel: Channel) -> Any:
    """What can be read, in the two ways there are, which must agree."""
    available = channel.is_available()
    try:
        value = channel.get()
    except EmptyChannelError:
        value = MISSING
    assert available is (value is not MISSING)
    return value


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


# -- barriers and what waits for the end ---------------------------------------------------------------------------


def test_a_barrier_closes_when_it_was_consumed_open() -> None:
    channel = barrier()
    channel.update(["a"])

    half = channel.consume(), channel.seen
    channel.update(["b"])
    opened = value_of(channel), channel.consume(), value_of(channel), channel.seen

    assert half == (False, frozenset("a"))
    assert opened == (None, True, MISSING, frozenset())


@pytest.mark.parametrize("make", [NamedBarrierValue, NamedBarrierValueAfterFinish])
def test_a_barrier_refuses_a_name_it_does_not_wait_for(make: type[NamedBarrierValue[str]]) -> None:
    channel = make(str, {"a", "b"})
    channel.key = "join:a+b:c"

    with pytest.raises(InvalidUpdateError, match=r"At key 'join:a\+b:c': 'z' is not one of 'a', 'b'") as caught:
        channel.update(["a", "z"])

    assert caught.value.channel == "join:a+b:c"
    assert channel.seen == set()


def test_a_barrier_that_waits_for_the_end_opens_there() -> None:
    channel = NamedBarrierValueAfterFinish(str, {"a", "b"})

    early = channel.finish()
    channel.update(["a", "b"])
    full = value_of(channel), channel.consume(), channel.checkpoint()
    opened = channel.finish(), channel.finish(), value_of(channel), channel.checkpoint()
    closed = channel.consume(), channel.consume(), value_of(channel), channel.checkpoint()

    assert early is False
    assert full == (MISSING, False, ({"a", "b"}, False))
    assert opened == (True, False, None, ({"a", "b"}, True))
    assert closed == (True, False, MISSING, (set(), False))


def test_a_last_value_that_waits_for_the_end_is_readable_there() -> None:
    channel = LastValueAfterFinish[int](int)

    early = channel.finish(), channel.checkpoint()
    channel.update([1, 2])
    written = value_of(channel), channel.consume(), channel.checkpoint()
    opened = channel.finish(), channel.finish(), value_of(channel), channel.checkpoint()
    rewritten = channel.update([3]), value_of(channel), channel.checkpoint()
    consumed = channel.finish(), channel.consume(), channel.consume(), value_of(channel), channel.checkpoint()

    assert early == (False, MISSING)
    assert written == (MISSING, False, (2, False))
    assert opened == (True, False, 2, (2, True))
    assert rewritten == (True, MISSING, (3, False))
    assert consumed == (True, True, False, MISSING, MISSING)


def test_a_barrier_forgets_an_arrival_that_the_graph_no_longer_waits_for() -> None:
    stored = {"a", "gone"}

    plain = barrier().from_checkpoint(stored)
    deferred = NamedBarrierValueAfterFinish(str, {"a", "b"}).from_checkpoint((stored, True))

    assert plain.seen == deferred.seen == {"a"}
    assert deferred.is_available() is False


def test_a_node_that_became_deferred_finds_what_was_stored_before() -> None:
    value = LastValueAfterFinish[Any](Any).from_checkpoint("__start__")  # type: ignore[arg-type]
    seen = NamedBarrierValueAfterFinish(str, {"a", "b"}).from_checkpoint({"a", "b"})  # type: ignore[arg-type]

    assert (value.finish(), value.get()) == (True, "__start__")
    assert (seen.finish(), value_of(seen)) == (True, None)


def test_stored_pairs_may_come_back_as_lists() -> None:
    value = LastValueAfterFinish[int](int).from_checkpoint([7, True])  # type: ignore[arg-type]
    seen = NamedBarrierValueAfterFinish(str, {"a"}).from_checkpoint([["a"], True])  # type: ignore[arg-type]

    assert value.get() == 7
    assert seen.is_available()


# -- reducers -------------------------------------------------------------------------------------------------------


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

    assert DeltaChannel(joined).fold == f"{__name__}:joined"
    assert DeltaChannel(Joiner()).fold == f"{__name__}:{local}"
    assert DeltaChannel(joined, name="log/1").fold == "log/1"


# -- equality, as the builder merges schemas ---------------------------------------------------------------------------


def shout(left: Any, right: Any) -> Any:
    return right


class Capped(LastValue[int]):
    pass


class Merger:
    def merge(self, left: Any, right: Any) -> Any:
        return left


MERGER = Merger()

EQUAL: list[tuple[Channel, Channel]] = [
    (LastValue(int), LastValue(str)),
    (LastValueAfterFinish(int), LastValueAfterFinish(int)),
    (AnyValue(int), AnyValue(int)),
    (EphemeralValue(int), EphemeralValue(str)),
    (UntrackedValue(int, False), UntrackedValue(int, guard=False)),
    (Topic(int), Topic(str, False)),
    (barrier(), NamedBarrierValue(str, {"b", "a"})),
    (adder(), BinaryOperatorAggregate(float, operator.add)),
    (
        BinaryOperatorAggregate(int, lambda left, right: left),
        BinaryOperatorAggregate(int, lambda left, right: right),
    ),
    (adder(), BinaryOperatorAggregate(int, lambda left, right: left)),
    (BinaryOperatorAggregate(int, MERGER.merge), BinaryOperatorAggregate(int, MERGER.merge)),
    (delta(), DeltaChannel(joined, tuple)),
    (DeltaChannel(lambda value, writes: value), DeltaChannel(lambda value, writes: writes)),
]
DIFFERENT: list[tuple[Channel, Channel]] = [
    (LastValue(int), LastValueAfterFinish(int)),
    (LastValue(int), Capped(int)),
    (LastValue(int), AnyValue(int)),
    (EphemeralValue(int), EphemeralValue(int, guard=False)),
    (UntrackedValue(int), UntrackedValue(int, guard=False)),
    (EphemeralValue(int), UntrackedValue(int)),
    (Topic(int), Topic(int, accumulate=True)),
    (barrier(), NamedBarrierValue(str, {"a"})),
    (barrier(), NamedBarrierValueAfterFinish(str, {"a", "b"})),
    (adder(), BinaryOperatorAggregate(int, operator.mul)),
    (adder(), BinaryOperatorAggregate(int, shout)),
    (delta(), DeltaChannel(joined, snapshot_frequency=5)),
    (delta(), DeltaChannel(joined, name="log/1")),
    (delta(), DeltaChannel(shout)),
    (adder(), LastValue(int)),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_channels_with_the_same_settings_are_equal(left: Channel, right: Channel) -> None:
    assert left == right
    assert right == left


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_channels_with_other_settings_differ(left: Channel, right: Channel) -> None:
    assert left != right
    assert right != left


# -- what the engine asks of classes, ours and others' ----------------------------------------------------------------


def test_each_class_says_which_calls_matter() -> None:
    ours: list[type[Channel]] = [
        getattr(channels, name) for name in channels.__all__ if name not in ("MISSING", "DeltaSnapshot")
    ]
    flags = {cls.__name__: (cls.expires, cls.finishes, cls.consumes) for cls in ours}

    assert flags == {
        "AnyValue": (True, False, False),
        "BaseChannel": (True, False, False),
        "BinaryOperatorAggregate": (False, False, False),
        "DeltaChannel": (False, False, False),
        "EphemeralValue": (True, False, False),
        "LastValue": (False, False, False),
        "LastValueAfterFinish": (False, True, True),
        "NamedBarrierValue": (False, False, True),
        "NamedBarrierValueAfterFinish": (False, True, True),
        "Topic": (True, False, False),
        "UntrackedValue": (False, False, False),
    }


class Mean(BaseChannel[float, float, "list[float]"]):
    """A class of a user, with only what is required and a checkpoint of its own."""

    def __init__(self, typ: Any, weight: float = 1.0) -> None:
        super().__init__(typ)
        self.weight = weight
        self.numbers: list[float] = []

    def get(self) -> float:
        if not self.numbers:
            raise EmptyChannelError
        return self.weight * sum(self.numbers) / len(self.numbers)

    def update(self, values: Sequence[float]) -> bool:
        self.numbers.extend(values)
        return bool(values)

    def checkpoint(self) -> Any:
        return list(self.numbers)

    def from_checkpoint(self, checkpoint: Any) -> Self:
        new = type(self)(self.typ, self.weight)
        new.numbers = [] if checkpoint is MISSING else list(checkpoint)
        return new

    def finish(self) -> bool:
        return False


def test_a_class_of_a_user_needs_only_three_methods() -> None:
    channel = Mean(float, weight=2.0)
    empty = value_of(channel)
    channel.update([1.0, 3.0])

    twin = channel.copy()
    twin.update([8.0])

    assert empty is MISSING
    assert (channel.get(), twin.get()) == (4.0, 8.0)
    assert (Mean.expires, Mean.finishes, Mean.consumes) == (True, True, False)


def test_a_base_checkpoint_is_the_value_or_missing() -> None:
    class Plain(Mean):
        checkpoint = BaseChannel.checkpoint

    channel = Plain(float)
    before: Any = channel.checkpoint()
    channel.update([2.0])
    after: Any = channel.checkpoint()

    assert (before, after) == (MISSING, 2.0)


class Largest(LastValue[int]):
    """A subclass with a setting of its own and another idea of what no writes mean."""

    def __init__(self, typ: Any, limit: int) -> None:
        super().__init__(typ, "size")
        self.limit = limit

    def update(self, values: Sequence[int]) -> bool:
        return super().update([min(self.limit, max(values, default=0))])


def test_a_subclass_keeps_its_own_settings_and_loses_our_promise() -> None:
    channel = Largest(int, limit=5)
    channel.update([3, 9])

    copies = channel.copy(), channel.from_checkpoint(1)

    assert [(one.limit, one.key, one.get()) for one in copies] == [(5, "size", 5), (5, "size", 1)]
    assert Largest.expires is True
    assert Capped.expires is False


def test_an_update_from_a_mixin_loses_our_promise_too() -> None:
    class Clearing:
        def update(self, values: Sequence[int]) -> bool:
            return True

    class Cleared(Clearing, LastValue[int]):
        pass

    assert Cleared.expires is True


@pytest.mark.parametrize(
    "same",
    [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it)), lambda it: copy.deepcopy([it])[0]],
    ids=["copy", "deepcopy", "pickle", "nested"],
)
def test_missing_is_one_object(same: Callable[[Any], Any]) -> None:
    assert same(MISSING) is MISSING
    assert repr(MISSING) == "MISSING"


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
