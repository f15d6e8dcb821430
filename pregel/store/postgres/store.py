"""PostgresStore: documents in PostgreSQL, for any number of processes and hosts.

1. Tables are made on first use, or by `setup`; their names start with ``pregel_store``. Vectors need the extension
   pgvector on the server.
2. It works through a transaction pooler, and goes on with a new connection after a cut.
3. Times are those of the process that puts: hosts that share a store keep their clocks together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, Union

import psycopg
from typing_extensions import TypedDict

from pregel import flow as runner
from pregel.checkpoint.postgres import wire
from pregel.checkpoint.postgres.connections import Connections, Line, Own, Source, Target, source_of
from pregel.checkpoint.postgres.saver import PATIENCE, POOL_SIZE, target_of
from pregel.errors import InvalidInputError
from pregel.flow import Flow
from pregel.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig
from pregel.store.expiring import Expiring
from pregel.store.postgres import verbs
from pregel.store.postgres.approximate import Approximate, PostgresIndexConfig
from pregel.store.vectors import Index, aembedding, embedding, working
from pregel.store.work import Work

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

T = TypeVar("T")
Conn = Union[psycopg.Connection[Any], "ConnectionPool[Any]"]


class PoolConfig(TypedDict, total=False):
    """How many connections a store makes. Only `max_size` matters: they are made when they are needed."""

    min_size: int
    max_size: int | None
    kwargs: dict[str, Any]


class PostgresStore(Expiring, BaseStore):
    """Keeps documents in PostgreSQL. Give a psycopg connection or pool, or use `from_conn_string`.

    - `index`: how items are searched by meaning, see `PostgresIndexConfig`. `ttl`: how long they live, see `TTLConfig`.
    - A search without a query shows what was put last first.
    """

    supports_ttl: ClassVar[bool] = True

    def __init__(
        self,
        conn: Conn,
        *,
        pipe: None = None,
        deserializer: None = None,
        index: PostgresIndexConfig | IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        refuse(pipe, deserializer)
        source, target = source_of(conn, type(self).__name__)
        self._set_up(source, target, POOL_SIZE, PATIENCE, index, ttl, time.time)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        pool_config: PoolConfig | None = None,
        index: PostgresIndexConfig | IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        patience: float = PATIENCE,
        clock: Callable[[], float] = time.time,
    ) -> Iterator[Self]:
        """A store on a database for a `with` block, which stops its sweeper in the end.

        - `patience`: seconds to wait for a free connection, and for a server that is away to come back.
        - `pipeline` has no effect: a batch is one transaction as it is. `clock` gives unix seconds.
        """
        size = (pool_config or {}).get("max_size") or POOL_SIZE
        store = cls.of(target_of(conn_string), size, patience, index, ttl, clock)
        try:
            yield store
        finally:
            store.stop_ttl_sweeper()
            store.close()

    @classmethod
    def of(
        cls,
        target: Target,
        size: int = POOL_SIZE,
        patience: float = PATIENCE,
        index: PostgresIndexConfig | IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """A store with connections of its own: `close` it in the end."""
        store = cls.__new__(cls)
        store._set_up(Own(target, size), target, size, patience, index, ttl, clock)
        return store

    def _set_up(
        self,
        source: Source,
        target: Target,
        size: int,
        patience: float,
        index: PostgresIndexConfig | IndexConfig | None,
        ttl: TTLConfig | None,
        clock: Callable[[], float],
    ) -> None:
        Expiring.__init__(self, ttl)
        self.connections: Connections[Source] = Connections(source, lambda: Own(target, size), patience)
        self.index_config = index
        self.index = Index.of(index)
        self.near = Approximate.of(index, self.index)
        self._clock = clock
        self._ready = False

    def setup(self) -> None:
        """Make or migrate the tables now instead of on first use."""
        with wire.explained():
            self._drive(verbs.migrating(self.index, self.near))
        self._ready = True

    def close(self) -> None:
        """Close the connections that this store made."""
        self.connections.current().close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self.perform(runner.run(self.work(ops), embedding(self.index)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        work = await runner.arun(self.work(ops), aembedding(self.index))
        return await runner.on_thread(self.perform, work)

    def sweep_ttl(self) -> int:
        return self._do(verbs.sweeping(self._clock()))

    # -- doing it ----------------------------------------------------------------------------------------------------

    def work(self, ops: Iterable[Op]) -> Flow[Work]:
        """What a batch comes to, as a flow that wants texts embedded."""
        return working(self.index, ops, self._clock(), self.ttl_config)

    def perform(self, work: Work) -> list[Result]:
        """Do a batch."""
        return self._do(verbs.batching(work, self.index, self.near))

    def _do(self, verb: Flow[T]) -> T:
        if not self._ready:
            with wire.explained():
                missing = self._drive(verbs.missing_steps(self.index, self.near))
            if missing:
                self.setup()
            self._ready = True
        with wire.explained():
            return self._drive(verb)

    def _drive(self, verb: Flow[T]) -> T:
        line = Line(self.connections)
        try:
            return runner.run(verb, line.perform)
        finally:
            line.release()


# -- shared with the async store ---------------------------------------------------------------------------------------


def refuse(pipe: object, deserializer: object) -> None:
    """InvalidInputError for what a store has no use for."""
    if pipe is not None:
        raise InvalidInputError(
            "A store takes no pipeline: what goes through one is committed when it ends.", fix="Leave `pipe` out."
        )
    if deserializer is not None:
        raise InvalidInputError("A store takes no deserializer.", fix="Leave it out: values come back as they are.")
