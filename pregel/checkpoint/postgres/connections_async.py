"""Where an awaiting saver's connections come from: what `connections` does, awaited.

A connection of ours may serve several event loops one after the other; a pool of the user belongs to the loop that
first used it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.rows import tuple_row

from pregel.checkpoint.flows import Row
from pregel.checkpoint.postgres.columns import know
from pregel.checkpoint.postgres.connections import (
    Connections,
    Target,
    busy,
    check,
    gave_rows,
    is_async,
    next_pause,
    usable,
)
from pregel.checkpoint.postgres.wire import Anew, Ask
from pregel.errors import InvalidInputError

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

Given = AsyncConnection[Any]
Loop = asyncio.AbstractEventLoop


class AsyncSource(Protocol):
    """Gives connections out, and takes them back."""

    async def take(self, patience: float) -> Given: ...

    async def give(self, connection: Given) -> None: ...

    async def doubt(self) -> None:
        """A connection broke: those that lie idle may be as dead."""

    async def close(self) -> None: ...


class AsyncOwn:
    """Connections by DSN, made when they are needed, kept until `close`; so many in each event loop."""

    def __init__(self, target: Target, size: int) -> None:
        self.target, self.size = target, size
        self._rooms: WeakKeyDictionary[Loop, asyncio.Semaphore] = WeakKeyDictionary()
        self._idle: list[Given] = []

    async def take(self, patience: float) -> Given:
        room = self._room()
        try:
            if room.locked():
                await asyncio.wait_for(room.acquire(), patience)
            else:
                await room.acquire()
        except TimeoutError:
            raise busy(self.size, patience) from None
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
            return await AsyncConnection.connect(self.target.conninfo, autocommit=True, **self.target.options)
        except BaseException:
            room.release()
            raise

    def _room(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        room = self._rooms.get(loop)
        if room is None:
            room = self._rooms[loop] = asyncio.Semaphore(self.size)
        return room

    async def give(self, connection: Given) -> None:
        self._room().release()
        if usable(connection):
            self._idle.append(connection)
        else:
            await connection.close()

    async def doubt(self) -> None:
        await self.close()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    def __del__(self) -> None:
        while self._idle:  # there is no loop to wait in; the server notices
            self._idle.pop().pgconn.finish()


class AsyncOne:
    """A connection of the user; made anew by its DSN once it broke."""

    def __init__(self, connection: Given) -> None:
        self.target = Target.of(connection)
        self.connection = connection
        self.made = False  # by us
        self._turns: WeakKeyDictionary[Loop, asyncio.Lock] = WeakKeyDictionary()
        self._holder: Loop | None = None

    async def take(self, patience: float) -> Given:
        loop = asyncio.get_running_loop()
        turn = self._turns.setdefault(loop, asyncio.Lock())
        try:
            await asyncio.wait_for(turn.acquire(), patience)
        except TimeoutError:
            raise busy(1, patience) from None
        try:
            if self._holder not in (None, loop):
                raise InvalidInputError("Another event loop is using the connection.", fix="Give each loop its own.")
            self._holder = loop
            if self.connection.closed:
                self.connection = await AsyncConnection.connect(
                    self.target.conninfo, autocommit=True, **self.target.options
                )
                self.made = True
            check(self.connection)
            if not self.connection.autocommit:
                await self.connection.set_autocommit(True)
        except BaseException:
            self._leave()
            raise
        return self.connection

    async def give(self, connection: Given) -> None:
        if not usable(connection):
            await connection.close()
        self._leave()

    def _leave(self) -> None:
        loop = asyncio.get_running_loop()
        if self._holder is loop:
            self._holder = None
        self._turns[loop].release()

    async def doubt(self) -> None:
        pass

    async def close(self) -> None:
        if self.made:
            await self.connection.close()


class AsyncPooled:
    """A pool of the user."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self.pool = pool
        self.target = Target.of_pool(pool)
        self._loop: Loop | None = None
        self._manual: set[int] = set()  # those that were not in autocommit mode

    async def take(self, patience: float) -> Given:
        loop = asyncio.get_running_loop()
        self._loop = self._loop or loop
        if self._loop is not loop:
            raise InvalidInputError(
                "An AsyncConnectionPool belongs to the event loop that it was first used in.",
                fix="Make a pool and a saver in each event loop, or use AsyncPostgresSaver.from_conn_string.",
            )
        connection: Given = await self.pool.getconn(patience)
        try:
            check(connection)
            if not connection.autocommit:
                await connection.set_autocommit(True)
                self._manual.add(id(connection))
        except BaseException:
            await self.pool.putconn(connection)
            raise
        return connection

    async def give(self, connection: Given) -> None:
        if not usable(connection):
            await connection.close()
        if id(connection) in self._manual:
            self._manual.discard(id(connection))
            if not connection.closed:
                await connection.set_autocommit(False)
        await self.pool.putconn(connection)

    async def doubt(self) -> None:
        await self.pool.check()

    async def close(self) -> None:
        pass


def async_source_of(conn: object, owner: str) -> tuple[AsyncSource, Target]:
    """The source of a user's awaiting connection or pool, and where it leads; TypeError, in the `owner`'s name."""
    if isinstance(conn, AsyncConnection):
        one = AsyncOne(conn)
        check(conn)
        return one, one.target
    if hasattr(conn, "getconn") and is_async(conn):
        pooled = AsyncPooled(conn)  # type: ignore[arg-type]  # told by its shape: the pool's package may be missing
        return pooled, pooled.target
    raise TypeError(
        f"{owner} takes an AsyncConnection or AsyncConnectionPool, got {type(conn).__name__}. "
        f"For a DSN use `async with {owner}.from_conn_string(dsn) as ...:`."
    )


class AsyncLine:
    """One verb's way to the server: takes a connection when the verb first asks, and another one when it breaks."""

    def __init__(self, connections: Connections[AsyncSource]) -> None:
        self.connections = connections
        self.source = connections.current()
        self.connection: Given | None = None
        self.until = 0.0
        self.tries = 0

    async def perform(self, request: Ask | Anew) -> list[Row]:
        """Answer a request of `wire`."""
        if isinstance(request, Anew):
            await asyncio.sleep(await self._pause(request.error))
            return []
        connection = self.connection
        if connection is None:
            connection = self.connection = await self.source.take(self.connections.patience)
            know(connection)
        cursor = AsyncRawCursor(connection, row_factory=tuple_row)
        await cursor.execute(
            request.text, request.args, prepare=self.connections.prepare if request.alone else False, binary=True
        )
        self.connections.reached = True
        return await cursor.fetchall() if gave_rows(cursor.pgresult) else []

    async def _pause(self, error: BaseException) -> float:
        broke = self.connection is not None and self.connection.closed
        await self.release()
        if broke:
            await self.source.doubt()
        return next_pause(self, error)

    async def release(self) -> None:
        """Give the connection back."""
        if self.connection is not None:
            connection, self.connection = self.connection, None
            await self.source.give(connection)
