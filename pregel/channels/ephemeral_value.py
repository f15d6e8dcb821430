"""A channel whose value lives for one superstep: inputs and the triggers of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self

from pregel.channels.base import MISSING, BaseChannel, Missing, Value
from pregel.channels.overwrite import CARRIERS, surviving


class EphemeralValue(Generic[Value], BaseChannel[Value, Value, Value]):
    """The value written in the superstep before, and only then.

    `guard` refuses more than one write per superstep (ConcurrentUpdateError); without it the last one counts.
    """

    __slots__ = ("guard", "value")
    bare: ClassVar[bool] = True

    def __init__(self, typ: Any, guard: bool = True) -> None:
        self.typ, self.key = typ, ""  # as the base does it; a graph makes one for each node
        self.guard = guard
        self.value: Value | Missing = MISSING

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EphemeralValue) and type(other) is type(self) and other.guard == self.guard

    def update(self, values: Sequence[Value]) -> bool:
        if not values:
            had_value = self.value is not MISSING
            self.value = MISSING
            return had_value
        value = values[0]
        if len(values) != 1 or isinstance(value, CARRIERS):
            value = surviving(values, self.key, guard=self.guard)
        self.value = value
        return True

    def get(self) -> Value:
        if self.value is MISSING:
            raise self._empty()
        return self.value

    def is_available(self) -> bool:
        return self.value is not MISSING

    def checkpoint(self) -> Value | Missing:
        return self.value

    def from_checkpoint(self, checkpoint: Value | Missing) -> Self:
        if self._foreign:
            new = self._blank()
        else:
            new = object.__new__(type(self))
            new.typ, new.key = self.typ, self.key
        new.guard = self.guard
        new.value = checkpoint
        return new

    def copy(self) -> Self:
        return self.from_checkpoint(self.value)
