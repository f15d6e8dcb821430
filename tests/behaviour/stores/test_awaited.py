"""Stores that are awaited: what is asked together goes out together, and what blocks is told."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from pregel.errors import AsyncOnlyError, InvalidInputError
from pregel.store.base import GetOp, InvalidNamespaceError, Op, PutOp, Result
from pregel.store.base.batch import AsyncBatchedBaseStore
from pregel.store.memory import InMemoryStore
from pregel.store.postgres import AsyncPostgresStore
from pregel.store.sqlite import AsyncSqliteStore, SqliteStore


class Recording(AsyncBatchedBaseStore):
    """Notes its batches, and does them in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[list[Op]] = []
        self.memory = InMemoryStore()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        self.batches.append(list(ops))
        return await self.memory.abatch(self.batches[-1])


def test_what_is_asked_in_one_moment_goes_out_together() -> None:
    async def ask() -> None:
        store = Recording()
        await store.aput(("a",), "k", {"n": 1})
        found = await asyncio.gather(
            store.aget(("a",), "k"),
            store.aget(("a",), "k"),
            store.aput(("a",), "k", {"n": 2}),
            store.asearch(("a",)),
            store.aput(("a",), "k", {"n": 3}),
        )
        last = await store.aget(("a",), "k")

        assert [1, 4, 1] == [len(batch) for batch in store.batches]
        assert [{"n": 1}, {"n": 1}] == [getattr(item, "value", None) for item in found[:2]]
        assert [{"n": 1}] == [item.value for item in found[3]]
        assert {"n": 3} == getattr(last, "value", None)

    asyncio.run(ask())


def test_one_that_is_wrong_fails_nobody_elses() -> None:
    async def ask() -> None:
        store = Recording()
        found = await asyncio.gather(
            store.aput(("a",), "k", {"n": 1}),
            store.asearch(("a",), filter={"x": {"$in": []}}),
            store.aput(("a",), "l", {"n": 2}),
            return_exceptions=True,
        )

        assert [None, InvalidInputError, None] == [None if one is None else type(one) for one in found]
        assert ["k", "l"] == sorted(item.key for item in await store.asearch(("a",)))
        with pytest.raises(InvalidNamespaceError):
            await store.aget(("a.b",), "k")

    asyncio.run(ask())


def test_a_caller_that_was_cancelled_takes_nobody_along() -> None:
    async def ask() -> None:
        store = Recording()
        one = asyncio.ensure_future(store.aput(("a",), "k", {"n": 1}))
        other = asyncio.ensure_future(store.aput(("a",), "l", {"n": 2}))
        await asyncio.sleep(0)
        one.cancel()
        await other

        assert "l" in [item.key for item in await store.asearch(("a",))]

    asyncio.run(ask())


def test_a_blocking_call_on_the_loops_thread_is_an_error_and_works_elsewhere() -> None:
    async def ask() -> None:
        store = Recording()
        with pytest.raises(asyncio.InvalidStateError, match="Await the async method"):
            store.get(("a",), "k")
        await asyncio.to_thread(store.put, ("a",), "k", {"n": 1})

        assert await store.aget(("a",), "k") is not None

    asyncio.run(ask())


def test_an_awaited_store_is_made_inside_a_loop() -> None:
    with pytest.raises(AsyncOnlyError, match="running event loop"):
        Recording()


async def _use(store: Any) -> None:
    await store.aput(("a",), "k", {"n": (1, 2)}, ttl=5)
    await store.abatch([PutOp(("a",), "l", {}), GetOp(("a",), "k")])

    assert {"n": (1, 2)} == (await store.aget(("a",), "k")).value
    assert ["k"] == [item.key for item in await store.asearch(("a",), filter={"n": [1, 2]})]
    assert 0 == await store.asweep_ttl()
    assert [("a",)] == await store.alist_namespaces()


@pytest.mark.parametrize("where", ["memory", "file"])
def test_an_aiosqlite_connection_will_do(tmp_path: Path, where: str) -> None:
    async def ask() -> None:
        async with aiosqlite.connect(":memory:" if where == "memory" else tmp_path / "db") as connection:
            store = AsyncSqliteStore(connection, index={"dims": 2, "embed": lambda texts: [[1.0, 0.0] for _ in texts]})
            await store.setup()
            await _use(store)
            found = await store.asearch(("a",), query="x")
            assert [1.0, 1.0] == [item.score for item in found]

    asyncio.run(ask())
    assert where == "memory" or SqliteStore.at(tmp_path / "db").get(("a",), "k") is not None


def test_an_awaiting_connection_to_a_server_will_do(dsn: str) -> None:
    import psycopg

    async def ask() -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await _use(AsyncPostgresStore(connection))

    asyncio.run(ask())


def test_the_sweeper_runs_until_it_is_stopped(tmp_path: Path) -> None:
    async def ask() -> None:
        now = [0.0]
        path = tmp_path / "db"
        async with AsyncSqliteStore.from_conn_string(
            path, ttl={"sweep_interval_minutes": 1e-6}, clock=lambda: now[0]
        ) as store:
            await store.aput(("a",), "k", {}, ttl=1)
            now[0] = 100.0
            task = await store.start_ttl_sweeper()
            assert task is await store.start_ttl_sweeper()
            while _rows(path):
                await asyncio.sleep(0)
            assert await store.stop_ttl_sweeper()
            assert task.done()

    asyncio.run(ask())


def test_a_blocking_stores_sweeper_runs_until_it_is_stopped(tmp_path: Path) -> None:
    now = [0.0]
    path = tmp_path / "db"
    config: Any = {"sweep_interval_minutes": 1e-6}
    with SqliteStore.from_conn_string(path, ttl=config, clock=lambda: now[0]) as store:
        store.put(("a",), "k", {}, ttl=1)
        now[0] = 100.0
        future = store.start_ttl_sweeper()
        while _rows(path):
            pass
        assert store.stop_ttl_sweeper(10.0)
        assert future.done()
    with SqliteStore.from_conn_string(path) as plain:
        assert plain.start_ttl_sweeper().done()


def _rows(path: Path) -> int:
    import sqlite3

    connection = sqlite3.connect(path)
    try:
        return int(connection.execute("SELECT count(*) FROM pregel_store").fetchone()[0])
    finally:
        connection.close()
