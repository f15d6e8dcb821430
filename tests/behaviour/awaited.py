"""The async saver on PostgreSQL, outside of an event loop and used in one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.checkpoint.records import Append, Load, Opened, Page, Receipt, Saved, ThreadRow
from pregel.flow import Flow

T = TypeVar("T")


class Awaited(AsyncPostgresSaver):
    """Its blocking verbs await the others, each in an event loop of its own: the laws of savers, awaited."""

    def append(self, append: Append) -> Receipt:
        return asyncio.run(self.aappend(append))

    def read(self, flow: Flow[T]) -> T:
        return asyncio.run(self.aread(flow))

    def write(self, flow: Flow[T]) -> T:
        return asyncio.run(self.awrite(flow))

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        return asyncio.run(self.aload(thread, loads, names))

    def page(self, thread: str | None, page: Page) -> list[tuple[str, Saved]]:
        return list(asyncio.run(self.apage(thread, page)))

    def intern(self, texts: Iterable[str]) -> None:
        asyncio.run(self.aintern(texts))

    def threads(self, **wanted: Any) -> list[ThreadRow]:
        return list(asyncio.run(self.athreads(**wanted)))


@contextmanager
def awaiting(dsn: str, kind: type[AsyncPostgresSaver] = AsyncPostgresSaver) -> Iterator[AsyncPostgresSaver]:
    """An async saver for a `with` block."""

    async def make() -> AsyncPostgresSaver:
        return kind.at(dsn)

    saver = asyncio.run(make())
    try:
        yield saver
    finally:
        asyncio.run(saver.aclose())
