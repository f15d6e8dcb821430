"""A channel that is never stored: connections, clients and other things that live in one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self

from pregel.channels.base import MISSING, BaseChannel, Missing, Value, copy_container
from pregel.channels.overwrite import surviving


class UntrackedValue(Generic[Value], BaseChannel[Value, Value, Value]):
    """The last value, kept for the run and absent from every checkpoint.

    `guard` refuses more than one write per superstep (ConcurrentUpdateError); without it the last one counts.
    """

    __slots__ = ("guard", "value")
    expires: ClassVar[bool] = False

    def __init__(self, typ: Any, guard: bool = True) -> None:
        super().__init__(typ)
        self.guard = guard
        self.value: Value | Missing = MISSING

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntrackedValue) and type(other) is type(self) and other.guard == self.guard

    def update(self, values: Sequence[Value]) -> bool:
        if not values:
            return False
        self.value = copy_container(surviving(values, self.key, guard=self.guard))
        return True

    def get(self) -> Value:
        if self.value is MISSING:
            raise self._empty()
        return self.value

    def is_available(self) -> bool:
        return self.value is not MISSING

    def checkpoint(self) -> Missing:
        return MISSING

    def from_checkpoint(self, checkpoint: Value | Missing) -> Self:
        """A fresh channel, whatever was stored."""
        new = self._blank()
        new.guard = self.guard
        new.value = MISSING
        return new

    def copy(self) -> Self:
        new = self.from_checkpoint(MISSING)
        new.value = self.value
        return new
