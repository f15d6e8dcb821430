"""How a list grew since the last checkpoint, so that a journal can store what is new instead of the whole list.

1. A `Growth` belongs to one channel. It knows the list as it was last stored, and how much of it must still be there.
2. An item counts as kept only when it is the same object, at the same place, and was not written again since: a node
   that changes an item and returns it has changed the state.
3. When in doubt nothing is kept, and the list is stored whole. That is always right.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress, count
from typing import Any, NamedTuple, Protocol

APPENDING = (op.add, op.concat)  # on two plain lists they keep every item of the first one

LISTS = {list}
ATOMS = frozenset((type(None), bool, int, float, str, bytes))  # nobody can change them


Runs = Sequence[tuple[int, int, int]]
"""(place in the list, place in the list before, how many), in rising order of both."""


class Log(NamedTuple):
    """A list to be stored, of which the first `kept` items are those of `base`, the list that was stored before."""

    value: list[Any]
    kept: int
    base: list[Any] | None
    every: int | None = None  # updates after which the whole list is stored; None leaves that to the journal
    write: Any = None  # all that was written since then, if it was one list
    runs: Runs = ()  # of items of `base` that are still there, when some of them are not


class Growth:
    """What a channel remembers of its list between two checkpoints."""

    __slots__ = ("appends", "base", "every", "kept", "noted", "trusted", "writes", "wrote")

    def __init__(self, *, appends: bool = False, trusted: bool = False, every: int | None = None) -> None:
        self.appends = appends  # writes never touch an item that is there
        self.trusted = trusted  # a list that is longer by all that was written has it at its end
        self.every = every
        self.forget()

    def since(self, value: object) -> Growth:
        """The same for a channel that starts from what was stored; anything but a list starts from nothing."""
        new = Growth(appends=self.appends, trusted=self.trusted, every=self.every)
        if type(value) is list:
            new.base, new.kept = value, len(value)
        return new

    def forget(self) -> None:
        """Nothing is known: the value was replaced."""
        self.base: list[Any] | None = None
        self.kept = 0
        self.noted = False  # something was done that may be more than putting new items at the end
        self.wrote: Any = ()  # a list once there is something
        self.writes: tuple[Sequence[Any], ...] = ()  # the first two

    def add(self, writes: Sequence[Any]) -> None:
        """Items that nobody knew came to the end, and that is all."""
        if len(self.writes) < 2:
            self.writes = (*self.writes, writes)

    def note(self, writes: Sequence[Any]) -> None:
        """The reducer has folded these writes in."""
        self.noted = True
        if len(self.writes) < 2:
            self.writes = (*self.writes, writes)
        if not self.appends:
            if self.kept:
                self.wrote = self.wrote or []
                self.wrote += writes
        elif {*map(type, writes)} != LISTS:
            self.kept = 0  # another class may have put itself first

    def log(self, value: Any) -> Any:
        """The value as a `Log` when it is a plain list; from now on this is what was stored."""
        if type(value) is not list:
            self.forget()
            return value
        base, kept = self.base, self.kept
        runs: Runs = ()
        if kept and self.noted and not self.appends:
            kept, runs = self._same(base, value)  # type: ignore[arg-type]  # with something kept there is a base
        write = self.writes[0][0] if len(self.writes) == 1 == len(self.writes[0]) else None
        self.forget()
        self.base, self.kept = value, len(value)
        return Log(value, kept, base, self.every, write, runs)

    def _same(self, base: list[Any], value: list[Any]) -> tuple[int, Runs]:
        """How many items at the start are kept, and if that is not all of them, which others."""
        kept = same_items(base, value, min(self.kept, len(value)))
        if self.trusted and len(value) - len(base) == sum(map(_count, self.wrote)):
            return kept, ()
        ids = {id(part) for part in _parts(self.wrote, 3) if type(part) not in ATOMS}
        if not ids.isdisjoint(map(id, base[:kept])):
            kept = next(place for place, item in enumerate(base) if id(item) in ids)
        return kept, () if kept == len(base) else kept_runs(base, value, ids)


def kept_runs(base: list[Any], value: list[Any], written: set[int]) -> list[tuple[int, int, int]]:
    """The runs of items that are the same objects in the same order, without those that were written again."""
    places = {id(item): place for place, item in enumerate(base)}
    runs: list[tuple[int, int, int]] = []
    beyond = 0
    for at, item in enumerate(value):
        place = places.get(id(item), -1)
        if place < beyond or id(item) in written:
            continue
        beyond = place + 1
        if runs and (last := runs[-1])[0] + last[2] == at and last[1] + last[2] == place:
            runs[-1] = last[0], last[1], last[2] + 1
        else:
            runs.append((at, place, 1))
    return runs


class Index(Protocol):
    """What is remembered of a list, so that putting new items at its end costs what they are."""

    def extended(self, items: Any, write: Any, /) -> list[Any] | None:
        """A new list with what was written at its end; None when the reducer has to say what becomes of it."""


def index_of(reducer: Callable[..., Any]) -> Index | None:
    """A new index for a reducer that has one."""
    if isinstance(reducer, partial) and (reducer.args or reducer.keywords):
        return None
    kind = getattr(getattr(reducer, "func", reducer), "index", None)
    return None if kind is None else kind()


def same_items(left: list[Any], right: list[Any], upto: int) -> int:
    """How many of the first items are the same objects in both lists, `upto` at most."""
    return min(upto, next(compress(count(), map(op.is_not, left, right)), upto))


def _count(write: Any) -> int:
    """How many items a write can add at most."""
    return len(write) if type(write) is list or type(write) is tuple else 1


def _parts(writes: Iterable[Any], depth: int) -> Iterable[Any]:
    """The writes, and what they are made of, a few levels down."""
    for write in writes:
        yield write
        kind = type(write)
        if depth and (kind is list or kind is tuple):
            yield from _parts(write, depth - 1)
        elif depth and kind is dict:
            yield from _parts(write.values(), depth - 1)


def growth_of(reducer: Callable[..., Any], start: object) -> Growth | None:
    """What can be known of lists under this reducer; None for one that may do anything to the items it is given."""
    if reducer in APPENDING:
        return Growth(appends=True) if type(start) is list else None
    known = getattr(reducer, "func", reducer)  # of a partial
    return Growth(trusted=True) if getattr(known, "keeps_items", False) else None
