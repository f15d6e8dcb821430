"""Channels that hold the last value they were given: the default for a key of the state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Self

from pregel.channels.base import MISSING, BaseChannel, Missing, Value, copy_container
from pregel.channels.growth import ATOMS
from pregel.channels.overwrite import CARRIERS, surviving


class LastValue(Generic[Value], BaseChannel[Value, Value, Value]):
    """The last value, which at most one task may write per superstep; ConcurrentUpdateError otherwise."""

    __slots__ = ("value",)
    expires: ClassVar[bool] = False
    bare: ClassVar[bool] = True
    keeps_last: ClassVar[bool] = True

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: Value | Missing = MISSING

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def update(self, values: Sequence[Value]) -> bool:
        if not values:
            return False
        value = values[0]
        if len(values) == 1 and type(value) in ATOMS:
            self.value = value
            return True
        if len(values) != 1 or isinstance(value, CARRIERS):
            value = surviving(values, self.key, guard=True)
        self.value = copy_container(value)  # the node that wrote it may go on changing its own
        return True

    def after(self, values: Sequence[Value]) -> Value | Missing:
        if type(self) is LastValue and len(values) == 1 and not isinstance(values[0], CARRIERS):
            return values[0]
        return super().after(values)

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
        else:  # a state of many keys makes one of each
            new = object.__new__(type(self))
            new.typ, new.key = self.typ, self.key
        new.value = checkpoint
        return new

    def copy(self) -> Self:
        return self.from_checkpoint(self.value)


class LastValueAfterFinish(Generic[Value], BaseChannel[Value, Value, "tuple[Value, bool]"]):
    """The last value, readable only once nothing else is left to run: the trigger of a deferred node."""

    __slots__ = ("finished", "value")
    expires: ClassVar[bool] = False

    def __init__(self, typ: Any, key: str = "") -> None:
        super().__init__(typ, key)
        self.value: Value | Missing = MISSING
        self.finished = False

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def update(self, values: Sequence[Value]) -> bool:
        if not values:
            return False
        self.value = surviving(values, self.key, guard=False)
        self.finished = False
        return True

    def finish(self) -> bool:
        if self.finished or self.value is MISSING:
            return False
        self.finished = True
        return True

    def consume(self) -> bool:
        if not self.finished:
            return False
        self.value, self.finished = MISSING, False
        return True

    def get(self) -> Value:
        if self.value is MISSING or not self.finished:
            raise self._empty()
        return self.value

    def is_available(self) -> bool:
        return self.finished

    def checkpoint(self) -> tuple[Value, bool] | Missing:
        return MISSING if self.value is MISSING else (self.value, self.finished)

    def from_checkpoint(self, checkpoint: tuple[Value, bool] | Missing) -> Self:
        new = self._blank()
        new.value, new.finished = MISSING, False
        match checkpoint:
            case (value, bool(finished)):
                new.value, new.finished = value, finished
            case stored if stored is not MISSING:
                new.value = stored  # was stored before the node became a deferred one
        return new

    def copy(self) -> Self:
        new = self._blank()
        new.value, new.finished = self.value, self.finished
        return new
