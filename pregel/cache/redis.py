"""RedisCache: a cache in Redis, or in a server that speaks its protocol."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pregel.cache.base import FullKey, Namespace, Serde, ValueT
from pregel.cache.encoded import Encoded, EncodedCache, Entry
from pregel.errors import InvalidInputError, StoreError
from pregel.extras import extra

if TYPE_CHECKING:
    import redis

DIGEST = 16  # bytes
PAGE = 1_000  # keys that are asked for or deleted at a time


class RedisCache(EncodedCache[ValueT]):
    """Keeps values under keys that start with `prefix`, in a blocking client's database; the server lets them lapse.

    A namespace and a key are hashed into the server's key, and kept beside the value to be compared. The server bounds
    what is kept (`maxmemory`). Caches with different prefixes share nothing, whatever the prefixes are.
    """

    def __init__(self, redis: redis.Redis, *, serde: Serde | None = None, prefix: str = "pregel:cache:") -> None:
        super().__init__(serde=serde)
        if not hasattr(redis, "pipeline") or asyncio.iscoroutinefunction(getattr(redis, "execute_command", None)):
            raise TypeError(
                f"RedisCache takes a blocking redis client, got {type(redis).__module__}.{type(redis).__name__}. "
                "Use redis.Redis(...); awaited calls hop to a thread."
            )
        if redis.get_encoder().decode_responses:
            raise InvalidInputError("The redis client decodes responses.", fix="Make it with decode_responses=False.")
        self.redis: Any = redis
        self.prefix = prefix
        self._start = f"{prefix}{_digest(prefix)}:"  # no prefix's keys start like those of a longer one

    def load(self, keys: Sequence[FullKey]) -> Mapping[FullKey, Encoded]:
        found: dict[FullKey, Encoded] = {}
        with _explained():
            for start in range(0, len(keys), PAGE):
                page = keys[start : start + PAGE]
                values = self.redis.mget([self._key(key) for key in page])
                found |= {
                    key: encoded for key, value in zip(page, values, strict=True) if (encoded := _unpacked(key, value))
                }
        return found

    def keep(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        with _explained(), self.redis.pipeline(transaction=True) as pipe:
            for key, encoded, ttl in entries:
                pipe.set(self._key(key), _packed(key, encoded), px=None if ttl is None else max(1, round(ttl * 1_000)))
            pipe.execute()

    def drop(self, namespaces: Sequence[Namespace] | None) -> None:
        starts = [self._start] if namespaces is None else [self._namespace(one) for one in namespaces]
        with _explained():
            for start in starts:
                self._drop_all(start)

    def _drop_all(self, start: str) -> None:
        batch: list[bytes] = []
        for key in self.redis.scan_iter(match=_literal(start) + b"*", count=PAGE):
            batch.append(key)
            if len(batch) == PAGE:
                self.redis.unlink(*batch)
                batch = []
        if batch:
            self.redis.unlink(*batch)

    def _namespace(self, namespace: Namespace) -> str:
        return f"{self._start}{_digest(json.dumps(namespace))}:"

    def _key(self, key: FullKey) -> bytes:
        return f"{self._namespace(key[0])}{_digest(key[1])}".encode("utf-8", "surrogatepass")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=DIGEST).hexdigest()


def _literal(text: str) -> bytes:
    """A text as a pattern that only matches itself."""
    escaped = "".join(f"\\{char}" if char in "*?[]^-\\" else char for char in text)
    return escaped.encode("utf-8", "surrogatepass")


def _packed(key: FullKey, encoded: Encoded) -> bytes:
    """A line with the key and the type, and the value."""
    return json.dumps([*key, encoded[0]]).encode() + b"\n" + encoded[1]


def _unpacked(key: FullKey, value: bytes | None) -> Encoded | None:
    """The value, when it is this key's."""
    if value is None:
        return None
    head, _, blob = value.partition(b"\n")
    try:
        namespace, text, kind = json.loads(head)
    except (TypeError, ValueError):
        return None
    return (kind, blob) if [namespace, text] == [list(key[0]), key[1]] else None


@contextmanager
def _explained() -> Iterator[None]:
    """Errors of the client as errors of ours."""
    with extra("redis", "RedisCache"):
        from redis import RedisError

    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreError(f"Redis: {error}") from error
