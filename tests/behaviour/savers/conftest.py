"""`saver`: the tests of savers run on every journal there is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiosqlite
import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.sqlite.aio import AsyncSqliteSaver
from tests.behaviour.awaited import Awaited, awaiting
from tests.behaviour.savers.loops import entered


@pytest.fixture(
    params=[
        *("memory", "sqlite", "aiosqlite", "postgres", "postgres-async"),
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("sqlite-memory", "aiosqlite-memory")),
    ]
)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JournalSaver]:
    """The saver. An async one is asked by its blocking verbs here, while its loop runs on another thread."""
    path = ":memory:"
    if request.param in ("sqlite", "aiosqlite"):
        path = request.getfixturevalue("prepared").copied(tmp_path)
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "postgres":
        request.getfixturevalue("dsn")
        with request.getfixturevalue("kept").saver() as made:
            yield made
    elif request.param == "postgres-async":
        with awaiting(request.getfixturevalue("dsn"), Awaited) as awaited:
            request.getfixturevalue("kept").alend(awaited)
            yield awaited
    elif request.param.startswith("aiosqlite"):
        with entered(over_a_connection(path)) as found:
            yield found
    else:
        with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as one:
            yield one


@asynccontextmanager
async def over_a_connection(path: str) -> AsyncIterator[JournalSaver]:
    async with aiosqlite.connect(path) as connection:
        yield AsyncSqliteSaver(connection)
