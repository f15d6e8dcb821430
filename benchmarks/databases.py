"""Savers on new databases, for any implementation, and the bare transactions that are their floor."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import cache
from importlib import import_module, util
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, NamedTuple

from benchmarks.graphs import THREADS
from benchmarks.measured import Bench, Missing

STEP_BYTES = 400
"""What a superstep of a trivial node stores, about: payload, without the database's own."""


class File(NamedTuple):
    """A saver on a file of its own, and how many bytes the file has."""

    saver: Any
    size: Callable[[], int]
    path: Path


@contextmanager
def sqlite(side: SimpleNamespace, synchronous: str = "NORMAL") -> Iterator[File]:
    """A SQLite saver on a new file. Missing when this implementation has none here."""
    if util.find_spec(f"{side.package}.checkpoint.sqlite") is None:
        raise Missing(f"{side.package} has no SQLite saver here.")
    with TemporaryDirectory() as directory:
        path = Path(directory) / "bench.db"
        connection = sqlite3.connect(path, check_same_thread=False)
        saver = import_module(f"{side.package}.checkpoint.sqlite").SqliteSaver(connection)
        saver.setup()
        connection.execute(f"PRAGMA synchronous={synchronous}")

        def size() -> int:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return path.stat().st_size

        yield File(saver, size, path)
        connection.close()


@contextmanager
def bare_sqlite(synchronous: str = "NORMAL") -> Iterator[sqlite3.Connection]:
    """A connection to a new file with one table of (thread, id, blob)."""
    with TemporaryDirectory() as directory:
        connection = sqlite3.connect(Path(directory) / "bare.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("CREATE TABLE steps (thread INTEGER, id INTEGER, blob BLOB, PRIMARY KEY (thread, id))")
        yield connection
        connection.close()


def commits(connection: sqlite3.Connection, count: int) -> Callable[[], Any]:
    """So many bare transactions that insert about as many bytes as a superstep stores."""
    blob = b"x" * STEP_BYTES

    def run() -> None:
        thread = next(THREADS)
        for number in range(count):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO steps VALUES (?, ?, ?)", (thread, number, blob))
            connection.execute("COMMIT")

    return run


# -- savers that are awaited ------------------------------------------------------------------------------------------


def awaiting(bench: Bench, opened: AbstractAsyncContextManager[Any]) -> tuple[asyncio.Runner, Any]:
    """An event loop, and a saver that is open in it until the measurement is over."""
    runner = bench.stack.enter_context(asyncio.Runner())
    saver = runner.run(entered(opened))
    bench.stack.callback(lambda: runner.run(left(opened)))
    return runner, saver


async def entered(opened: AbstractAsyncContextManager[Any]) -> Any:
    return await opened.__aenter__()


async def left(opened: AbstractAsyncContextManager[Any]) -> None:
    await opened.__aexit__(None, None, None)


@asynccontextmanager
async def asqlite(side: SimpleNamespace) -> AsyncIterator[Any]:
    """A SQLite saver for programs that await, on a new file, synchronous NORMAL. Missing when there is none here."""
    try:
        saver_type = import_module(f"{side.package}.checkpoint.sqlite.aio").AsyncSqliteSaver
    except ModuleNotFoundError as error:
        raise Missing(f"{side.package} has no awaited SQLite saver here: {error}") from error
    arguments = {"synchronous": "NORMAL"} if side.package == "pregel" else {}
    with TemporaryDirectory() as directory:
        async with saver_type.from_conn_string(str(Path(directory) / "bench.db"), **arguments) as saver:
            await saver.setup()
            if not arguments:
                await saver.conn.execute("PRAGMA synchronous=NORMAL")
            yield saver


# -- PostgreSQL -------------------------------------------------------------------------------------------------------


@cache
def _server() -> Any:
    """The server of the tests; it lives as long as this process."""
    from tests.postgres import MISSING, shared

    stack = ExitStack()
    try:
        server = stack.enter_context(shared(Path(stack.enter_context(TemporaryDirectory()))))
    except ModuleNotFoundError as error:
        raise Missing(str(error)) from error
    if server is None:
        raise Missing(MISSING)
    return stack, server


def postgres(bench: Bench) -> str:
    """The DSN of an empty database, dropped when the measurement is over. Missing when there is no server."""
    if util.find_spec("psycopg") is None:
        raise Missing("psycopg is not installed: pip install 'pregel[dev]'.")
    _, server = _server()
    dsn: str = bench.stack.enter_context(server.database(f"bench_{next(THREADS)}"))
    return dsn


def postgres_saver(bench: Bench, dsn: str) -> Any:
    """Our saver on a database."""
    from pregel.checkpoint.postgres import PostgresSaver

    return bench.stack.enter_context(PostgresSaver.from_conn_string(dsn))


def postgres_awaiting(bench: Bench, dsn: str) -> tuple[asyncio.Runner, Any]:
    """An event loop and our awaited saver on a database."""
    from pregel.checkpoint.postgres.aio import AsyncPostgresSaver

    return awaiting(bench, AsyncPostgresSaver.from_conn_string(dsn))


def bare_postgres(bench: Bench, dsn: str) -> Any:
    """A connection that commits each statement, in a database with one table of (thread, id, blob)."""
    import psycopg

    connection = bench.stack.enter_context(psycopg.connect(dsn, autocommit=True))
    connection.execute("CREATE TABLE steps (thread INTEGER, id INTEGER, blob BYTEA, PRIMARY KEY (thread, id))")
    return connection


def inserts(connection: Any, count: int) -> Callable[[], Any]:
    """So many inserts, each committed by itself: one round trip."""
    blob = b"x" * STEP_BYTES

    def run() -> None:
        thread = next(THREADS)
        for number in range(count):
            connection.execute("INSERT INTO steps VALUES (%s, %s, %s)", (thread, number, blob), prepare=True)

    return run
