"""What is stored of a list that grew: a delta, a delta and a cache, or the whole list.

1. A delta says how long the list is now and which items stand at its end; all before them are those of `prev`. When
   items went that stood before others, it says which runs of `prev` are left, and what stands between them. So a list
   is read back without any code of the user's, whatever reducer made it.
2. A delta weighs its bytes and `ROW`. A cache is written with it once what a reader has to read, the last whole list
   and the deltas since then, weighs twice what the list does. So no more is ever read than twice a list (or twice
   `SMALL`), and no more is stored than twice what was written: a cache weighs at most half of what it stands for.
3. A list that keeps nothing, and one that costs no more than its delta, is stored whole.
4. A write that lands together with the very delta that it made is stored once: it names the delta.
"""

from __future__ import annotations

import operator as op
from collections.abc import Callable
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.channels.growth import Log, Runs, same_items
from pregel.checkpoint.manifest import INLINE

ROW = 150  # bytes that a row costs beside its blob
SMALL = 4096  # bytes; a smaller list gets a cache as if it were that long
TAIL = 1  # how a delta is laid out, as its row says
EDIT = 3
EDITED = "@edit"  # type of a delta that is an edit

FOLD = " fold="  # in the type of a whole value: the reducer of the deltas that may stand on it follows

NAMED = "@delta"
"""The type of a write that a delta holds as well, stored with the checkpoint that applied it; its blob says which."""
NAMED_WHOLE = "@value"
"""The same of a write that a whole value holds."""
NAMING = frozenset((NAMED, NAMED_WHOLE))

Typed = tuple[str, bytes]


class Tip:
    """Where the log of one channel stands on one branch."""

    __slots__ = ("at", "base", "last", "rows", "size", "weight", "whole")

    def __init__(self, last: Any, size: int, whole: int, weight: int = 0, rows: int = 0) -> None:
        self.last = last  # the value as it was stored
        self.size = size  # of it, in bytes, about
        self.whole = whole  # bytes of the nearest whole list
        self.weight = weight  # of the deltas since then
        self.rows = rows  # how many these are
        self.at = self.base = 0  # seq of its row, and of the nearest whole list

    def placed(self, at: int, base: int) -> Tip:
        """The tip, now that its row has a place."""
        self.at, self.base = at, base
        return self

    def holds(self, base: list[Any] | None) -> bool:
        """Whether this list is what was stored, item for item."""
        if base is None or base is self.last:
            return base is not None
        return len(base) == len(self.last) == same_items(base, self.last, len(base))

    def shares(self, log: Log) -> int:
        """How many of the first items are those that were stored."""
        if log.base is self.last:
            return log.kept
        return same_items(self.last, log.value, min(log.kept, len(self.last), len(log.value)))


class Stored:
    """What to store: a delta, or the whole, or both; `tip` is where the log stands then."""

    __slots__ = ("fold", "layout", "n", "tail", "tip", "whole")

    def __init__(
        self,
        n: int | None,
        tail: Typed | None,
        whole: Typed | None,
        tip: Tip | None,
        layout: int = TAIL,
        fold: str = "",
    ) -> None:
        self.n, self.tail, self.whole, self.tip = n, tail, whole, tip
        self.layout = layout  # of the delta
        self.fold = fold  # the reducer that the whole is for, if it matters


def stored(log: Log, tip: Tip | None, encode: Callable[[Any], Typed]) -> Stored:
    """How to store a list on top of what its branch holds."""
    value = log.value
    made = None if tip is None else _delta(log, tip, encode)
    if tip is None or made is None:
        return _whole(value, encode)
    delta, layout, kept = made
    size = tip.size * kept // len(tip.last) + len(delta[1])
    weight = len(delta[1]) + ROW
    if log.every is None and weight >= size:
        return _whole(value, encode)
    if _cache_is_due(log, tip, size, tip.weight + weight):
        whole = encode(value)
        return Stored(len(value), delta, whole, Tip(value, len(whole[1]), len(whole[1])), layout)
    return Stored(len(value), delta, None, Tip(value, size, tip.whole, tip.weight + weight, tip.rows + 1), layout)


def _delta(log: Log, tip: Tip, encode: Callable[[Any], Typed]) -> tuple[Typed, int, int] | None:
    """(delta, layout, how many items it keeps); None when it would keep nothing."""
    kept, left = tip.shares(log), 0
    if log.runs and tip.holds(log.base):
        left = sum(count for _, _, count in log.runs)
    if left > kept:
        return _edit(log.value, log.runs, encode), EDIT, left
    return (encode(_written(log, log.value[kept:])), TAIL, kept) if kept else None


def _edit(value: list[Any], runs: Runs, encode: Callable[[Any], Typed]) -> Typed:
    """The runs, and in one list what stands between them."""
    between: list[Any] = []
    done = 0
    for at, _, count in runs:
        between += value[done:at]
        done = at + count
    return EDITED, msgpack.packb([runs, *encode(between + value[done:])])


def edited(blob: bytes, prev: list[Any], loads: Callable[[Typed], Any]) -> list[Any] | None:
    """The list that an edit makes of the one before; None when it does not fit."""
    runs, kind, packed = msgpack.unpackb(blob)
    between = loads((kind, packed))
    if type(between) is not list:
        return None
    value: list[Any] = []
    taken = 0
    for at, start, count in runs:
        new = at - len(value)
        if new < 0 or taken + new > len(between) or not 0 <= start <= start + count <= len(prev):
            return None
        value += between[taken : taken + new]
        value += prev[start : start + count]
        taken += new
    return value + between[taken:]


def _written(log: Log, tail: list[Any]) -> list[Any]:
    """The end of the list: the very list that was written if it is that, since it may be encoded already."""
    write = log.write
    if type(write) is list and len(write) == len(tail) and not any(map(op.is_not, write, tail)):
        return write
    return tail


def _whole(value: list[Any], encode: Callable[[Any], Typed]) -> Stored:
    whole = encode(value)
    size = len(whole[1])
    return Stored(len(value), None, whole, Tip(value, size, size) if size > INLINE else None)


def _cache_is_due(log: Log, tip: Tip, size: int, weight: int) -> bool:
    if log.every is not None:
        return tip.rows + 1 >= log.every
    return tip.whole + weight >= 2 * max(size, SMALL)
