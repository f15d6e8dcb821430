"""AsyncSqliteSaver: the journal in SQLite for programs that await.

1. A file is reached over connections of its own, one hop to a thread per verb: aiosqlite would take one per statement.
   Appends of runs that go on at once share a transaction.
2. A database in memory lives in the connection that was given; there a verb is awaited statement by statement.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

from pregel import flow as runner
from pregel.checkpoint.async_journal import AsyncJournalSaver
from pregel.checkpoint.flows import Atomic, Many, Row, Sql, append_flow
from pregel.checkpoint.lease import LEASE
from pregel.checkpoint.records import Append, Hold, Receipt, Saved
from pregel.checkpoint.sqlite.database import Synchronous
from pregel.checkpoint.sqlite.saver import STATEMENTS, Serde, SqliteSaver, clock, explained, placed, tables
from pregel.checkpoint.together import Together, on_executor
from pregel.errors import InvalidInputError
from pregel.flow import Flow

if TYPE_CHECKING:
    import aiosqlite

T = TypeVar("T")


class AsyncSqliteSaver(AsyncJournalSaver):
    """Keeps threads in SQLite. Give an aiosqlite connection, or use `from_conn_string`, which needs none.

    Blocking calls on a file work from every thread. For a database in memory see `AsyncJournalSaver`.
    """

    def __init__(self, conn: aiosqlite.Connection, *, serde: Serde | None = None, lease: float = LEASE) -> None:
        if not hasattr(conn, "execute_fetchall"):
            raise TypeError(
                f"AsyncSqliteSaver takes an aiosqlite connection, got {type(conn).__name__}. "
                "For a path use `async with AsyncSqliteSaver.from_conn_string(path) as saver:`."
            )
        super().__init__(serde=serde, lease=lease)
        self.conn: aiosqlite.Connection | None = conn
        self._file: SqliteSaver | None = None
        self._ready = False
        self._together: Together[Append, Receipt]  # as soon as there is a file
        self._turn = asyncio.Lock()
        self._under_way: set[asyncio.Future[Any]] = set()  # transactions whose callers may be gone

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str | os.PathLike[str],
        *,
        serde: Serde | None = None,
        busy_timeout: float = 30.0,
        synchronous: Synchronous = "FULL",
        lease: float = LEASE,
    ) -> AsyncIterator[Self]:
        """A saver on a file (or ``:memory:``), with `SqliteSaver`'s options, for an ``async with`` block."""
        with SqliteSaver.from_conn_string(conn_string, busy_timeout=busy_timeout, synchronous=synchronous) as file:
            saver = cls.__new__(cls)
            AsyncJournalSaver.__init__(saver, serde=serde, lease=lease)
            saver.conn, saver._file, saver._ready = None, file, True
            saver._together = Together(on_executor(file.append_all))
            yield saver

    async def setup(self) -> None:
        """Make or migrate the tables now instead of on first use."""
        file = await self._opened()
        if file is not None:
            await runner.on_thread(file.setup)

    # -- the store ---------------------------------------------------------------------------------------------------

    async def aread(self, flow: Flow[T]) -> T:
        file = await self._opened()
        if file is not None:
            return await runner.on_thread(file.read, flow)
        return await self._whole(self._run(flow, "BEGIN"))

    async def awrite(self, flow: Flow[T]) -> T:
        file = await self._opened()
        if file is not None:
            return await runner.on_thread(file.write, flow)
        return await self._whole(self._run(flow, "BEGIN IMMEDIATE"))

    async def aappend(self, append: Append) -> Receipt:
        file = await self._opened()
        if file is not None:
            return await self._together.ask(append)
        return await self._whole(runner.arun(append_flow(append, clock()), self._perform_append))

    async def _perform_append(self, request: Atomic | Sql) -> list[Row]:
        async with self._transaction("BEGIN IMMEDIATE") as conn:
            if isinstance(request, Sql):
                return await _perform(conn, request)  # type: ignore[no-any-return]
            guard = STATEMENTS[request.head.name]
            cursor = await conn.execute(guard.text, guard.ordered(request.head.args))
            if cursor.rowcount != 1:
                return []
            rows: list[Row] = await _perform(conn, Sql("standing_row", (request.thread,)))
            for many in request.rest:
                await _perform(conn, Many(many.name, [(rows[0][0], *row) for row in many.rows]))
            return rows

    def look(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        if self._file is None:
            return super().look(thread, ns, checkpoint)
        return self._file.look_with(self._decoder(), thread, ns, checkpoint)

    async def alook(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        file = await self._opened()
        if file is None:
            return await super().alook(thread, ns, checkpoint)
        return await runner.on_thread(file.look_with, self._decoder(), thread, ns, checkpoint)

    def read(self, flow: Flow[T]) -> T:
        return self._file.read(flow) if self._file is not None else super().read(flow)

    def write(self, flow: Flow[T]) -> T:
        return self._file.write(flow) if self._file is not None else super().write(flow)

    def renew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        return self._file.renew(holds, keep=keep) if self._file is not None else super().renew(holds, keep=keep)

    async def arenew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        file = await self._opened()
        if file is not None:
            return await runner.on_thread(lambda: file.renew(holds, keep=keep))
        return await super().arenew(holds, keep=keep)

    def append(self, append: Append) -> Receipt:
        return self._file.append(append) if self._file is not None else super().append(append)

    # -- the connection that was given -------------------------------------------------------------------------------

    async def _opened(self) -> SqliteSaver | None:
        """The saver on the file; None for a database in memory, whose tables are there then."""
        if not self._ready:
            await self._whole(self._open_once())
        return self._file

    async def _open_once(self) -> None:
        async with self._turn:
            if not self._ready:
                await self._open()

    async def _open(self) -> None:
        conn = self.conn
        assert conn is not None
        if conn.in_transaction:
            raise InvalidInputError(
                "The connection is inside a transaction.", fix="Commit it, or give a new connection."
            )
        databases = await conn.execute_fetchall("PRAGMA database_list")
        if path := next((row[2] for row in databases if row[1] == "main"), ""):
            self._file = SqliteSaver.at(path)
            self._together = Together(on_executor(self._file.append_all))
        else:
            async with self._begun("BEGIN IMMEDIATE"):
                await runner.arun(tables(), lambda statement: _rows(conn, statement))
        self._ready = True

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a transaction; when the caller is cancelled it comes to its end all the same."""
        task = asyncio.ensure_future(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await asyncio.shield(task)

    async def _run(self, flow: Flow[T], begin: str) -> T:
        async with self._transaction(begin) as conn:
            return await runner.arun(flow, lambda request: _perform(conn, request))

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[aiosqlite.Connection]:
        async with self._turn, self._begun(begin) as conn:
            yield conn

    @asynccontextmanager
    async def _begun(self, begin: str) -> AsyncIterator[aiosqlite.Connection]:
        conn = self.conn
        assert conn is not None
        with explained():
            await conn.execute(begin)
            try:
                yield conn
            except BaseException:
                await conn.rollback()
                raise
            await conn.commit()


async def _perform(conn: aiosqlite.Connection, request: Sql | Many) -> Any:
    statement = STATEMENTS[request.name]
    if isinstance(request, Many):
        await conn.executemany(statement.text, [statement.ordered(row) for row in request.rows])
        return None
    return await _rows(conn, placed(request))


async def _rows(conn: aiosqlite.Connection, statement: tuple[str, Sequence[Any]]) -> list[Row]:
    return [tuple(row) for row in await conn.execute_fetchall(*statement)]
