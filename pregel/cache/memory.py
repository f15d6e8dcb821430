"""InMemoryCache: a bounded cache in this process."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from pregel.cache.base import FullKey, Namespace, Serde, ValueT
from pregel.cache.encoded import Encoded, EncodedCache, Entry
from pregel.errors import InvalidInputError

MAX_BYTES = 256 << 20


class InMemoryCache(EncodedCache[ValueT]):
    """Keeps encoded values, at most `max_entries` of them and `max_bytes` in sum; the least recently used go first.

    `clock` gives seconds that never go back.
    """

    def __init__(
        self,
        *,
        serde: Serde | None = None,
        max_entries: int = 100_000,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(serde=serde)
        if max_entries < 1 or max_bytes < 1:
            raise InvalidInputError(
                f"max_entries is {max_entries} and max_bytes {max_bytes}.", fix="Give numbers above 0."
            )
        self.max_entries, self.max_bytes = max_entries, max_bytes
        self._clock = clock
        self._lock = Lock()
        self._kept: OrderedDict[FullKey, tuple[Encoded, float | None]] = OrderedDict()  # the last used is the last
        self._bytes = 0
        self._kept_since = 0  # entries that were kept since lapsed ones were looked for

    def __len__(self) -> int:
        return len(self._kept)

    def load(self, keys: Sequence[FullKey]) -> Mapping[FullKey, Encoded]:
        found: dict[FullKey, Encoded] = {}
        with self._lock:
            now = self._clock()
            for key in keys:
                kept = self._kept.get(key)
                if kept is None:
                    continue
                encoded, expires = kept
                if expires is not None and expires <= now:
                    self._forget(key)
                else:
                    self._kept.move_to_end(key)
                    found[key] = encoded
        return found

    def keep(self, entries: Sequence[Entry]) -> None:
        with self._lock:
            now = self._clock()
            for key, encoded, ttl in entries:
                self._forget(key)
                if len(encoded[1]) <= self.max_bytes:
                    self._kept[key] = encoded, None if ttl is None else now + ttl
                    self._bytes += len(encoded[1])
            self._kept_since += len(entries)
            if self._is_full():
                self._make_room(now)

    def drop(self, namespaces: Sequence[Namespace] | None) -> None:
        with self._lock:
            gone = set(namespaces or ())
            for key in [key for key in self._kept if namespaces is None or key[0] in gone]:
                self._forget(key)

    def _forget(self, key: FullKey) -> None:
        if (kept := self._kept.pop(key, None)) is not None:
            self._bytes -= len(kept[0][1])

    def _is_full(self) -> bool:
        return len(self._kept) > self.max_entries or self._bytes > self.max_bytes

    def _make_room(self, now: float) -> None:
        """Drop what has lapsed, once in as many entries as there are; then what was used longest ago."""
        if self._kept_since >= len(self._kept):
            self._kept_since = 0
            for key in [key for key, (_, expires) in self._kept.items() if expires is not None and expires <= now]:
                self._forget(key)
        while self._is_full():
            self._forget(next(iter(self._kept)))

    # Nothing here waits, so the twins need no thread.

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        return self.get(keys)

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        self.set(pairs)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        self.clear(namespaces)
