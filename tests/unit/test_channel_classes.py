"""Channels as classes: which are equal when schemas are merged, and what the engine asks of ours and of others'."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Self, TypedDict

import pytest

from pregel import channels
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
from pregel.errors import EmptyChannelError
from pregel.graph import START, StateGraph
from tests.unit.few_channels import Channel, adder, barrier, delta, joined, value_of

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


class Doubling(LastValue[int]):
    def update(self, values: Sequence[int]) -> bool:
        return super().update([value * 2 for value in values])

    def get(self) -> int:
        return super().get() + 1


class Doubled(TypedDict):
    n: Annotated[int, Doubling(int)]


def test_what_a_class_of_the_users_makes_of_a_first_write_and_of_its_value_counts() -> None:
    builder = StateGraph(Doubled)
    builder.add_node("node", lambda state: {"n": state["n"]})
    builder.add_edge(START, "node")

    assert {"n": 11} == builder.compile().invoke({"n": 2})
