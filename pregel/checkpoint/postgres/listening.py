"""LISTEN: the server's word that a thread has new chunks, on a connection of its own.

1. It only saves looks: a notification that gets lost costs the follower a second.
2. A transaction pooler gives no session to listen on. It is told by the process that answers, which is not the one that
   greeted us; there, and where no connection can be made, followers look more often instead.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from pregel.checkpoint.news import SPOKEN, AsyncNews, AsyncPauses, News, Pauses
from pregel.checkpoint.postgres.connections import Target
from pregel.owned import Owned

WHO = "SELECT pg_backend_pid()"
LISTEN = "LISTEN pregel_chunks"


class Listening:
    """Hears of new chunks."""

    longest = SPOKEN

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def wait(self, tno: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                for heard in self.connection.notifies(timeout=left, stop_after=1):
                    if heard.payload == str(tno):
                        return
        except psycopg.OperationalError:  # it was cut: look, and go on without
            time.sleep(min(Pauses.longest, max(0.0, until - time.monotonic())))


class AsyncListening:
    """The same, awaited."""

    longest = SPOKEN

    def __init__(self, connection: psycopg.AsyncConnection[Any]) -> None:
        self.connection = connection

    async def wait(self, tno: int, seconds: float) -> None:
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                async with Owned(self.connection.notifies(timeout=left, stop_after=1)) as every:
                    async for heard in every:
                        if heard.payload == str(tno):
                            return
        except psycopg.OperationalError:
            await asyncio.sleep(min(AsyncPauses.longest, max(0.0, until - time.monotonic())))


@contextmanager
def listening(target: Target, pooled: bool) -> Iterator[News]:
    """What hears of new chunks, or pauses where nothing can be heard."""
    connection = None
    try:
        try:
            if not pooled:
                connection = psycopg.connect(target.conninfo, autocommit=True, **target.options)
                pooled = _is_another(connection, connection.execute(WHO).fetchone())
                connection.execute(LISTEN)
        except psycopg.OperationalError:
            pooled = True
        yield Pauses() if pooled or connection is None else Listening(connection)
    finally:
        if connection is not None:
            connection.close()


class AwaitedListening:
    """The same, awaited. No generator: the end of an event loop would close it under the one that follows."""

    def __init__(self, target: Target, pooled: bool) -> None:
        self.target = target
        self.pooled = pooled
        self.connection: psycopg.AsyncConnection[Any] | None = None

    async def __aenter__(self) -> AsyncNews:
        try:
            heard = None if self.pooled else await self._connected()
        except psycopg.OperationalError:
            heard = None
        except BaseException:
            await self._close()
            raise
        return AsyncPauses() if heard is None else AsyncListening(heard)

    async def _connected(self) -> psycopg.AsyncConnection[Any] | None:
        target = self.target
        opened = await psycopg.AsyncConnection.connect(target.conninfo, autocommit=True, **target.options)
        self.connection = opened
        pooled = _is_another(opened, await (await opened.execute(WHO)).fetchone())
        await opened.execute(LISTEN)
        return None if pooled else opened

    async def __aexit__(self, *error: object) -> None:
        await self._close()

    async def _close(self) -> None:
        if self.connection is not None:
            await self.connection.close()


def _is_another(connection: psycopg.BaseConnection[Any], answer: Any) -> bool:
    """Whether another process answers than the one that greeted us."""
    return bool(answer[0] != connection.info.backend_pid)
