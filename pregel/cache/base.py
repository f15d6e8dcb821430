"""The cache contract: values by (namespace, key), each for a time or for ever.

1. A key is found only under the namespace and the text that it was set with, part by part: nothing is joined, so no two
   addresses can meet.
2. What comes back equals what was set and is nobody else's object.
3. A cache may forget at any time, so an entry that is gone, lapsed or unreadable is a miss. `clear` never misses: it
   has removed everything it was asked to remove, or it raises.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from pregel.checkpoint.serde.base import (
    SerializerProtocol,
    UntypedSerializerProtocol,
    maybe_add_typed_methods,
)
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import InvalidInputError
from pregel.flow import on_thread

ValueT = TypeVar("ValueT")
Namespace = tuple[str, ...]
FullKey = tuple[Namespace, str]
Serde = SerializerProtocol | UntypedSerializerProtocol


class BaseCache(ABC, Generic[ValueT]):
    """A cache defines `get`, `set` and `clear`. The async twins hop to a thread unless it defines them as well."""

    serde: SerializerProtocol

    def __init__(self, *, serde: Serde | None = None) -> None:
        self.serde = JsonPlusSerializer() if serde is None else maybe_add_typed_methods(serde)

    @abstractmethod
    def get(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """The values of those keys that are there and have not lapsed."""

    @abstractmethod
    def set(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        """Keep each value for so many seconds; None: for ever. A later value replaces an earlier one."""

    @abstractmethod
    def clear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """Forget everything in exactly these namespaces, or everything there is."""

    async def aget(self, keys: Sequence[FullKey]) -> dict[FullKey, ValueT]:
        """`get`, awaited."""
        return await on_thread(self.get, keys)

    async def aset(self, pairs: Mapping[FullKey, tuple[ValueT, float | None]]) -> None:
        """`set`, awaited."""
        await on_thread(self.set, pairs)

    async def aclear(self, namespaces: Sequence[Namespace] | None = None) -> None:
        """`clear`, awaited."""
        await on_thread(self.clear, namespaces)


def checked_key(key: FullKey) -> FullKey:
    """The key as a (tuple of texts, text); InvalidInputError for anything else."""
    try:
        namespace, text = key
    except (TypeError, ValueError):
        namespace, text = (), None
    if not isinstance(text, str):
        raise InvalidInputError(f"{key!r} is no cache key.", fix='Give (("a", "namespace"), "key").')
    return checked_namespace(namespace), text


def checked_namespace(namespace: Sequence[str]) -> Namespace:
    """The namespace as a tuple of texts; InvalidInputError for anything else."""
    if isinstance(namespace, str) or not all(isinstance(part, str) for part in namespace):
        raise InvalidInputError(f"{namespace!r} is no namespace of a cache.", fix="Give a tuple of texts.")
    return tuple(namespace)


def checked_ttl(ttl: float | None) -> float | None:
    """Seconds to live, above 0; None is for ever. InvalidInputError for anything else."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float) or not ttl > 0:
        raise InvalidInputError(f"ttl is {ttl!r}.", fix="Give seconds above 0, or None for ever.")
    return ttl
