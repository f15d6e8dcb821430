"""AsyncSqliteStore: documents in SQLite for programs that await.

1. A file is reached over connections of its own, one hop to a thread per batch.
2. A database in memory lives in the connection that was given; there a batch is awaited statement by statement.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from pregel import flow as runner
from pregel.checkpoint.flows import Many, Sql
from pregel.checkpoint.sqlite.database import Synchronous
from pregel.checkpoint.sqlite.saver import explained
from pregel.flow import Flow
from pregel.store import flows
from pregel.store.base import IndexConfig, Op, Result, TTLConfig
from pregel.store.base.batch import AsyncBatchedBaseStore
from pregel.store.expiring import AsyncExpiring
from pregel.store.sqlite.functions import BY_PYTHON, functions
from pregel.store.sqlite.store import ENGINE, SqliteStore, has_words, refuse_deserializer, tables, words
from pregel.store.vectors import aembedding

if TYPE_CHECKING:
    import aiosqlite

T = TypeVar("T")


class AsyncSqliteStore(AsyncExpiring, AsyncBatchedBaseStore):
    """Keeps documents in SQLite. Give an aiosqlite connection, or use `from_conn_string`, which needs none.

    See `SqliteStore` for the options, and `AsyncBatchedBaseStore` for calls from other threads. ``async with store:``
    stops its sweeper in the end.
    """

    supports_ttl: ClassVar[bool] = True

    def __init__(
        self,
        conn: aiosqlite.Connection,
        *,
        deserializer: None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        if not hasattr(conn, "execute_fetchall"):
            raise TypeError(
                f"AsyncSqliteStore takes an aiosqlite connection, got {type(conn).__name__}. "
                "For a path use `async with AsyncSqliteStore.from_conn_string(path) as store:`."
            )
        refuse_deserializer(deserializer)
        AsyncBatchedBaseStore.__init__(self)
        AsyncExpiring.__init__(self, ttl)
        self.conn: aiosqlite.Connection | None = conn
        self._file = SqliteStore.at(":memory:", index=index, ttl=ttl)  # until it is known which file that is
        self._ready = False
        self._turn = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str | os.PathLike[str],
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        busy_timeout: float = 30.0,
        synchronous: Synchronous = "FULL",
        clock: Callable[[], float] = time.time,
    ) -> AsyncIterator[Self]:
        """A store on a file (or ``:memory:``), with `SqliteStore`'s options, for an ``async with`` block."""
        with SqliteStore.from_conn_string(
            conn_string, index=index, ttl=ttl, busy_timeout=busy_timeout, synchronous=synchronous, clock=clock
        ) as file:
            store = cls.__new__(cls)
            AsyncBatchedBaseStore.__init__(store)
            AsyncExpiring.__init__(store, ttl)
            store.conn, store._file, store._ready = None, file, True
            try:
                yield store
            finally:
                await store.stop_ttl_sweeper()

    async def setup(self) -> None:
        """Make or migrate the tables now instead of on first use."""
        await self._open_once()
        if self.conn is None:
            await runner.on_thread(self._file.setup)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop_ttl_sweeper()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        await self._open_once()
        work = await runner.arun(self._file.work(ops), aembedding(self._file.index))
        if self.conn is None:
            return await runner.on_thread(self._file.perform, work)
        await self._whole(flows.write_flow(work, ENGINE))
        return work.results

    async def asweep_ttl(self) -> int:
        await self._open_once()
        if self.conn is None:
            return await runner.on_thread(self._file.sweep_ttl)
        return await self._whole(flows.sweep_flow(time.time(), cascades=False))

    # -- the connection that was given -------------------------------------------------------------------------------

    async def _open_once(self) -> None:
        """Find out what the connection leads to: a file is opened anew, one in memory gets its tables."""
        if self._ready:
            return
        async with self._turn:
            conn = self.conn
            if self._ready or conn is None:
                return
            databases = await conn.execute_fetchall("PRAGMA database_list")
            if path := next((row[2] for row in databases if row[1] == "main"), ""):
                self._file = SqliteStore.at(path, index=self._file.index_config, ttl=self.ttl_config)
                self.conn = None
            else:
                for name, parameters, function in functions():
                    await conn.create_function(name, parameters, function, deterministic=True)
                await self._transaction(
                    tables(words=has_words(self._file.index)), lambda statement: _rows(conn, *statement)
                )
            self._ready = True

    async def _whole(self, flow: Flow[T]) -> T:
        """Run a flow in one transaction; when the caller is cancelled it comes to its end all the same."""

        async def turn() -> T:
            async with self._turn:
                return await self._transaction(flow, self._say)

        return await asyncio.shield(asyncio.ensure_future(turn()))

    async def _transaction(self, flow: Flow[T], say: Callable[[Any], Any]) -> T:
        conn = self.conn
        assert conn is not None
        with explained():
            await conn.execute("BEGIN IMMEDIATE")
            try:
                result = await runner.arun(flow, say)
            except BaseException:
                await conn.rollback()
                raise
            await conn.commit()
            return result

    async def _say(self, request: Sql | Many) -> Any:
        assert self.conn is not None
        if isinstance(request, Many):
            for row in request.rows:
                await self.conn.execute(*words(request.name, row, self._file.index, BY_PYTHON))
            return None
        return await _rows(self.conn, *words(request.name, request.args, self._file.index, BY_PYTHON))


async def _rows(conn: aiosqlite.Connection, text: str, args: Any) -> list[Any]:
    return [tuple(row) for row in await conn.execute_fetchall(text, args)]
