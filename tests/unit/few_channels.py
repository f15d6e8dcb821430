"""A few channels that many tests use, and what can be read from one."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from pregel.channels import MISSING, BaseChannel, BinaryOperatorAggregate, DeltaChannel, NamedBarrierValue
from pregel.errors import EmptyChannelError

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
