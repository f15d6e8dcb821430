"""The shipped laws on every store of ours."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from pregel.store.conformance import HybridLaws, IndexLaws, StoreLaws
from pregel.store.memory import InMemoryStore
from pregel.store.sqlite import AsyncSqliteStore, SqliteStore
from pregel.store.sqlite.functions import BY_PYTHON


@contextmanager
def sqlite_file(kind: type[SqliteStore] = SqliteStore, **options: Any) -> Iterator[Any]:
    with (
        tempfile.TemporaryDirectory() as place,
        kind.from_conn_string(Path(place, "store.db"), synchronous="NORMAL", **options) as store,
    ):
        yield store


@asynccontextmanager
async def awaited_file(**options: Any) -> AsyncIterator[Any]:
    with tempfile.TemporaryDirectory() as place:
        async with AsyncSqliteStore.from_conn_string(Path(place, "store.db"), synchronous="NORMAL", **options) as store:
            yield store


class Clock:
    """Unix seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Timed:
    clock: Clock

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds


class Plain(Timed, StoreLaws):
    def setup_method(self) -> None:
        self.clock = Clock()
        super().setup_method()


class Indexed(Timed, IndexLaws):
    def prepare(self) -> None:
        self.clock = Clock()
        super().prepare()


class Hybrid(Timed, HybridLaws):
    def prepare(self) -> None:
        self.clock = Clock()
        super().prepare()


class TestMemory(Plain):
    newest_first = False

    def open(self) -> Any:
        return nullcontext(InMemoryStore(ttl=self.ttl, clock=self.clock))


class TestMemoryAwaited(TestMemory):
    awaited = True


class TestMemoryIndex(Indexed):
    def open(self) -> Any:
        return nullcontext(InMemoryStore(index=self.index, ttl=self.ttl, clock=self.clock))


class TestMemoryIndexAwaited(TestMemoryIndex):
    awaited = True


class TestSqlite(Plain):
    def open(self) -> Any:
        return sqlite_file(ttl=self.ttl, clock=self.clock)


class TestSqliteAwaited(TestSqlite):
    awaited = True


class TestSqliteInMemory(Plain):
    examples = 15

    def open(self) -> Any:
        return SqliteStore.from_conn_string(":memory:", ttl=self.ttl, clock=self.clock)


class TestAsyncSqlite(Plain):
    awaited = True
    examples = 15

    def open(self) -> Any:
        return awaited_file(ttl=self.ttl, clock=self.clock)


class TestSqliteIndex(Indexed):
    def open(self) -> Any:
        return sqlite_file(index=self.index, ttl=self.ttl, clock=self.clock)


class WithoutExtension(SqliteStore):
    """As on a Python that cannot load extensions."""

    def _opened(self, connection: Any) -> None:
        super()._opened(connection)
        self.scores = BY_PYTHON


class TestSqliteIndexWithoutExtension(Indexed):
    def open(self) -> Any:
        return sqlite_file(WithoutExtension, index=self.index, ttl=self.ttl, clock=self.clock)


class TestAsyncSqliteIndex(Indexed):
    awaited = True

    def open(self) -> Any:
        return awaited_file(index=self.index, ttl=self.ttl, clock=self.clock)


class TestMemoryHybrid(Hybrid):
    def open(self) -> Any:
        return nullcontext(InMemoryStore(index=self.index, ttl=self.ttl, clock=self.clock))


class TestSqliteHybrid(Hybrid):
    def open(self) -> Any:
        return sqlite_file(index=self.index, ttl=self.ttl, clock=self.clock)


class TestAsyncSqliteHybrid(Hybrid):
    awaited = True

    def open(self) -> Any:
        return awaited_file(index=self.index, ttl=self.ttl, clock=self.clock)
