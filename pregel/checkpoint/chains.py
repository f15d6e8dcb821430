"""The value rows of some checkpoints as they come from a store, and the values that they make.

1. A value row, or a cache, is a whole value. A delta row stands on the one that `prev` names, down to a whole value.
2. A manifest says where the nearest whole value of a delta is, so that one question brings the chain between them. When
   it is gone (caches may be deleted) or cannot be read, the next one below does as well: the delta that stands beside
   it names it.
3. Of overlapping stretches each row is asked for once.
4. Without caches the lists that were made stand in for them: read oldest first, a chain is walked once.
5. A list that was read before (`checkpoint.recent`) stands in for its row and all below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.channels.batches import Unfolded
from pregel.checkpoint.batches import BATCHES, FoldTip, Loads, unpacked
from pregel.checkpoint.logs import EDIT, FOLD, NAMED, NAMED_WHOLE, ROW, TAIL, Tip, edited
from pregel.checkpoint.serde.jsonplus import list_head
from pregel.errors import JournalDamaged

if TYPE_CHECKING:
    from pregel.checkpoint.recent import Given, KeptList

Address = tuple[int, int]
"""channel, at"""
Name = tuple[str, int, int]
"""What the type of a write says that it names, its channel, at"""
Wanted = tuple[int, int, int | None]
"""channel, at, and for a delta where the nearest whole value is"""
Span = tuple[int, int, int, int]
"""channel, first at, last at, 1 for deltas or 0 for whole values"""
Row = tuple[Any, ...]
LoadLists = Callable[[Sequence[bytes]], list[Any]]


class Delta(NamedTuple):
    """A delta row."""

    type: str
    blob: bytes
    prev: int | None
    base: int | None
    fold: int | None
    n: int | None


class CacheUnreadableError(Exception):
    """A cache that is no help: leave it out and ask for what is below it."""

    def __init__(self, address: Address) -> None:
        super().__init__(address)
        self.address = address


class Chains:
    """Rows by address."""

    __slots__ = (
        "_asked",
        "_caches",
        "_deltas",
        "_made",
        "_recent",
        "_sound",
        "_stood",
        "_unreadable",
        "_wholes",
        "given",
    )

    def __init__(self, *, caches: bool = True) -> None:
        self._caches = caches
        self._wholes: dict[Address, tuple[str, str, bytes]] = {}
        self._deltas: dict[Address, Delta] = {}
        self._made: dict[Address, Tip] = {}
        self._sound: set[Address] = set()  # somebody walks on below them
        self._stood: dict[Wanted, tuple[int, int]] = {}  # how far down the rows are known, and where the next whole is
        self._asked: set[Span] = set()
        self._unreadable: set[Address] = set()
        self._recent: dict[Address, KeptList] = {}
        self.given: dict[int, Given] = {}  # by channel

    def stand_in(self, channel: int, kept: KeptList) -> None:
        """Let a list stand in for what is below its place."""
        self._recent[channel, kept.at] = kept

    def add(self, rows: Iterable[Row]) -> None:
        """Take in rows of the statement `values`."""
        for channel, at, kind, form, blob, prev, base, fold, n in rows:
            if kind == "delta":
                self._deltas[channel, at] = Delta(form, blob, prev, base, fold, n)
            elif kind == "value" or (self._caches and (channel, at) not in self._unreadable):
                self._wholes[channel, at] = kind, form, blob

    def drop(self, address: Address) -> None:
        """Leave out a cache."""
        self._unreadable.add(address)
        del self._wholes[address]
        self._sound.clear()
        self._stood.clear()

    def missing(self, wanted: Iterable[Wanted]) -> list[Span]:
        """What must still be asked for, so that these can be read."""
        spans: set[Span] = set()
        for one in wanted:
            channel, first, base = one
            at, below = self._stood.get(one) or (first, first if base is None else base)
            while (
                (channel, at) not in self._wholes
                and (channel, at) not in self._sound
                and (channel, at) not in self._recent
            ):
                delta = self._deltas.get((channel, at))
                if delta is None or delta.prev is None:
                    spans.add((channel, below, below, 0))
                    if base is not None:
                        spans.add((channel, below, at, 1))
                    break
                self._sound.add((channel, at))
                if at <= below and delta.base is not None:
                    below = delta.base
                at = delta.prev
            self._stood[one] = at, below
        found = _merged(spans - self._asked)
        self._asked |= spans
        self._asked.update(found)
        return found

    def named(self, names: Iterable[Name]) -> list[Span]:
        """What must still be asked for, so that what these names say can be read."""
        spans = {
            (channel, at, at, int(name == NAMED))
            for name, channel, at in names
            if (channel, at) not in (self._deltas if name == NAMED else self._wholes)
        } - self._asked
        self._asked |= spans
        return sorted(spans)

    def written(self, name: str, channel: int, at: int) -> tuple[str, bytes]:
        """What a write that names the row at this address wrote, as it is stored."""
        if name == NAMED and (delta := self._deltas.get((channel, at))) is not None:
            return delta.type, delta.blob
        if name == NAMED_WHOLE and (whole := self._wholes.get((channel, at))) is not None:
            return whole[1].partition(FOLD)[0], whole[2]
        raise JournalDamaged(f"The row of channel {channel} at {at} is gone, and a write names it.")

    def value(self, channel: int, at: int, loads: Loads, lists: LoadLists | None = None) -> tuple[Any, Tip | None]:
        """The value at this address, and where its log stands if it has one. `lists` reads packed lists as one."""
        tip: Tip | None
        chain: list[Delta] = []
        cursor = at
        while (
            (kept := self._recent.get((channel, cursor))) is None
            and (whole := self._wholes.get((channel, cursor))) is None
            and (channel, cursor) not in self._made
        ):
            delta = self._deltas.get((channel, cursor))
            if delta is None or delta.prev is None or delta.prev >= cursor:
                raise JournalDamaged(f"The row of channel {channel} at {cursor} is gone.")
            chain.append(delta)
            cursor = delta.prev
        chain.reverse()
        if kept is not None:
            tip = kept.tip()
            self.given[channel] = kept, list(tip.last)
            tip = self._grown(tip, chain, channel, loads, lists)
            return tip.last, tip.placed(at, tip.base)
        if whole is None:
            tip = self._made[channel, at] = self._grown(self._made[channel, cursor], chain, channel, loads, lists)
            return tip.last, tip.placed(at, tip.base)
        kind, form, blob = whole
        form, _, fold = form.partition(FOLD)
        try:
            value = loads((form, blob))
        except Exception:
            if kind == "cache":
                raise CacheUnreadableError((channel, cursor)) from None
            raise
        tip = None
        if fold:
            tip = FoldTip(value, (form, blob), [(delta.type, delta.blob) for delta in chain], fold)
            if chain:
                unfolded = _unfolded(value, chain, fold, channel, loads)
                value, tip.last = unfolded, unfolded
        elif type(value) is list:
            tip = self._grown(Tip(value, len(blob), len(blob)), chain, channel, loads, lists)
            value = tip.last
            if not self._caches:
                self._made[channel, at] = tip
        elif kind == "cache":
            raise CacheUnreadableError((channel, cursor))
        elif chain:
            raise JournalDamaged(f"Deltas of channel {channel} stand on a value at {cursor} that is no list.")
        return value, None if tip is None else tip.placed(at, cursor)

    def _grown(self, tip: Tip, chain: Sequence[Delta], channel: int, loads: Loads, lists: LoadLists | None) -> Tip:
        """The tip after these deltas, of a list of its own where others may stand on this one."""
        value = tip.last if self._caches else list(tip.last)
        size = _fold_all(value, tip.size, chain, channel, loads, lists)
        weight = tip.weight + sum(len(delta.blob) + ROW for delta in chain)
        grown = Tip(value, size, tip.whole, weight, tip.rows + len(chain))
        grown.base = tip.base
        return grown


def _unfolded(root: Any, chain: Sequence[Delta], fold: str, channel: int, loads: Loads) -> Unfolded:
    """What the reducer has to fold."""
    if any(delta.fold != BATCHES for delta in chain):
        raise JournalDamaged(f"A delta of channel {channel} is not one for {fold!r}.")
    batches = [batch for delta in chain for batch in unpacked((delta.type, delta.blob), loads)]
    return Unfolded(root, batches, fold, chain[-1].n)


def _fold_all(
    value: list[Any], size: int, chain: Iterable[Delta], channel: int, loads: Loads, lists: LoadLists | None
) -> int:
    """Bring deltas into the list; the new size in bytes, about. Those that only add are read together."""
    length = len(value)
    together: list[bytes] = []
    for delta in chain:
        adds = lists is not None and delta.type == "msgpack" and delta.fold == TAIL and delta.n is not None
        if adds and (count := list_head(delta.blob)[0]) >= 0 and delta.n == length + count:
            together.append(delta.blob)
            length += count
            size += len(delta.blob)
            continue
        if together:
            value += lists(together)  # type: ignore[misc]  # only then is there anything
            together = []
        size = _fold(value, size, delta, channel, loads)
        length = len(value)
    if together:
        value += lists(together)  # type: ignore[misc]
    return size


def _fold(value: list[Any], size: int, delta: Delta, channel: int, loads: Loads) -> int:
    """Bring a delta into the list; the new size in bytes, about."""
    before = len(value)
    if delta.fold == EDIT:
        whole = edited(delta.blob, value, loads)
        if whole is None or len(whole) != delta.n:
            raise _unfit(delta, channel)
        value[:] = whole
        return size * min(delta.n, before) // max(before, 1) + len(delta.blob)
    tail: Any = loads((delta.type, delta.blob)) if delta.fold == TAIL else None
    kept = (delta.n or 0) - len(tail) if type(tail) is list else -1
    if not 0 <= kept <= before:
        raise _unfit(delta, channel)
    value[kept:] = tail
    return size * kept // max(before, 1) + len(delta.blob)


def _unfit(delta: Delta, channel: int) -> JournalDamaged:
    return JournalDamaged(f"A delta of channel {channel} does not fit what it stands on ({delta.prev}).")


def _merged(spans: Iterable[Span]) -> list[Span]:
    """Stretches that touch as one."""
    found: list[Span] = []
    for span in sorted(spans, key=_by_kind_and_place):
        channel, first, last, deltas = span
        if deltas and found and found[-1][0] == channel and found[-1][3] and first <= found[-1][2]:
            found[-1] = channel, found[-1][1], max(last, found[-1][2]), 1
        else:
            found.append(span)
    return found


def _by_kind_and_place(span: Sequence[int]) -> tuple[int, ...]:
    return span[3], span[0], span[1], span[2]
