"""AsyncBatchedBaseStore: a store whose awaited verbs of one moment are sent together, as one batch.

1. What is asked in one turn of the event loop goes out together. Equal reads are asked once.
2. Its reads see the state before its puts, as in any batch; of several puts to one key the last one counts.
3. When a batch is refused, each of its operations is sent alone: one that is wrong fails nobody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Literal, cast

from pregel.errors import AsyncOnlyError
from pregel.store.base.contract import BaseStore, listing
from pregel.store.base.items import Item, SearchItem
from pregel.store.base.ops import (
    NOT_PROVIDED,
    NamespacePath,
    NotProvided,
    Op,
    PutOp,
    Result,
    checked_key,
    checked_namespace,
)

Asked = tuple[Op, "asyncio.Future[Any]"]


class LoopBlockedError(AsyncOnlyError, asyncio.InvalidStateError):
    """A blocking call would stop the event loop that the store works on."""

    code = "LOOP_BLOCKED"
    fix = "Await the async method (aget, aput, asearch, ...)."


class AsyncBatchedBaseStore(BaseStore):
    """A store that defines `abatch`. It is made inside the event loop that it works on.

    Its blocking verbs work from other threads; on the loop's own they are an error.
    """

    def __init__(self) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise AsyncOnlyError(
                f"{type(self).__name__} is made inside a running event loop.", fix="Make it in an async function."
            ) from None
        self._asked: list[Asked] = []
        self._under_way: set[asyncio.Task[None]] = set()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            raise LoopBlockedError(f"{type(self).__name__} was called without await on its event loop's thread.")
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()

    # -- verbs -------------------------------------------------------------------------------------------------------

    async def aget(self, namespace: tuple[str, ...], key: str, *, refresh_ttl: bool | None = None) -> Item | None:
        return cast("Item | None", await self._ask(self._get(namespace, key, refresh_ttl)))

    async def asearch(
        self,
        namespace_prefix: tuple[str, ...],
        /,
        *,
        query: str | None = None,
        filter: dict[str, Any] | None = None,
        limit: int = 10,
        offset: int = 0,
        refresh_ttl: bool | None = None,
    ) -> list[SearchItem]:
        op = self._search(namespace_prefix, query, filter, limit, offset, refresh_ttl)
        return cast("list[SearchItem]", await self._ask(op))

    async def aput(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        index: Literal[False] | list[str] | None = None,
        *,
        ttl: float | NotProvided | None = NOT_PROVIDED,
    ) -> None:
        await self._ask(self._put(namespace, key, value, index, ttl))

    async def adelete(self, namespace: tuple[str, ...], key: str) -> None:
        await self._ask(PutOp(checked_namespace(namespace, written=True), checked_key(key), None))

    async def alist_namespaces(
        self,
        *,
        prefix: NamespacePath | None = None,
        suffix: NamespacePath | None = None,
        max_depth: int | None = None,
        limit: int = 100,
        offset: int = 0,
    ) -> list[tuple[str, ...]]:
        op = listing(prefix, suffix, max_depth, limit, offset)
        return cast("list[tuple[str, ...]]", await self._ask(op))

    # -- sending -----------------------------------------------------------------------------------------------------

    async def _ask(self, op: Op) -> Result:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            return (await self.abatch([op]))[0]
        future: asyncio.Future[Result] = loop.create_future()
        if not self._asked:
            loop.call_soon(self._send)
        self._asked.append((op, future))
        return await future

    def _send(self) -> None:
        asked, self._asked = self._asked, []
        wanted = [one for one in asked if not one[1].cancelled()]
        if wanted:
            task = self._loop.create_task(self._answer(wanted))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _answer(self, asked: list[Asked]) -> None:
        try:
            merged, places = _merged([op for op, _ in asked])
            results = await self.abatch(merged)
        except BaseException as error:
            if len(asked) == 1 or not isinstance(error, Exception):
                for _, future in asked:
                    if not future.done():
                        future.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                return
            for one in asked:
                await self._answer([one])
            return
        for (_, future), place in zip(asked, places, strict=True):
            if not future.done():
                future.set_result(results[place])


def _merged(ops: list[Op]) -> tuple[list[Op], list[int]]:
    """The operations without repeated reads, and where the result of each one is."""
    merged: list[Op] = []
    seen: dict[str, int] = {}
    places: list[int] = []
    for op in ops:
        name = _name(op)
        if name and name in seen:
            places.append(seen[name])
            continue
        seen[name] = len(merged)
        places.append(len(merged))
        merged.append(op)
    return merged, places


def _name(op: Op) -> str:
    """What equal reads have in common; nothing for a put, and for what is refused as too deep."""
    try:
        return "" if isinstance(op, PutOp) else f"{type(op).__name__}{op!r}"
    except RecursionError:
        return ""
