"""Laws that hold for every channel after any sequence of supersteps."""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel.channels import (
    MISSING,
    AnyValue,
    BaseChannel,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    LastValueAfterFinish,
    NamedBarrierValue,
    NamedBarrierValueAfterFinish,
    Topic,
    UntrackedValue,
)
from pregel.errors import EmptyChannelError, InvalidUpdateError
from pregel.types import Overwrite

Channel = BaseChannel[Any, Any, Any]
Step = tuple[str, list[Any]]

ints = st.integers(-3, 3)
lists = st.lists(ints, max_size=3)
dicts = st.dictionaries(st.sampled_from("abc"), ints, max_size=3)
sets = st.sets(ints, max_size=3)
names = st.sampled_from(["a", "b", "c"])


def grow(value: list[int], write: list[int]) -> list[int]:
    value.extend(write)
    return value


def take(value: list[int], write: list[int]) -> list[int]:
    return grow(value, write) if value else write


def join_all(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    return value + [item for write in writes for item in write]


def grow_all(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    for write in writes:
        value.extend(write)
    return value


def overwrites(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        values.map(Overwrite),
        values.map(lambda value: {"__overwrite__": value}),
        values.map(lambda value: {"type": "__overwrite__", "value": value}),
    )


REDUCERS: dict[str, tuple[Callable[[], Channel], st.SearchStrategy[Any]]] = {
    "int add": (lambda: BinaryOperatorAggregate(int, operator.add), ints),
    "int add, no start": (lambda: BinaryOperatorAggregate(int | None, operator.add), ints),
    "int keep": (lambda: BinaryOperatorAggregate(int, lambda old, new: new), ints),
    "list add": (lambda: BinaryOperatorAggregate(list, operator.add), lists),
    "list add, no start": (lambda: BinaryOperatorAggregate(list | None, operator.add), lists),
    "list iadd": (lambda: BinaryOperatorAggregate(list, operator.iadd), lists),
    "list iadd, no start": (lambda: BinaryOperatorAggregate(list | None, operator.iadd), lists),
    "list take": (lambda: BinaryOperatorAggregate(list, take), lists),
    "list default": (lambda: BinaryOperatorAggregate(list, grow, default_factory=lambda: [0]), lists),
    "dict or": (lambda: BinaryOperatorAggregate(dict, operator.or_), dicts),
    "dict ior": (lambda: BinaryOperatorAggregate(dict, operator.ior), dicts),
    "set or": (lambda: BinaryOperatorAggregate(set, operator.or_), sets),
    "delta": (lambda: DeltaChannel(join_all, list), lists),
    "delta in place": (lambda: DeltaChannel(grow_all, list), lists),
}
SINGLE: dict[str, tuple[Callable[[], Channel], st.SearchStrategy[Any]]] = {
    "last": (lambda: LastValue(int), lists),
    "ephemeral": (lambda: EphemeralValue(int), lists),
    "untracked": (lambda: UntrackedValue(int), lists),
}
OTHERS: dict[str, tuple[Callable[[], Channel], st.SearchStrategy[Any]]] = {
    "last after finish": (lambda: LastValueAfterFinish(int), lists),
    "any": (lambda: AnyValue(int), lists),
    "ephemeral, unguarded": (lambda: EphemeralValue(int, guard=False), lists),
    "untracked, unguarded": (lambda: UntrackedValue(int, guard=False), lists),
    "topic": (lambda: Topic(int), ints | lists),
    "topic, accumulating": (lambda: Topic(int, accumulate=True), ints | lists),
}
BARRIERS: dict[str, tuple[Callable[[], Channel], st.SearchStrategy[Any]]] = {
    "barrier": (lambda: NamedBarrierValue(str, {"a", "b", "c"}), names),
    "barrier after finish": (lambda: NamedBarrierValueAfterFinish(str, {"a", "b", "c"}), names),
}
WITH_OVERWRITES = REDUCERS | SINGLE | OTHERS
EVERY = WITH_OVERWRITES | BARRIERS

every_kind = st.sampled_from(sorted(EVERY))
overwritten = st.sampled_from(sorted(WITH_OVERWRITES))
laws = settings(max_examples=200)  # some ten for each kind


@cache
def steps_of(kind: str) -> st.SearchStrategy[list[Step]]:
    """What an engine does to a channel, superstep by superstep."""
    _, values = EVERY[kind]
    batch = st.lists(values, min_size=1, max_size=1 if kind in SINGLE else 4)
    if kind in WITH_OVERWRITES:
        batch = st.one_of(
            batch, st.tuples(st.lists(values, max_size=2), overwrites(values)).map(lambda b: [*b[0], b[1]])
        )
    calls = st.one_of(
        batch.map(lambda writes: ("update", writes)), st.sampled_from([("update", []), ("consume", []), ("finish", [])])
    )
    return st.lists(calls, max_size=6)


def perform(channel: Channel, step: Step) -> bool:
    call, writes = step
    return channel.update(writes) if call == "update" else channel.consume() if call == "consume" else channel.finish()


def reached(kind: str, steps: list[Step]) -> Channel:
    channel = EVERY[kind][0]()
    channel.key = "key"
    for step in steps:
        perform(channel, step)
    return channel


def value_of(channel: Channel) -> Any:
    try:
        return channel.get()
    except EmptyChannelError:
        return MISSING


def stored(channel: Channel) -> Any:
    """What an engine keeps of a channel."""
    return channel.snapshot() if isinstance(channel, DeltaChannel) else channel.checkpoint()


def face(channel: Channel) -> Any:
    """All that can be seen of a channel, taken out of its reach."""
    return copy.deepcopy((value_of(channel), channel.is_available(), stored(channel), channel.key, channel.typ))


def behaviour(channel: Channel, steps: list[Step]) -> list[Any]:
    return [face(channel), *((perform(channel, step), face(channel)) for step in copy.deepcopy(steps))]


@laws
@given(kind=every_kind, data=st.data())
def test_a_checkpoint_brings_back_a_channel_that_behaves_the_same(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))
    later = data.draw(steps_of(kind))
    if isinstance(channel, UntrackedValue):
        channel = reached(kind, [])  # of an untracked value nothing comes back

    restored = channel.from_checkpoint(copy.deepcopy(stored(channel)))

    assert type(restored) is type(channel)
    assert restored == channel
    assert behaviour(channel, later) == behaviour(restored, later)


@laws
@given(kind=every_kind, data=st.data())
def test_a_copy_behaves_the_same_and_lives_on_its_own(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))
    one, other = data.draw(steps_of(kind)), data.draw(steps_of(kind))
    unspoilt = face(channel)

    first, second = channel.copy(), channel.copy()
    lived = behaviour(first, one)
    behaviour(second, other)

    assert face(channel) == unspoilt
    assert behaviour(channel, one) == lived


@laws
@given(kind=every_kind, data=st.data())
def test_a_channel_changes_nothing_that_was_handed_to_it_or_by_it(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))
    steps = data.draw(steps_of(kind))
    expected = copy.deepcopy(steps)
    given_out: list[tuple[Any, Any]] = []

    for step in steps:
        for out in (value_of(channel), stored(channel)):
            given_out.append((out, copy.deepcopy(out)))
        perform(channel, step)

    assert steps == expected
    assert all(out == was for out, was in given_out)


@laws
@given(kind=every_kind, data=st.data())
def test_a_channel_that_was_built_does_not_change_what_it_was_built_from(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))
    checkpoint = copy.deepcopy(stored(channel))
    expected = copy.deepcopy(checkpoint)

    behaviour(channel.from_checkpoint(checkpoint), data.draw(steps_of(kind)))

    assert checkpoint == expected


@laws
@given(kind=every_kind, data=st.data())
def test_availability_tells_whether_there_is_a_value(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))

    assert channel.is_available() is (value_of(channel) is not MISSING)


@laws
@given(kind=every_kind, data=st.data())
def test_a_call_that_reports_no_change_made_none(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))
    step = data.draw(steps_of(kind).filter(bool))[0]
    before = face(channel)

    changed = perform(channel, step)

    assert changed or face(channel) == before


@laws
@given(kind=every_kind, data=st.data())
def test_the_flags_of_a_class_are_true(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))

    flags = channel.expires, channel.finishes, channel.consumes

    changed = [channel.copy().update(()), channel.copy().finish(), channel.copy().consume()]

    assert all(may or not did for may, did in zip(flags, changed, strict=True))


@laws
@given(kind=every_kind, data=st.data())
def test_an_idle_superstep_finish_and_consume_work_once(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))

    for name in ("update", "finish", "consume"):
        perform(channel, (name, []))
        assert perform(channel, (name, [])) is False


@given(kind=st.sampled_from(["last after finish", "barrier", "barrier after finish"]), data=st.data())
def test_a_consumed_channel_is_empty_until_it_is_written_again(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))
    open_before = channel.is_available()

    consumed = channel.consume()

    assert consumed is open_before
    assert not channel.is_available()
    assert not consumed or not channel.finish()


@given(kind=st.sampled_from(["last after finish", "barrier after finish"]), data=st.data())
def test_what_waits_for_the_end_opens_in_finish_only(kind: str, data: st.DataObject) -> None:
    channel = reached(kind, data.draw(steps_of(kind)))

    for step in data.draw(steps_of(kind)):
        before = channel.is_available()
        changed = perform(channel, step)
        assert before or channel.is_available() is (step[0] == "finish" and changed)


@laws
@given(kind=st.sampled_from(sorted(REDUCERS)), data=st.data())
def test_a_batch_gives_what_its_parts_give_in_turn(kind: str, data: st.DataObject) -> None:
    values = REDUCERS[kind][1]
    left, right = (data.draw(st.lists(values, min_size=1, max_size=5)) for _ in range(2))
    whole, parts, single = (reached(kind, []) for _ in range(3))

    whole.update(copy.deepcopy(left + right))
    for part in (left, right):
        parts.update(copy.deepcopy(part))
    for write in left + right:
        single.update([copy.deepcopy(write)])

    assert whole.get() == parts.get() == single.get()
    assert type(whole.get()) is type(single.get())


@pytest.mark.parametrize("mixed", [st.one_of(lists, lists.map(lambda items: Own(items))), lists])
@given(data=st.data())
def test_a_reducer_folds_left_to_right(mixed: st.SearchStrategy[list[int]], data: st.DataObject) -> None:
    writes = data.draw(st.lists(mixed, min_size=1, max_size=6))
    channel = BinaryOperatorAggregate(list, operator.add)

    channel.update(writes)

    expected: list[int] = reduce(operator.add, writes, [])
    assert channel.get() == expected
    assert type(channel.get()) is type(expected)


class Own(list[int]):
    """A list that has its own idea of addition, on both sides."""

    def __add__(self, other: Any) -> Any:
        return Own([*self, 0, *other])

    def __radd__(self, other: Any) -> Any:
        return Own([*other, 9, *self])


@laws
@given(kind=overwritten, data=st.data())
def test_an_overwrite_wins_wherever_it_stands(kind: str, data: st.DataObject) -> None:
    values = EVERY[kind][1]
    before, after = (data.draw(st.lists(values, max_size=2)) for _ in range(2))
    overwrite = data.draw(overwrites(values))
    channel = reached(kind, data.draw(steps_of(kind)))
    alone = channel.copy()

    channel.update([*before, overwrite, *after])
    alone.update([overwrite])

    assert face(alone) == face(channel)


@laws
@given(kind=overwritten, data=st.data())
def test_a_refused_superstep_changes_nothing(kind: str, data: st.DataObject) -> None:
    values = EVERY[kind][1]
    channel = reached(kind, data.draw(steps_of(kind)))
    two = data.draw(st.tuples(overwrites(values), overwrites(values)))
    before = face(channel)

    with pytest.raises(InvalidUpdateError):
        channel.update([*data.draw(st.lists(values, max_size=2)), *two])

    assert face(channel) == before


@given(batches=st.lists(st.lists(lists, max_size=3), max_size=5), cut=st.integers(0, 5))
def test_replayed_writes_give_the_value_that_ran(batches: list[list[list[int]]], cut: int) -> None:
    live = DeltaChannel(join_all, list)
    seed = live.snapshot()
    for at, batch in enumerate(batches):
        live.update(batch)
        if at < cut:
            seed = live.snapshot()

    restored = live.from_checkpoint(seed)
    restored.replay_writes([("task", "log", write) for batch in batches[cut:] for write in batch])

    assert restored.get() == live.get()
