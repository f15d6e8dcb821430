"""Channels that wait until every named writer has arrived: joins of several nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Generic, Self

from pregel.channels.base import MISSING, BaseChannel, Checkpoint, Missing, Value
from pregel.errors import InvalidUpdateError


class _NamedBarrier(Generic[Value, Checkpoint], BaseChannel[None, Value, Checkpoint]):
    """Which of `names` have arrived since it last opened."""

    __slots__ = ("names", "seen")
    expires: ClassVar[bool] = False

    def __init__(self, typ: Any, names: Iterable[Value]) -> None:
        super().__init__(typ)
        self.names = set(names)
        self.seen: frozenset[Value] = frozenset()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NamedBarrier) and type(other) is type(self) and other.names == self.names

    def update(self, values: Sequence[Value]) -> bool:
        if not self.names.issuperset(values):
            raise self._unknown(values)
        arrived = self.seen.union(values)
        if len(arrived) == len(self.seen):
            return False
        self.seen = arrived
        return True

    def get(self) -> None:
        if not self.is_available():
            raise self._empty()

    def _restore(self, seen: Iterable[Value] | Missing) -> Self:
        new = self._blank()
        new.names = self.names
        # a writer that the graph has lost since can no longer be waited for
        new.seen = frozenset() if seen is MISSING else frozenset(self.names.intersection(seen))
        return new

    def _unknown(self, values: Sequence[Value]) -> InvalidUpdateError:
        strange = next(value for value in values if value not in self.names)
        known = ", ".join(sorted(map(repr, self.names)))
        return InvalidUpdateError(f"At key '{self.key}': {strange!r} is not one of {known}.", channel=self.key)


class NamedBarrierValue(_NamedBarrier[Value, "set[Value]"], Generic[Value]):
    """None once all of `names` were written since it last opened; consuming it closes it again.

    InvalidUpdateError for any other name.
    """

    __slots__ = ()

    def consume(self) -> bool:
        if not self.is_available():
            return False
        self.seen = frozenset()
        return True

    def is_available(self) -> bool:
        return len(self.seen) == len(self.names)

    def checkpoint(self) -> set[Value]:
        return set(self.seen)

    def from_checkpoint(self, checkpoint: set[Value] | Missing) -> Self:
        return self._restore(checkpoint)

    def copy(self) -> Self:
        return self._restore(self.seen)


class NamedBarrierValueAfterFinish(_NamedBarrier[Value, "tuple[set[Value], bool]"], Generic[Value]):
    """A NamedBarrierValue that opens only once nothing else is left to run: the join of a deferred node."""

    __slots__ = ("finished",)

    def __init__(self, typ: Any, names: Iterable[Value]) -> None:
        super().__init__(typ, names)
        self.finished = False

    def finish(self) -> bool:
        if self.finished or len(self.seen) != len(self.names):
            return False
        self.finished = True
        return True

    def consume(self) -> bool:
        if not self.finished:
            return False
        self.seen, self.finished = frozenset(), False
        return True

    def is_available(self) -> bool:
        return self.finished

    def checkpoint(self) -> tuple[set[Value], bool]:
        return set(self.seen), self.finished

    def from_checkpoint(self, checkpoint: tuple[set[Value], bool] | Missing) -> Self:
        seen: Iterable[Value] | Missing = MISSING
        finished = False
        match checkpoint:
            case (names, bool(flag)):
                seen, finished = names, flag
            case stored if stored is not MISSING:
                seen = stored  # was stored before the node became a deferred one
        new = self._restore(seen)
        new.finished = finished and len(new.seen) == len(new.names)
        return new

    def copy(self) -> Self:
        new = self._restore(self.seen)
        new.finished = self.finished
        return new
