"""A channel is one key of the state: it says how the writes of a superstep become the next value.

1. State is replaced, never changed in place: a copy, a checkpoint and a value that was read never change later.
2. `update` gets the writes of one superstep, in task order. It is all or nothing: when it raises, nothing changed.
3. A channel is pure: no clock, no randomness, no I/O. The engine calls it from one thread at a time.
4. ``expires``, ``finishes`` and ``consumes`` tell the engine which calls can matter, so that a superstep costs what
   changed and not what exists. A class of yours that says nothing is asked every time an answer could be yes.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from pregel.channels.batches import Batches
from pregel.channels.growth import Growth
from pregel.errors import EmptyChannelError

Value = TypeVar("Value")
Update = TypeVar("Update")
Checkpoint = TypeVar("Checkpoint")
Kind = TypeVar("Kind")


class Missing(Enum):
    """The type of `MISSING`, the mark for "no value": the same object after copy, deepcopy and pickle."""

    MISSING = "MISSING"

    def __repr__(self) -> str:
        return "MISSING"

    __str__ = __repr__


MISSING: Final = Missing.MISSING


@dataclass(slots=True, frozen=True)
class DeltaSnapshot(Generic[Value]):
    """A whole value of a DeltaChannel as a checkpoint holds it."""

    value: Value


class BaseChannel(ABC, Generic[Value, Update, Checkpoint]):
    """One key of the state. `typ` is the type of its value, `key` its name in the state.

    A class of your own defines `get`, `update` and `from_checkpoint`.
    """

    __slots__ = ("key", "typ")

    expires: ClassVar[bool] = True
    """Whether ``update(())`` may change something."""
    finishes: ClassVar[bool] = False
    """Whether `finish` is defined."""
    consumes: ClassVar[bool] = False
    """Whether `consume` is defined."""
    growth: Growth | Batches | None = None
    """What is known of how the value came about, for a channel that can be stored by what is new in it."""
    snapshots: ClassVar[bool] = False
    """Whether ``snapshot()`` gives what is stored when `checkpoint` keeps nothing."""
    bare: ClassVar[bool] = False
    """Whether `value` is what `get` and `checkpoint` give, MISSING for nothing: who reads many spares the calls."""
    keeps_last: ClassVar[bool] = False
    """Whether one plain write to an empty channel makes of it what `from_checkpoint` makes of the value."""
    _foreign: ClassVar[bool] = False  # may hold attributes that our classes do not know

    value: Any  # of a class that is `bare`

    def __init__(self, typ: Any, key: str = "") -> None:
        self.typ = typ
        self.key = key

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.finishes = cls.finish is not BaseChannel.finish
        cls.consumes = cls.consume is not BaseChannel.consume
        cls.snapshots = hasattr(cls, "snapshot")
        cls._foreign = cls.__module__.rpartition(".")[0] != __package__
        if cls._foreign:
            cls.bare = cls.keeps_last = False
        if _depth(cls, "update") < _depth(cls, "expires"):
            cls.expires = True  # an `update` newer than the promise does not inherit it

    @property
    def ValueType(self) -> Any:
        """The type of what `get` returns."""
        return self.typ

    @property
    def UpdateType(self) -> Any:
        """The type of one write."""
        return self.typ

    # -- reading --

    @abstractmethod
    def get(self) -> Value:
        """The current value; EmptyChannelError when there is none."""

    def is_available(self) -> bool:
        """Whether `get` has a value to return."""
        try:
            self.get()
        except EmptyChannelError:
            return False
        return True

    def checkpoint(self) -> Checkpoint | Missing:
        """What `from_checkpoint` needs to build this state again; MISSING when there is nothing to store."""
        try:
            return self.get()  # type: ignore[return-value]  # most channels store their value
        except EmptyChannelError:
            return MISSING

    # -- making another --

    @abstractmethod
    def from_checkpoint(self, checkpoint: Checkpoint | Missing) -> Self:
        """A new channel with these settings and that state; MISSING gives a fresh one."""

    def copy(self) -> Self:
        """A new channel with the same settings and state."""
        return self.from_checkpoint(self.checkpoint())

    # -- changing --

    @abstractmethod
    def update(self, values: Sequence[Update]) -> bool:
        """Whether the writes of a superstep changed the channel; no writes: it was left out of that superstep.

        InvalidUpdateError when the writes do not fit.
        """

    def after(self, values: Sequence[Update]) -> Value | Missing:
        """What `get` would return after these writes, without making them; MISSING for nothing."""
        changed = self.copy()
        changed.update(values)
        return changed.get() if changed.is_available() else MISSING

    def consume(self) -> bool:
        """Whether the channel changed because a task that it had triggered is done."""
        return False

    def finish(self) -> bool:
        """Whether the channel changed because nothing else is left to run."""
        return False

    # -- for the classes of this package --

    def _blank(self) -> Self:
        """A channel with this `typ` and `key`; the slots of our own classes are for the caller to fill."""
        if self._foreign:
            return copy.copy(self)
        blank = object.__new__(type(self))
        blank.typ = self.typ
        blank.key = self.key
        return blank

    def _empty(self) -> EmptyChannelError:
        return EmptyChannelError(channel=self.key)


def _depth(cls: type, name: str) -> int:
    """How far up the bases of a class a name is defined."""
    return next(depth for depth, base in enumerate(cls.__mro__) if name in vars(base))


def of_kind(channels: Mapping[str, Any], kind: type[Kind]) -> dict[str, Kind]:
    """Those that are of a kind. Each class is asked once: an abstract base takes a microsecond to answer."""
    found = set(map(type, channels.values()))
    classes = {cls for cls in found if issubclass(cls, kind)}
    if classes == found:
        return dict(channels)
    return {name: channel for name, channel in channels.items() if type(channel) in classes} if classes else {}


_COPIERS: dict[type, Callable[[Any], Any]] = {
    list: list.copy,
    dict: dict.copy,
    set: set.copy,
    deque: deque.copy,
    bytearray: bytearray.copy,
}
_CONTAINERS = tuple(_COPIERS)


def copy_container(value: Value) -> Value:
    """A copy, one level deep, of a list, dict, set, deque or bytearray; anything else as it is."""
    copier = _COPIERS.get(type(value))
    if copier is not None:
        return copier(value)  # type: ignore[no-any-return]
    return copy.copy(value) if isinstance(value, _CONTAINERS) else value
