"""A cache that keeps bytes: what encodes and decodes values, in front of a place that keeps (type, bytes) by key.

A place that cannot be reached costs time, never a run: what was to be read is missing, what was to be kept is not, and
the log says so. Only `clear` raises, since what it leaves behind would be found later.
"""

from __future__ import annotations

import logging
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pregel.cache.base import BaseCache, FullKey, Namespace, ValueT, checked_key, checked_namespace, checked_ttl
from pregel.errors import StoreError, told

log = logging.getLogger("pregel.cache")
log.addHandler(logging.NullHandler())

Encoded = tuple[str, bytes]


class Entry(NamedTuple):
    """A value to be kept for `ttl` seconds; None: for ever."""

    key: FullKey
    encoded: Encoded
    ttl: float | None


class EncodedCache(BaseCache[ValueT]):
    """A cache over a place that defines `load`, `keep` and `drop`; StoreError when it cannot be reached."""

    @abstractmethod
    def load(self, keys: Sequence[FullKey]) -> Mapping[FullKey, Encoded]:
        """What is kept under these keys and has not lapsed."""

    @abstractmethod
    def keep(self, entries: Sequence[Entry]) -> None:
        """Keep these, all of them or none."""

    @abstractmethod
    def drop(self, namespaces: Sequence[Namespace] | None) -> None:
        """Forget these namespaces; None: everything."""

    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        wanted = [checked_key(key) for key in keys]
        found: dict[FullKey, ValueT] = {}
        for key, encoded in self._loaded(wanted).items():
            try:
                found[key] = self.serde.loads_typed(encoded)
            except Exception as error:  # written by another version, with other classes or with another secret
                log.warning("A cached value of %s cannot be read and counts as missing: %s", key, told(error))
        return found

    def set(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        entries = [
            Entry(checked_key(key), self.serde.dumps_typed(value), _for_ever(checked_ttl(ttl)))
            for key, (value, ttl) in pairs.items()
        ]
        try:
            self.keep(entries)
        except StoreError as error:
            log.warning("Nothing could be kept in the cache: %s", error)

    def _loaded(self, keys: Sequence[FullKey]) -> Mapping[FullKey, Encoded]:
        try:
            return self.load(keys)
        except StoreError as error:
            log.warning("The cache could not be read, everything counts as missing: %s", error)
            return {}

    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        self.drop(None if namespaces is None else [checked_namespace(namespace) for namespace in namespaces])


def _for_ever(ttl: float | None) -> float | None:
    return None if ttl is None or math.isinf(ttl) else ttl
