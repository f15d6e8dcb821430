"""The shipped laws on every cache of ours."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import redis

from pregel.cache.conformance import CacheLaws
from pregel.cache.memory import InMemoryCache
from pregel.cache.redis import RedisCache
from pregel.cache.sqlite import SqliteCache


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def sqlite_file(clock: Callable[[], float]) -> Iterator[Any]:
    with (
        tempfile.TemporaryDirectory() as place,
        SqliteCache[Any](path=Path(place, "cache.db"), clock=clock) as cache,
    ):
        yield cache


class Timed(CacheLaws):
    def setup_method(self) -> None:
        self.clock = Clock()
        super().setup_method()

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds


class TestMemory(Timed):
    def open(self) -> Any:
        return nullcontext(InMemoryCache[Any](clock=self.clock))


class TestMemoryAwaited(TestMemory):
    awaited = True


class TestSqliteFile(Timed):
    def open(self) -> Any:
        return sqlite_file(self.clock)


class TestSqliteFileAwaited(TestSqliteFile):
    awaited = True


class TestSqliteMemory(Timed):
    def open(self) -> Any:
        return SqliteCache[Any](path=":memory:", clock=self.clock)


class TestRedis(CacheLaws):
    ttl = 0.02
    url = ""

    @pytest.fixture(autouse=True)
    def opened(self, redis_url: str) -> Iterator[None]:
        self.url = redis_url
        super().setup_method()
        yield
        super().teardown_method()

    def setup_method(self) -> None:
        """Too early: there is no server yet."""

    def teardown_method(self) -> None:
        """Done by the fixture."""

    @contextmanager
    def open(self) -> Iterator[Any]:
        with redis.Redis.from_url(self.url) as client:
            client.flushdb()
            yield RedisCache[Any](client)

    def pass_time(self, seconds: float) -> None:
        self.cache.saver.redis.blpop("nothing", timeout=seconds)  # the server waits


class TestRedisAwaited(TestRedis):
    awaited = True
