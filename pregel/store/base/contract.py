"""BaseStore: the store contract. `batch` and `abatch` do everything; the verbs are made from them.

1. All reads of a batch see the state from before its puts; of several puts to one key the last one counts.
2. A batch lands whole or not at all.
3. `created_at` is when a key was first put, `updated_at` when it was last put. Reading changes neither.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Literal, cast

from pregel.errors import InvalidInputError, NotBuiltError
from pregel.store.base.items import Item, SearchItem
from pregel.store.base.ops import (
    NOT_PROVIDED,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    NamespacePath,
    NotProvided,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    checked_key,
    checked_namespace,
)

Namespace = tuple[str, ...]
Index = Literal[False] | list[str] | None


class BaseStore(ABC):
    """A store defines `batch` and `abatch`. Names are tuples of labels; keys are texts (others are made one)."""

    supports_ttl: ClassVar[bool] = False
    """Whether items may have a time to live."""

    ttl_config: TTLConfig | None = None

    @abstractmethod
    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """A result for each operation, in order; None for a put."""

    @abstractmethod
    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """`batch`, awaited."""

    # -- verbs -------------------------------------------------------------------------------------------------------

    def get(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """The item, or None."""
        return cast("Item | None", self.batch([self._get(namespace, key, refresh_ttl)])[0])

    def search(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """The items under these labels that match the filter.

        Without a query in the store's order; with one the nearest first, then those that have no vector.

        A filter maps fields to values, nested as the document is. Instead of a value there may be operators: ``$eq
        $ne $gt $gte $lt $lte``. A missing field reads as None.
        """
        op = self._search(namespace_prefix, query, filter, limit, offset, refresh_ttl)
        return cast("list[SearchItem]", self.batch([op])[0])

    def put(
        self,
        namespace: Namespace,
        key: str,
        value: dict[str, Any],
        index: Index = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """Store a value, replacing the one under this key. `ttl` in minutes; None: for ever. See `PutOp`."""
        self.batch([self._put(namespace, key, value, index, ttl)])

    def delete(self, namespace: Namespace, key: str) -> None:
        """Remove an item; nothing happens when there is none."""
        self.batch([PutOp(checked_namespace(namespace, written=True), checked_key(key), None)])

    def list_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """The namespaces that hold items, sorted. See `ListNamespacesOp`."""
        return cast("list[Namespace]", self.batch([listing(prefix, suffix, max_depth, limit, offset)])[0])

    # -- the same, awaited -------------------------------------------------------------------------------------------

    async def aget(self, namespace: Namespace, key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        """`get`, awaited."""
        return cast("Item | None", (await self.abatch([self._get(namespace, key, refresh_ttl)]))[0])

    async def asearch(
        self,
        namespace_prefix: Namespace,
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        """`search`, awaited."""
        op = self._search(namespace_prefix, query, filter, limit, offset, refresh_ttl)
        return cast("list[SearchItem]", (await self.abatch([op]))[0])

    async def aput(
        self,
        namespace: Namespace,
        key: str,
        value: dict[str, Any],
        index: Index = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        """`put`, awaited."""
        await self.abatch([self._put(namespace, key, value, index, ttl)])

    async def adelete(self, namespace: Namespace, key: str) -> None:
        """`delete`, awaited."""
        await self.abatch([PutOp(checked_namespace(namespace, written=True), checked_key(key), None)])

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[Namespace]:
        """`list_namespaces`, awaited."""
        return cast("list[Namespace]", (await self.abatch([listing(prefix, suffix, max_depth, limit, offset)]))[0])

    # -- operations --------------------------------------------------------------------------------------------------

    def _refresh(self, refresh_ttl: bool | None) -> bool:
        if refresh_ttl is not None:
            return refresh_ttl
        return (self.ttl_config or {}).get("refresh_on_read", True)

    def _get(self, namespace: Namespace, key: str, refresh_ttl: bool | None) -> GetOp:
        return GetOp(checked_namespace(namespace), checked_key(key), self._refresh(refresh_ttl))

    def _search(
        self,
        prefix: Namespace,
        query: str | None,
        filter: dict[str, Any] | None,
        limit: int,
        offset: int,
        refresh_ttl: bool | None,
    ) -> SearchOp:
        return SearchOp(checked_namespace(prefix), filter, limit, offset, query, self._refresh(refresh_ttl))

    def _put(
        self, namespace: Namespace, key: str, value: dict[str, Any], index: Index, ttl: float | NotProvided | None
    ) -> PutOp:
        checked_namespace(namespace, written=True)
        if value is None:
            raise InvalidInputError("None is no value of an item.", fix="Call `delete` to remove an item.")
        if isinstance(ttl, NotProvided):
            ttl = (self.ttl_config or {}).get("default_ttl")
        elif ttl is not None and not self.supports_ttl:
            raise NotBuiltError(f"Items of {type(self).__name__} have no time to live.", fix="Leave `ttl` out.")
        return PutOp(tuple(namespace), checked_key(key), value, index, ttl)


def listing(
    prefix: NamespacePath | None, suffix: NamespacePath | None, max_depth: int | None, limit: int, offset: int
) -> ListNamespacesOp:
    conditions = []
    if prefix:
        conditions.append(MatchCondition("prefix", checked_namespace(prefix)))
    if suffix:
        conditions.append(MatchCondition("suffix", checked_namespace(suffix)))
    return ListNamespacesOp(tuple(conditions) or None, max_depth, limit, offset)
