"""A channel for several tasks that are known to write the same value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Self

from pregel.channels.base import MISSING, BaseChannel, Missing, Value, copy_container
from pregel.channels.overwrite import surviving


class AnyValue(Generic[Value], BaseChannel[Value, Value, Value]):
    """The last of the values written in the last superstep; empty after a superstep that wrote none."""

    __slots__ = ("value",)

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: Value | Missing = MISSING

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def update(self, values: Sequence[Value]) -> bool:
        if values:
            self.value = copy_container(surviving(values, self.key, guard=False))
            return True
        had_value = self.value is not MISSING
        self.value = MISSING
        return had_value

    def get(self) -> Value:
        if self.value is MISSING:
            raise self._empty()
        return self.value

    def is_available(self) -> bool:
        return self.value is not MISSING

    def checkpoint(self) -> Value | Missing:
        return self.value

    def from_checkpoint(self, checkpoint: Value | Missing) -> Self:
        new = self._blank()
        new.value = checkpoint
        return new

    def copy(self) -> Self:
        return self.from_checkpoint(self.value)
