"""The lists that a saver read last, so that a thread that is read again is read from there on.

1. In a thread no row of a channel is ever changed, and no place is used twice. What is kept was read for a checkpoint
   of the engine's: while that one is stored, the rows that came before it are what they were. A thread that was deleted
   and made anew, or a database that was set back, does not have that checkpoint.
2. A list stands in for its rows only where it stands on the whole value that the manifest names, so that a run stores
   the same on top of it. Where another branch went another way its rows tell, and what is missing is read.
3. What is kept is nobody else's: it was copied, and copies are handed out. A list of anything that is not copied
   (`checkpoint.copies`) is not kept.
4. No more than `largest` bytes (as stored) are kept; what was not read for longest goes first.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pregel.channels.growth import same_items
from pregel.checkpoint.chains import Wanted
from pregel.checkpoint.copies import Copies, NoCopyError
from pregel.checkpoint.logs import Tip

LARGEST = 16 << 20  # bytes in all
SMALLEST = 2048  # bytes of a list; a shorter one is read again


class KeptList(NamedTuple):
    """A list as it stood at one place of its log."""

    items: Copies
    at: int
    base: int
    size: int  # this and what follows as in a `Tip`
    whole: int
    weight: int
    rows: int

    def tip(self) -> Tip:
        """Where its log stands, with a list for whoever reads it."""
        return Tip(self.items.copy(), self.size, self.whole, self.weight, self.rows).placed(self.at, self.base)


Given = tuple[KeptList, list[Any]]
"""What stood in for rows, and the copy of it that was given."""


class Kept(NamedTuple):
    """The lists of one checkpoint, by channel."""

    checkpoint: bytes
    lists: Mapping[int, KeptList]

    def standing_in(self, wanted: Iterable[Wanted]) -> dict[Wanted, KeptList]:
        """Those that may stand in for a part of these values."""
        found: dict[Wanted, KeptList] = {}
        for one in wanted:
            channel, at, base = one
            kept = self.lists.get(channel)
            if kept is not None and kept.at <= at and kept.base == (at if base is None else base):
                found[one] = kept
        return found


class RecentLists:
    """What is kept, by thread and namespace. For any number of threads at once.

    `largest` bytes in all (0 keeps nothing), and no list of fewer than `smallest`, are numbers that may be set.
    """

    def __init__(self) -> None:
        self.largest, self.smallest = LARGEST, SMALLEST
        self.size = 0
        self._kept: OrderedDict[tuple[int, int], Kept] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, tno: int, ns: int) -> Kept | None:
        """What is kept of a namespace."""
        with self._lock:
            found = self._kept.get((tno, ns))
            if found is not None:
                self._kept.move_to_end((tno, ns))
            return found

    def drop(self, tno: int, ns: int) -> None:
        """Forget a namespace: its thread is another one now."""
        with self._lock:
            self._take(tno, ns)

    def keep(
        self,
        tno: int,
        ns: int,
        checkpoint: bytes,
        tips: Mapping[int, Tip],
        given: Mapping[int, Given],
    ) -> None:
        """Keep the lists of a checkpoint, unless those of a later one are kept; `given` is what they were made from."""
        before = self.find(tno, ns)
        if before is not None and (before.checkpoint > checkpoint or (before.checkpoint == checkpoint and given)):
            return
        lists: dict[int, KeptList] = {}
        for channel, tip in tips.items():
            if type(tip) is Tip and self.smallest <= tip.size <= self.largest:
                try:
                    items = _items(tip.last, given.get(channel))
                except NoCopyError:
                    continue
                lists[channel] = KeptList(items, tip.at, tip.base, tip.size, tip.whole, tip.weight, tip.rows)
        if lists or before is not None:
            self._put(tno, ns, Kept(checkpoint, lists))

    def _put(self, tno: int, ns: int, kept: Kept) -> None:
        with self._lock:
            self._take(tno, ns)
            self._kept[tno, ns] = kept
            self.size += _size(kept)
            while self.size > self.largest:
                self.size -= _size(self._kept.popitem(last=False)[1])

    def _take(self, tno: int, ns: int) -> None:
        if (found := self._kept.pop((tno, ns), None)) is not None:
            self.size -= _size(found)


def _items(value: list[Any], given: Given | None) -> Copies:
    """The list to be copied from; the start of it that is such a copy is kept already."""
    if given is not None:
        kept, handed = given
        if len(handed) <= len(value) and same_items(handed, value, len(handed)) == len(handed):
            return kept.items.and_then(value[len(handed) :])
    return Copies.of(value)


def _size(kept: Kept) -> int:
    return sum(one.size for one in kept.lists.values())
