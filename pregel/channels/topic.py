"""A channel that passes on everything it was sent, in order: packets for the next superstep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Generic, Self

from pregel.channels.base import MISSING, BaseChannel, Missing, Value
from pregel.channels.overwrite import overwrite_in


class Topic(Generic[Value], BaseChannel["Sequence[Value]", "Value | list[Value]", "list[Value]"]):
    """The values written in the superstep before; with `accumulate`, all that were ever written.

    A write that is a list counts as its items.
    """

    __slots__ = ("accumulate", "values")

    def __init__(self, typ: Any, accumulate: bool = False) -> None:
        super().__init__(typ)
        self.accumulate = accumulate
        self.values: list[Value] = []

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Topic) and type(other) is type(self) and other.accumulate == self.accumulate

    @property
    def ValueType(self) -> Any:
        return Sequence[self.typ]  # type: ignore[name-defined]

    @property
    def UpdateType(self) -> Any:
        return self.typ | list[self.typ]  # type: ignore[name-defined]

    def update(self, values: Sequence[Value | list[Value]]) -> bool:
        before = self.values
        if not values:
            self.values = before if self.accumulate else []
        elif (whole := overwrite_in(values, self.key)) is not MISSING:
            self.values = _flat((whole,))
            return True
        else:
            fresh = _flat(values)
            self.values = [*before, *fresh] if self.accumulate else fresh
            if fresh:
                return True
        return bool(before) and not self.accumulate

    def get(self) -> list[Value]:
        if not self.values:
            raise self._empty()
        return list(self.values)

    def is_available(self) -> bool:
        return bool(self.values)

    def checkpoint(self) -> list[Value]:
        return self.values

    def from_checkpoint(self, checkpoint: list[Value] | Missing) -> Self:
        new = self._blank()
        new.accumulate = self.accumulate
        match checkpoint:
            case (_, legacy) if isinstance(checkpoint, tuple):
                new.values = list(legacy)  # releases of the reference before 1.0 stored (seen, values)
            case _:
                new.values = [] if checkpoint is MISSING else list(checkpoint)
        return new

    def copy(self) -> Self:
        return self.from_checkpoint(self.values)


def _flat(writes: Iterable[Value | list[Value]]) -> list[Value]:
    """The writes, with each list replaced by its items."""
    flat: list[Value] = []
    for write in writes:
        if isinstance(write, list):
            flat.extend(write)
        else:
            flat.append(write)
    return flat
