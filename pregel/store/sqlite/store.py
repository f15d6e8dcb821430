"""SqliteStore: documents in an SQLite file that several processes may share, that of a saver among them."""

from __future__ import annotations

import os
import sqlite3
import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar, Self, TypeVar

import orjson

from pregel import flow as runner
from pregel.checkpoint.flows import Many, Row, Sql
from pregel.checkpoint.sql import Statement, numbered, statements
from pregel.checkpoint.sqlite.database import Database, Synchronous
from pregel.checkpoint.sqlite.saver import explained
from pregel.errors import InvalidInputError, StoreError
from pregel.flow import Flow
from pregel.store import flows
from pregel.store.base import BaseStore, IndexConfig, Op, Result, TTLConfig
from pregel.store.expiring import Expiring
from pregel.store.filters import Filter
from pregel.store.namespaces import EVERYWHERE
from pregel.store.sqlite.functions import BY_EXTENSION, BY_PYTHON, bounds, hint, load_extension, teach
from pregel.store.vectors import Index, aembedding, embedding, working
from pregel.store.words import scope, scopes
from pregel.store.work import Work

T = TypeVar("T")
ENGINE = flows.Engine(exact=True, indexed=True, plans=False, serial=True)
TEXTS = statements("sqlite.sql", "pregel.store.sql")
SCHEMA = statements("sqlite_schema.sql", "pregel.store.sql")
WORDS = statements("sqlite_words.sql", "pregel.store.sql")


class SqliteStore(Expiring, BaseStore):
    """Keeps documents in SQLite. Give a connection, or use `from_conn_string`, which makes its own.

    - `index`: how items are searched by meaning, see `IndexConfig`. `ttl`: how long they live, see `TTLConfig`.
    - A search without a query shows what was put last first.
    """

    supports_ttl: ClassVar[bool] = True

    def __init__(
        self,
        conn: sqlite3.Connection,
        *,
        deserializer: None = None,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        if not isinstance(conn, sqlite3.Connection):
            raise TypeError(
                f"SqliteStore takes a sqlite3 connection, got {type(conn).__name__}. "
                "For a path use `with SqliteStore.from_conn_string(path) as store:`."
            )
        refuse_deserializer(deserializer)
        self._set_up(index, ttl, time.time)
        self.database = Database.adopt(conn, self._prepare, self._opened)

    def _set_up(self, index: IndexConfig | None, ttl: TTLConfig | None, clock: Callable[[], float]) -> None:
        Expiring.__init__(self, ttl)
        self.index_config = index
        self.index = Index.of(index)
        self._clock = clock
        self.scores = BY_PYTHON

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str | os.PathLike[str],
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        busy_timeout: float = 30.0,
        synchronous: Synchronous = "FULL",
        clock: Callable[[], float] = time.time,
    ) -> Iterator[Self]:
        """A store on a file (or ``:memory:``) for a `with` block, which stops its sweeper in the end.

        `busy_timeout`: seconds to wait for other writers. `clock` gives unix seconds.
        """
        store = cls.at(
            conn_string, index=index, ttl=ttl, busy_timeout=busy_timeout, synchronous=synchronous, clock=clock
        )
        try:
            yield store
        finally:
            store.stop_ttl_sweeper()
            store.database.close()

    @classmethod
    def at(
        cls,
        conn_string: str | os.PathLike[str],
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        busy_timeout: float = 30.0,
        synchronous: Synchronous = "FULL",
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """The same without a `with` block; what it opened is closed when it is garbage, or by `database.close()`."""
        store = cls.__new__(cls)
        store._set_up(index, ttl, clock)
        name = os.fspath(conn_string)
        store.database = Database(
            "" if name == ":memory:" else os.path.abspath(name),
            timeout=busy_timeout,
            synchronous=synchronous,
            prepare=store._prepare,
            opened=store._opened,
        )
        return store

    def setup(self) -> None:
        """Make or migrate the tables now instead of on first use."""
        with self.database.reading():
            pass

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self.perform(runner.run(self.work(ops), embedding(self.index)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        work = await runner.arun(self.work(ops), aembedding(self.index))
        return await runner.on_thread(self.perform, work)

    def sweep_ttl(self) -> int:
        return self._write(flows.sweep_flow(self._clock(), cascades=False))

    # -- doing it ----------------------------------------------------------------------------------------------------

    def work(self, ops: Iterable[Op]) -> Flow[Work]:
        """What a batch comes to, as a flow that wants texts embedded."""
        return working(self.index, ops, self._clock(), self.ttl_config)

    def perform(self, work: Work) -> list[Result]:
        """Do a batch."""
        if work.writes:
            self._write(flows.write_flow(work, ENGINE))
        elif work.results and (refreshed := self._read(flows.read_flow(work, ENGINE))):
            self._write(flows.refresh_flow(refreshed, work.now))
        return work.results

    def _read(self, flow: Flow[T]) -> T:
        with explained(), self.database.reading() as connection:
            return runner.run(flow, lambda request: self._say(connection, request))

    def _write(self, flow: Flow[T]) -> T:
        with explained(), self.database.writing() as connection:
            return runner.run(flow, lambda request: self._say(connection, request))

    def _say(self, connection: sqlite3.Connection, request: Sql | Many) -> Any:
        if isinstance(request, Many):
            said = [words(request.name, row, self.index, self.scores) for row in request.rows]
            connection.executemany(said[0][0], [args for _, args in said])
            return None
        return connection.execute(*words(request.name, request.args, self.index, self.scores)).fetchall()

    def _prepare(self, connection: sqlite3.Connection) -> None:
        flow = tables(words=has_words(self.index))
        runner.run(flow, lambda statement: connection.execute(*statement).fetchall())

    def _opened(self, connection: sqlite3.Connection) -> None:
        teach(connection)
        if self.index is not None:
            self.scores = BY_EXTENSION if load_extension(connection) else BY_PYTHON


# -- shared with the async store ---------------------------------------------------------------------------------------


def refuse_deserializer(deserializer: object) -> None:
    """InvalidInputError: values come back as they were put."""
    if deserializer is not None:
        raise InvalidInputError(
            "A store takes no deserializer.", fix="Leave it out: values come back as they were put."
        )


def has_words(index: Index | None) -> bool:
    """Whether words count in this store's searches."""
    return index is not None and index.hybrid > 0.0


def words(name: str, args: Row, index: Index | None, scores: dict[str, str]) -> tuple[str, Any]:
    """A statement's text, and its arguments as its places want them."""
    statement = _statement(name, *(("", 0) if index is None else (scores[index.distance], index.dims)))
    if args and isinstance(args[-1], Filter):
        args = (*args[:-1], hint(args[-1]), *bounds(args[-1]), args[-1].text())
    if name == "gets":
        args = (orjson.dumps(args[0]).decode(), *args[1:])
    elif name == "word_counts":
        args = (*args[:-1], orjson.dumps([_match(word, args[0]) for word in args[-1]]).decode())
    elif name == "put_words":
        args = (*args[:-1], " ".join([*scopes(args[0]), *args[-1]]))
    elif name == "put_vector" or name.startswith("near"):
        args = tuple(bytes(arg) if isinstance(arg, array) else arg for arg in args)
    elif name.startswith("hybrid") and index is not None:
        *where, vector, weighed = args[:7]
        hits = [[_match(word, where[0]), index.hybrid * weight] for word, weight in weighed.items()]
        args = (*where, bytes(vector), 1.0 - index.hybrid, orjson.dumps(hits).decode(), *args[7:])
    return statement.text, statement.ordered(args)


def _match(word: str, ns: str) -> str:
    """What FTS5 matches with items that have a word and are under a namespace. A word is letters and digits."""
    return f'"{word}"' if ns == EVERYWHERE else f'"{word}" AND "{scope(ns)}"'


@lru_cache(64)
def _statement(name: str, score: str, dims: int) -> Statement:
    return numbered(TEXTS[name].replace("{score}", score).replace("{dims}", f"{dims:d}"))


def tables(*, words: bool) -> Flow[None]:
    """Bring the tables to the newest version, as a flow of (text, arguments). `words`: that of words too."""
    yield "CREATE TABLE IF NOT EXISTS pregel_store_migrations (v INTEGER PRIMARY KEY, applied_at REAL NOT NULL)", ()
    newest = (yield "SELECT coalesce(max(v), 0) FROM pregel_store_migrations", ())[0][0]
    if newest > len(SCHEMA):
        raise StoreError(
            f"The store has format {newest}, this version knows up to {len(SCHEMA)}.", fix="Upgrade pregel."
        )
    for version, script in enumerate(SCHEMA.values(), 1):
        if version > newest:
            for statement in script.split(";\n"):
                yield statement, ()
            yield "INSERT INTO pregel_store_migrations (v, applied_at) VALUES (?, ?)", (version, time.time())
    if words and not (yield WORDS["present"], ()):
        try:
            for name in ("table", "gone", "stale"):
                yield WORDS[name], ()
        except sqlite3.OperationalError as error:
            if "fts5" not in str(error):
                raise
            raise InvalidInputError(
                f"This SQLite ({sqlite3.sqlite_version}) has no FTS5, by which words are found.",
                fix="Leave `hybrid` out of the index, or use a Python whose SQLite has it.",
            ) from error
