"""AsyncPostgresStore: documents in PostgreSQL for programs that await.

It says what `PostgresStore` says, over awaiting connections.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Union

from psycopg import AsyncConnection

from pregel import flow as runner
from pregel.checkpoint.postgres import wire
from pregel.checkpoint.postgres.connections import Connections, Target
from pregel.checkpoint.postgres.connections_async import AsyncLine, AsyncOwn, AsyncSource, async_source_of
from pregel.checkpoint.postgres.saver import PATIENCE, POOL_SIZE, target_of
from pregel.flow import Flow
from pregel.store.base import IndexConfig, Op, Result, TTLConfig
from pregel.store.base.batch import AsyncBatchedBaseStore
from pregel.store.expiring import AsyncExpiring
from pregel.store.postgres import verbs
from pregel.store.postgres.approximate import Approximate, PostgresIndexConfig
from pregel.store.postgres.store import PoolConfig, refuse
from pregel.store.vectors import Index, aembedding, working

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

T = TypeVar("T")
Conn = Union[AsyncConnection[Any], "AsyncConnectionPool[Any]"]


class AsyncPostgresStore(AsyncExpiring, AsyncBatchedBaseStore):
    """Keeps documents in PostgreSQL. Give an awaiting psycopg connection or pool, or use `from_conn_string`.

    See `PostgresStore` for the options, and `AsyncBatchedBaseStore` for calls from other threads. ``async with store:``
    stops its sweeper in the end.
    """

    supports_ttl: ClassVar[bool] = True

    def __init__(
        self,
        conn: Conn,
        *,
        pipe: None = None,
        deserializer: None = None,
        index: PostgresIndexConfig | IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        refuse(pipe, deserializer)
        source, target = async_source_of(conn, type(self).__name__)
        self._set_up(source, target, POOL_SIZE, PATIENCE, index, ttl, time.time)

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        pool_config: PoolConfig | None = None,
        index: PostgresIndexConfig | IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.time,
    ) -> AsyncIterator[Self]:
        """A store on a database for an ``async with`` block, with `PostgresStore`'s options."""
        target, size = target_of(conn_string), (pool_config or {}).get("max_size") or POOL_SIZE
        store = cls.__new__(cls)
        store._set_up(AsyncOwn(target, size), target, size, patience, index, ttl, clock)
        try:
            yield store
        finally:
            await store.stop_ttl_sweeper()
            await store.aclose()

    def _set_up(
        self,
        source: AsyncSource,
        target: Target,
        size: int,
        patience: float,
        index: PostgresIndexConfig | IndexConfig | None,
        ttl: TTLConfig | None,
        clock: Callable[[], float],
    ) -> None:
        AsyncBatchedBaseStore.__init__(self)
        AsyncExpiring.__init__(self, ttl)
        self.connections: Connections[AsyncSource] = Connections(source, lambda: AsyncOwn(target, size), patience)
        self.index_config = index
        self.index = Index.of(index)
        self.near = Approximate.of(index, self.index)
        self._clock = clock
        self._ready = False

    async def setup(self) -> None:
        """Make or migrate the tables now instead of on first use."""
        with wire.explained():
            await self._drive(verbs.migrating(self.index, self.near))
        self._ready = True

    async def aclose(self) -> None:
        """Close the connections that this store made."""
        await self.connections.current().close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_ttl_sweeper()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        flow = working(self.index, ops, self._clock(), self.ttl_config)
        work = await runner.arun(flow, aembedding(self.index))
        return await self._do(verbs.batching(work, self.index, self.near))

    async def asweep_ttl(self) -> int:
        return await self._do(verbs.sweeping(self._clock()))

    # -- doing it ----------------------------------------------------------------------------------------------------

    async def _do(self, verb: Flow[T]) -> T:
        if not self._ready:
            with wire.explained():
                missing = await self._drive(verbs.missing_steps(self.index, self.near))
            if missing:
                await self.setup()
            self._ready = True
        with wire.explained():
            return await self._drive(verb)

    async def _drive(self, verb: Flow[T]) -> T:
        line = AsyncLine(self.connections)
        try:
            return await runner.arun(verb, line.perform)
        finally:
            await line.release()
