"""The saver that awaits: connections over event loops, blocking calls, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.errors import AsyncOnlyError, InvalidInputError
from tests.behaviour.journals import Run
from tests.behaviour.marks import chain
from tests.postgres import WAITING


def test_many_runs_share_a_few_awaiting_connections(dsn: str) -> None:
    async def scenario() -> set[int]:
        async with AsyncPostgresSaver.from_conn_string(dsn, pool_size=3) as saver:
            app = chain("x", "y").compile(checkpointer=saver)
            await asyncio.gather(*(app.ainvoke({"a": []}, {"configurable": {"thread_id": f"t{n}"}}) for n in range(30)))
            return {row.seq for row in await saver.athreads()}

    assert {4} == asyncio.run(scenario())


def test_an_awaiting_connection_or_pool_of_the_user_can_be_used(dsn: str, ask: Callable[..., list[Any]]) -> None:
    async def scenario() -> None:
        async with await psycopg.AsyncConnection.connect(dsn, row_factory=dict_row) as connection:
            saver = AsyncPostgresSaver(connection)
            app = chain("x", "y").compile(checkpointer=saver)
            await asyncio.gather(*(app.ainvoke({"a": []}, {"configurable": {"thread_id": f"t{n}"}}) for n in range(5)))
            ask("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)
            await app.ainvoke({"a": []}, {"configurable": {"thread_id": "t0"}})
            await saver.aclose()
        async with AsyncConnectionPool(dsn, min_size=1, max_size=2) as pool:
            saver = AsyncPostgresSaver(pool)
            app = chain("x", "y").compile(checkpointer=saver)
            await asyncio.gather(*(app.ainvoke({"a": []}, {"configurable": {"thread_id": f"p{n}"}}) for n in range(5)))
            assert 10 == len(await saver.athreads())
            await saver.aclose()

    asyncio.run(scenario())


def test_a_pool_of_another_loop_is_a_named_error(dsn: str) -> None:
    async def make() -> AsyncPostgresSaver:
        async with AsyncConnectionPool(dsn, min_size=1) as pool:
            saver = AsyncPostgresSaver(pool)
            await saver.athreads()
            return saver

    saver = asyncio.run(make())

    with pytest.raises(InvalidInputError, match="belongs to the event loop"):
        asyncio.run(athreads(saver))


async def athreads(saver: AsyncPostgresSaver) -> int:
    return len(await saver.athreads())


def test_a_blocking_call_in_the_middle_of_a_write_of_its_loop_is_a_named_error(dsn: str) -> None:
    async def scenario() -> None:
        async with AsyncPostgresSaver.from_conn_string(dsn) as saver:
            await saver.athreads()
            saver.threads()  # nothing is being written
            deleting = asyncio.ensure_future(saver.adelete_thread("t"))
            await asyncio.sleep(0)
            with pytest.raises(AsyncOnlyError, match="in the middle of a write"):
                saver.threads()
            await deleting
            saver.threads()

    asyncio.run(scenario())


def test_a_cancelled_verb_leaves_a_connection_that_can_be_used(dsn: str, ask: Callable[..., list[Any]]) -> None:
    async def scenario(holder: psycopg.Connection[Any]) -> int:
        async with AsyncPostgresSaver.from_conn_string(dsn, pool_size=1) as saver:
            deleting = asyncio.ensure_future(saver.adelete_thread("t"))
            while not ask(f"SELECT 1 {WAITING}"):
                await asyncio.sleep(0)
            deleting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await deleting
            holder.rollback()
            return len(await saver.athreads())

    with PostgresSaver.from_conn_string(dsn) as saver:
        Run(saver).save({"a": 1})
    with psycopg.connect(dsn) as holder:
        holder.execute("SELECT * FROM pregel_threads FOR UPDATE")

        assert 1 == asyncio.run(scenario(holder))
