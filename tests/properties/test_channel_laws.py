"""Laws that hold for every channel after any sequence of supersteps.

A drawn script names its values by number, and each kind of channel reads the numbers as values of its own: so one
example is played on every kind.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pytest
from hypothesis import given
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


def grow(value: list[int], write: list[int]) -> list[int]:
    value.extend(write)
    return value


def take(value: list[int], write: list[int]) -> list[int]:
    return grow(value, write) if value else write


def tuck(value: list[int], write: list[int]) -> list[int]:
    return grow(write, value)


def join_all(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    return value + [item for write in writes for item in write]


def grow_all(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    return reduce(grow, writes, value)


def take_all(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    return reduce(take, writes, value)


# -- the kinds, and what a number means to each ----------------------------------------------------------------------


def number(n: int) -> Any:
    return n


def numbers(n: int) -> Any:
    return list(range(n % 4))


def item_or_items(n: int) -> Any:
    return n if n % 2 else numbers(n)


def mapping(n: int) -> Any:
    return {"abc"[i]: n for i in numbers(n)[:3]}


def members(n: int) -> Any:
    return {n, *numbers(n)} if n else set()


def name(n: int) -> Any:
    return "ab"[n % 2]


class Kind(NamedTuple):
    make: Callable[[], Channel]
    value: Callable[[int], Any]


REDUCERS = {
    "int add": Kind(lambda: BinaryOperatorAggregate(int, operator.add), number),
    "int add, no start": Kind(lambda: BinaryOperatorAggregate(int | None, operator.add), number),
    "int keep": Kind(lambda: BinaryOperatorAggregate(int, lambda old, new: new), number),
    "list keep": Kind(lambda: BinaryOperatorAggregate(list, lambda old, new: new), numbers),
    "list add": Kind(lambda: BinaryOperatorAggregate(list, operator.add), numbers),
    "list add, no start": Kind(lambda: BinaryOperatorAggregate(list | None, operator.add), numbers),
    "list iadd": Kind(lambda: BinaryOperatorAggregate(list, operator.iadd), numbers),
    "list iadd, no start": Kind(lambda: BinaryOperatorAggregate(list | None, operator.iadd), numbers),
    "list take": Kind(lambda: BinaryOperatorAggregate(list, take), numbers),
    "list tuck": Kind(lambda: BinaryOperatorAggregate(list, tuck), numbers),
    "list default": Kind(lambda: BinaryOperatorAggregate(list, grow, default_factory=lambda: [0]), numbers),
    "dict or": Kind(lambda: BinaryOperatorAggregate(dict, operator.or_), mapping),
    "dict ior": Kind(lambda: BinaryOperatorAggregate(dict, operator.ior), mapping),
    "set or": Kind(lambda: BinaryOperatorAggregate(set, operator.or_), members),
    "delta": Kind(lambda: DeltaChannel(join_all, list), numbers),
    "delta grow": Kind(lambda: DeltaChannel(grow_all, list), numbers),
    "delta take": Kind(lambda: DeltaChannel(take_all, list), numbers),
}
TOPICS = {
    "topic": Kind(lambda: Topic(int), item_or_items),
    "topic, accumulating": Kind(lambda: Topic(int, accumulate=True), item_or_items),
}
SINGLE = {
    "last": Kind(lambda: LastValue(list), numbers),
    "ephemeral": Kind(lambda: EphemeralValue(list), numbers),
    "untracked": Kind(lambda: UntrackedValue(list), numbers),
}
UNGUARDED = {
    "last after finish": Kind(lambda: LastValueAfterFinish(list), numbers),
    "any": Kind(lambda: AnyValue(list), numbers),
    "ephemeral, unguarded": Kind(lambda: EphemeralValue(list, guard=False), numbers),
    "untracked, unguarded": Kind(lambda: UntrackedValue(list, guard=False), numbers),
}
BARRIERS = {
    "barrier": Kind(lambda: NamedBarrierValue(str, {"a", "b"}), name),
    "barrier after finish": Kind(lambda: NamedBarrierValueAfterFinish(str, {"a", "b"}), name),
}
VALUES = REDUCERS | TOPICS | SINGLE | UNGUARDED  # every kind that can be overwritten
EVERY = VALUES | BARRIERS


# -- scripts ----------------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One call. `overwrite`, if any, is (where among the writes, its form, its value)."""

    call: str
    writes: tuple[int, ...] = ()
    overwrite: tuple[int, int, int] | None = None


seeds = st.integers(0, 7)
batches = st.lists(seeds, max_size=4).map(tuple)
some = st.lists(seeds, min_size=1, max_size=4).map(tuple)
forms = st.integers(0, 2)
updates = st.builds(Step, st.just("update"), some, st.none() | st.none() | st.tuples(seeds, forms, seeds))
steps = updates | updates | st.sampled_from([Step("update"), Step("consume"), Step("finish"), Step("finish")])
scripts = st.lists(steps, max_size=8)


def overwrite_of(form: int, value: Any) -> Any:
    return (Overwrite(value), {"__overwrite__": value}, {"type": "__overwrite__", "value": value})[form]


def writes_of(kind: str, step: Step) -> list[Any]:
    """The writes of a step as this kind takes them."""
    writes = [EVERY[kind].value(n) for n in step.writes]
    if kind in VALUES and step.overwrite is not None:
        at, form, n = step.overwrite
        writes.insert(at, overwrite_of(form, EVERY[kind].value(n)))
    elif kind in SINGLE:
        del writes[1:]
    return writes


def perform(channel: Channel, kind: str, step: Step) -> bool:
    if step.call == "update":
        return channel.update(writes_of(kind, step))
    return channel.consume() if step.call == "consume" else channel.finish()


def reached(kind: str, script: list[Step]) -> Channel:
    """A channel after a script."""
    channel = EVERY[kind].make()
    channel.key = "key"
    for step in script:
        perform(channel, kind, step)
    return channel


def all_reached(script: list[Step], kinds: dict[str, Kind] = EVERY) -> Iterator[tuple[str, Channel]]:
    return ((kind, reached(kind, script)) for kind in kinds)


# -- what can be seen -------------------------------------------------------------------------------------------------


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


def life(channel: Channel, kind: str, script: list[Step]) -> list[Any]:
    """What can be seen of a channel along a script."""
    return [face(channel), *((perform(channel, kind, step), face(channel)) for step in script)]


def spoil(container: Any) -> None:
    """Change a value behind the back of whoever else holds it."""
    if isinstance(container, list):
        container.append("spoilt")
    elif isinstance(container, dict):
        for inner in container.values():
            spoil(inner)
        container["spoilt"] = True
    elif isinstance(container, set):
        container.add("spoilt")
    elif isinstance(container, tuple):
        for inner in container:
            spoil(inner)
    elif isinstance(container, Overwrite):
        spoil(container.value)


# -- copies and checkpoints -------------------------------------------------------------------------------------------


@given(before=scripts, after=scripts)
def test_a_checkpoint_brings_back_a_channel_that_behaves_the_same(before: list[Step], after: list[Step]) -> None:
    for kind, channel in all_reached(before):
        if isinstance(channel, UntrackedValue):
            channel = reached(kind, [])  # of an untracked value nothing comes back

        restored = channel.from_checkpoint(copy.deepcopy(stored(channel)))

        assert (kind, type(restored), restored) == (kind, type(channel), channel)
        assert (kind, life(restored, kind, after)) == (kind, life(channel, kind, after))


@given(before=scripts, one=scripts, other=scripts)
def test_a_copy_behaves_the_same_and_lives_on_its_own(before: list[Step], one: list[Step], other: list[Step]) -> None:
    for kind, channel in all_reached(before):
        unspoilt = face(channel)
        first, second = channel.copy(), channel.copy()

        lived = life(first, kind, one)
        life(second, kind, other)

        assert (kind, face(channel)) == (kind, unspoilt)
        assert (kind, life(channel, kind, one)) == (kind, lived)


@given(before=scripts, after=scripts)
def test_what_a_channel_gave_out_never_changes(before: list[Step], after: list[Step]) -> None:
    for kind, channel in all_reached(before):
        given_out: list[tuple[Any, Any]] = []

        for step in after:
            given_out += ((out, copy.deepcopy(out)) for out in (value_of(channel), stored(channel)))
            perform(channel, kind, step)

        assert [(kind, was) for _, was in given_out] == [(kind, out) for out, _ in given_out]


@given(before=scripts, step=updates)
def test_a_channel_changes_nothing_that_was_written_to_it(before: list[Step], step: Step) -> None:
    for kind, channel in all_reached(before):
        writes = writes_of(kind, step)

        channel.update(writes)
        life(channel, kind, before)

        assert (kind, writes_of(kind, step)) == (kind, writes)


@given(before=scripts, step=updates)
def test_writers_may_change_what_they_wrote(before: list[Step], step: Step) -> None:
    for kind, channel in all_reached(before, REDUCERS | TOPICS):
        writes = writes_of(kind, step)
        channel.update(writes)
        expected = face(channel)

        spoil(writes)
        for write in writes:
            spoil(write)

        assert (kind, face(channel)) == (kind, expected)


@given(before=scripts, after=scripts)
def test_a_channel_and_what_it_was_built_from_live_apart(before: list[Step], after: list[Step]) -> None:
    for kind, channel in all_reached(before, REDUCERS | TOPICS | BARRIERS):
        checkpoint = copy.deepcopy(stored(channel))

        restored = channel.from_checkpoint(checkpoint)
        restored.copy().update(writes_of(kind, Step("update", (1,))))
        life(restored.copy(), kind, after)
        untouched = copy.deepcopy(checkpoint)
        spoil(checkpoint)

        assert (kind, untouched) == (kind, stored(channel))
        assert (kind, face(restored)) == (kind, face(channel))


# -- what calls report --------------------------------------------------------------------------------------------


@given(script=scripts)
def test_availability_tells_whether_there_is_a_value(script: list[Step]) -> None:
    for kind, channel in all_reached(script):
        assert (kind, channel.is_available()) == (kind, value_of(channel) is not MISSING)


@given(before=scripts, step=steps)
def test_a_call_that_reports_no_change_made_none(before: list[Step], step: Step) -> None:
    for kind, channel in all_reached(before):
        unchanged = face(channel)

        assert perform(channel, kind, step) or (kind, face(channel)) == (kind, unchanged)


@given(script=scripts)
def test_the_flags_of_a_class_are_true(script: list[Step]) -> None:
    for kind, channel in all_reached(script):
        flags = channel.expires, channel.finishes, channel.consumes

        changed = channel.copy().update(()), channel.copy().finish(), channel.copy().consume()

        assert all(may or not did for may, did in zip(flags, changed, strict=True)), kind


@given(script=scripts)
def test_an_idle_superstep_finish_and_consume_work_once(script: list[Step]) -> None:
    for kind, channel in all_reached(script):
        for call in ("update", "finish", "consume"):
            perform(channel, kind, Step(call))
            assert (kind, perform(channel, kind, Step(call))) == (kind, False)


# -- waiting ------------------------------------------------------------------------------------------------------


@given(script=scripts)
def test_a_consumed_channel_is_empty_until_it_is_written_again(script: list[Step]) -> None:
    for kind in ("last after finish", *BARRIERS):
        channel = reached(kind, script)
        was_open = channel.is_available()

        consumed = channel.consume()

        assert (kind, consumed, channel.is_available()) == (kind, was_open, False)
        assert not consumed or not channel.finish()


@given(before=scripts, after=scripts)
def test_what_waits_for_the_end_opens_in_finish_only(before: list[Step], after: list[Step]) -> None:
    for kind in ("last after finish", "barrier after finish"):
        channel = reached(kind, before)
        for step in after:
            was_open = channel.is_available()
            changed = perform(channel, kind, step)
            assert was_open or (kind, channel.is_available()) == (kind, step.call == "finish" and changed)


# -- folding ------------------------------------------------------------------------------------------------------


@given(left=some, right=some)
def test_a_batch_gives_what_its_parts_give_in_turn(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    for kind in REDUCERS:
        whole = reached(kind, [Step("update", left + right)])
        parts = reached(kind, [Step("update", left), Step("update", right)])
        single = reached(kind, [Step("update", (n,)) for n in left + right])

        assert (kind, whole.get()) == (kind, parts.get()) == (kind, single.get())
        assert type(whole.get()) is type(single.get())


class Own(list[int]):
    """A list with an idea of its own of addition, on both sides."""

    def __add__(self, other: Any) -> Any:
        return Own([*self, 0, *other])

    def __radd__(self, other: Any) -> Any:
        return Own([*other, 9, *self])


@pytest.mark.parametrize("start", [[], Own()], ids=["list", "own"])
@given(writes=st.lists(st.builds(lambda cls, n: cls(numbers(n)), st.sampled_from([list, Own]), seeds), min_size=1))
def test_a_reducer_folds_left_to_right(start: list[int], writes: list[list[int]]) -> None:
    channel = BinaryOperatorAggregate(list, operator.add, default_factory=lambda: start)

    channel.update(writes)

    expected: list[int] = reduce(operator.add, writes, start)
    assert channel.get() == expected
    assert type(channel.get()) is type(expected)


@given(before=scripts, batch=batches, at=seeds, form=forms, n=seeds)
def test_an_overwrite_wins_wherever_it_stands(
    before: list[Step], batch: tuple[int, ...], at: int, form: int, n: int
) -> None:
    for kind, channel in all_reached(before, VALUES):
        alone = channel.copy()

        channel.update(writes_of(kind, Step("update", batch, (at, form, n))))
        alone.update(writes_of(kind, Step("update", (), (0, 0, n))))

        assert (kind, face(channel)) == (kind, face(alone))
        assert kind in TOPICS or (kind, stored(channel)) in ((kind, expected) for expected in whole_of(kind, n))


def whole_of(kind: str, n: int) -> list[Any]:
    """How a channel may store a value that it was given as a whole."""
    value = EVERY[kind].value(n)
    return [MISSING] if kind.startswith("untracked") else [value, (value, False)]


@given(before=scripts, batch=batches, one=st.tuples(seeds, forms, seeds), form=forms)
def test_a_refused_superstep_changes_nothing(
    before: list[Step], batch: tuple[int, ...], one: tuple[int, int, int], form: int
) -> None:
    for kind, channel in all_reached(before, VALUES):
        unchanged = face(channel)
        writes = writes_of(kind, Step("update", batch, one))

        with pytest.raises(InvalidUpdateError):
            channel.update([*writes, overwrite_of(form, EVERY[kind].value(1))])

        assert (kind, face(channel)) == (kind, unchanged)


@given(script=st.lists(updates, max_size=6), cut=st.integers(0, 6))
def test_replayed_writes_give_the_value_that_ran(script: list[Step], cut: int) -> None:
    for kind in ("delta", "delta grow", "delta take"):
        # beside an overwrite the other writes of a superstep are dropped, and only what counts is kept for a replay
        counting = [step if step.overwrite is None else step._replace(writes=()) for step in script]
        seed = stored(reached(kind, counting[:cut]))
        later = [("task", "key", write) for step in counting[cut:] for write in writes_of(kind, step)]

        restored = EVERY[kind].make().from_checkpoint(seed)
        assert isinstance(restored, DeltaChannel)
        restored.replay_writes(later)

        assert (kind, restored.get()) == (kind, reached(kind, counting).get())
