"""Caches that other processes see: what is shared, and what happens while the place is away."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.backoff import NoBackoff
from redis.retry import Retry

from pregel.cache.redis import RedisCache
from pregel.cache.sqlite import SqliteCache
from pregel.errors import InvalidInputError, StoreError

KEY = (("ns",), "k")


def test_a_file_is_shared(tmp_path: Path) -> None:
    with SqliteCache[int](path=tmp_path / "db") as one, SqliteCache[int](path=tmp_path / "db") as other:
        one.set({KEY: (1, None)})

        assert {KEY: 1} == other.get([KEY])


def test_lapsed_entries_leave_the_file(tmp_path: Path) -> None:
    now = [0.0]
    with SqliteCache[int](path=tmp_path / "db", clock=lambda: now[0]) as cache:
        cache.set({KEY: (1, 10)})
        now[0] = 20.0
        cache.set({(("ns",), "l"): (2, None)})

        with sqlite3.connect(tmp_path / "db") as connection:
            assert [(1,)] == connection.execute("SELECT count(*) FROM pregel_cache_1").fetchall()
        connection.close()


def test_a_file_that_is_away_is_a_miss_and_logged_but_clear_raises(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = SqliteCache[int](path=tmp_path / "missing" / "db")

    with caplog.at_level(logging.WARNING, logger="pregel.cache"):
        cache.set({KEY: (1, None)})
        assert cache.get([KEY]) == {}
    assert len(caplog.records) == 2
    with pytest.raises((StoreError, OSError)):
        cache.clear()


def test_a_server_that_is_away_is_a_miss_and_logged_but_clear_raises(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = RedisCache[int](redis.Redis(unix_socket_path=str(tmp_path / "nothing"), retry=Retry(NoBackoff(), 0)))

    with caplog.at_level(logging.WARNING, logger="pregel.cache"):
        cache.set({KEY: (1, None)})
        assert cache.get([KEY]) == {}
    assert len(caplog.records) == 2
    with pytest.raises(StoreError, match="Redis"):
        cache.clear()


def test_caches_with_other_prefixes_share_nothing(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        caches = [RedisCache[str](client, prefix=prefix) for prefix in ("a:", "a*", "a", "", "a:b:")]
        for cache in caches:
            cache.set({KEY: (cache.prefix, None)})
        assert [{KEY: cache.prefix} for cache in caches] == [cache.get([KEY]) for cache in caches]
        caches[1].clear()
        caches[3].clear([("ns",)])

        assert ["a:", "", "a", "", "a:b:"] == [cache.get([KEY]).get(KEY, "") for cache in caches]


def test_clearing_leaves_other_data_of_the_server_alone(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        client.set("pregel:cache:", "mine")
        client.set("other", "mine")
        RedisCache[int](client).set({KEY: (1, None)})
        RedisCache[int](client).clear()

        assert {b"pregel:cache:", b"other"} == set(client.keys())


def test_the_server_lets_entries_lapse(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        RedisCache[int](client).set({KEY: (1, 100)})
        (name,) = client.keys()

        assert 99_000 < client.pttl(name) <= 100_000


def test_an_entry_under_a_foreign_value_is_a_miss(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        cache = RedisCache[int](client)
        cache.set({KEY: (1, None)})
        for value in (b"", b"1\n1", b"junk\n1", b'[["other"], "k", "msgpack"]\n\x01', b'[1, "k", "msgpack"]\n\x01'):
            client.set(client.keys()[0], value)
            assert cache.get([KEY]) == {}


def test_a_client_that_decodes_or_awaits_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="decode_responses"):
        RedisCache[int](redis.Redis(decode_responses=True))
    awaiting: Any = redis.asyncio.Redis()
    with pytest.raises(TypeError, match="blocking"):
        RedisCache[int](awaiting)
