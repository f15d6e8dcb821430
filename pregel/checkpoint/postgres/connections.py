"""Where a saver's connections come from: its own by DSN, a connection or a pool of the user.

1. A connection is used by one verb at a time, in autocommit mode, and is given back outside of a transaction.
2. One that broke, or whose state is in doubt, is closed; the next verb gets another.
3. After a fork the child never touches its parent's connections: it makes its own by the same DSN.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import psycopg
from psycopg import Connection, RawCursor
from psycopg.conninfo import make_conninfo
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.rows import tuple_row

from pregel.checkpoint.flows import Row
from pregel.checkpoint.postgres.columns import know
from pregel.checkpoint.postgres.wire import UNPREPARED, Anew, Ask
from pregel.errors import InvalidInputError, StoreError

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

S = TypeVar("S")
Given = Connection[Any]

_leaked: list[object] = []  # what belongs to a parent process


class Source(Protocol):
    """Gives connections out, and takes them back."""

    def take(self, patience: float) -> Given: ...

    def give(self, connection: Given) -> None: ...

    def doubt(self) -> None:
        """A connection broke: those that lie idle may be as dead."""

    def close(self) -> None: ...


class Own:
    """Connections by DSN, made when they are needed, kept until `close`."""

    def __init__(self, target: Target, size: int) -> None:
        self.target, self.size = target, size
        self._room = threading.BoundedSemaphore(size)
        self._idle: list[Given] = []

    def take(self, patience: float) -> Given:
        if not self._room.acquire(timeout=patience):
            raise busy(self.size, patience)
        try:
            while self._idle:
                connection = self._idle.pop()
                if not connection.closed:
                    return connection
            return psycopg.connect(self.target.conninfo, autocommit=True, **self.target.options)
        except BaseException:
            self._room.release()
            raise

    def give(self, connection: Given) -> None:
        if usable(connection):
            self._idle.append(connection)
        else:
            connection.close()
        self._room.release()

    def doubt(self) -> None:
        self.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        self.close()


class One:
    """A connection of the user; made anew by its DSN once it broke."""

    def __init__(self, connection: Given) -> None:
        self.target = Target.of(connection)
        self.connection = connection
        self.made = False  # by us
        self._turn = threading.Lock()

    def take(self, patience: float) -> Given:
        if not self._turn.acquire(timeout=patience):
            raise busy(1, patience)
        try:
            if self.connection.closed:
                self.connection = psycopg.connect(self.target.conninfo, autocommit=True, **self.target.options)
                self.made = True
            check(self.connection)
            if not self.connection.autocommit:
                self.connection.autocommit = True
        except BaseException:
            self._turn.release()
            raise
        return self.connection

    def give(self, connection: Given) -> None:
        if not usable(connection):
            connection.close()
        self._turn.release()

    def doubt(self) -> None:
        pass

    def close(self) -> None:
        if self.made:
            self.connection.close()


class Pooled:
    """A pool of the user."""

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self.pool = pool
        self.target = Target.of_pool(pool)
        self._manual: set[int] = set()  # those that were not in autocommit mode

    def take(self, patience: float) -> Given:
        connection: Given = self.pool.getconn(patience)
        try:
            check(connection)
            if not connection.autocommit:
                connection.autocommit = True
                self._manual.add(id(connection))
        except BaseException:
            self.pool.putconn(connection)
            raise
        return connection

    def give(self, connection: Given) -> None:
        if not usable(connection):
            connection.close()
        if id(connection) in self._manual:
            self._manual.discard(id(connection))
            if not connection.closed:
                connection.autocommit = False
        self.pool.putconn(connection)

    def doubt(self) -> None:
        self.pool.check()

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class Target:
    """Where to connect to, and how."""

    conninfo: str = field(repr=False)  # may hold a password
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, connection: psycopg.BaseConnection[Any]) -> Target:
        """Where a connection goes to."""
        info = connection.info
        password = {"password": info.password} if info.password else {}
        return cls(
            make_conninfo("", **info.get_parameters(), **password), {"prepare_threshold": connection.prepare_threshold}
        )

    @classmethod
    def of_pool(cls, pool: Any) -> Target:
        """Where a pool connects to; both parts may be functions, which only an async pool awaits."""
        told = pool.conninfo() if callable(pool.conninfo) else pool.conninfo
        kwargs = pool.kwargs() if callable(pool.kwargs) else pool.kwargs
        left_out = ("autocommit", "row_factory", "cursor_factory")
        return cls(told, {name: value for name, value in (kwargs or {}).items() if name not in left_out})


def source_of(conn: object, owner: str) -> tuple[Source, Target]:
    """The source of a user's connection or pool, and where it leads; TypeError, in the `owner`'s name, for another."""
    if isinstance(conn, Connection):
        one = One(conn)
        check(conn)
        return one, one.target
    if hasattr(conn, "getconn") and not is_async(conn):
        pooled = Pooled(conn)  # type: ignore[arg-type]  # told by its shape: the pool's package may be missing
        return pooled, pooled.target
    raise TypeError(
        f"{owner} takes a psycopg Connection or ConnectionPool, got {type(conn).__name__}. "
        f"For a DSN use `with {owner}.from_conn_string(dsn) as ...:`."
    )


def is_async(pool: object) -> bool:
    """Whether a pool is awaited."""
    return hasattr(pool, "__aenter__") and not hasattr(pool, "__enter__")


def usable(connection: psycopg.BaseConnection[Any]) -> bool:
    """Whether it is open and outside of a transaction."""
    return connection.pgconn.transaction_status == TransactionStatus.IDLE


def check(connection: psycopg.BaseConnection[Any]) -> None:
    """InvalidInputError for a connection of the user that is in no state to be used."""
    pgconn = connection.pgconn
    if pgconn.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN):
        raise InvalidInputError("The connection is inside a transaction.", fix="Commit it, or give a new connection.")
    if pgconn.pipeline_status != PipelineStatus.OFF:
        raise InvalidInputError(
            "The connection is in pipeline mode, where nothing is committed until it ends.",
            fix="Give a connection of its own: an append is one round trip as it is.",
        )
    if pgconn.parameter_status(b"client_encoding") not in (b"UTF8", None):
        raise InvalidInputError("The connection's client_encoding is not UTF8.", fix="SET client_encoding TO 'UTF8'.")


def busy(size: int, patience: float) -> StoreError:
    """No connection became free in time."""
    return StoreError(
        f"All {size} connections have been busy for {patience} s.", fix="Raise `pool_size`, or give a larger pool."
    )


class Connections(Generic[S]):
    """A source, the same one in every verb of a saver, and what was learnt about the server."""

    def __init__(self, source: S, again: Callable[[], S], patience: float) -> None:
        self.source, self.again, self.patience = source, again, patience
        self.prepare: bool | None = None  # False: a pooler gives each transaction another server
        self.reached = False  # a connection worked once, so it is worth waiting for the next one
        self.pid = os.getpid()

    def current(self) -> S:
        """The source in this process."""
        if os.getpid() != self.pid:
            _leaked.append(self.source)
            self.source, self.pid = self.again(), os.getpid()
        return self.source


class Line:
    """One verb's way to the server: takes a connection when the verb first asks, and another one when it breaks."""

    def __init__(self, connections: Connections[Source]) -> None:
        self.connections = connections
        self.source = connections.current()
        self.connection: Given | None = None
        self.until = 0.0
        self.tries = 0

    def perform(self, request: Ask | Anew) -> list[Row]:
        """Answer a request of `wire`."""
        if isinstance(request, Anew):
            time.sleep(self._pause(request.error))
            return []
        connection = self.connection
        if connection is None:
            connection = self.connection = self.source.take(self.connections.patience)
            know(connection)
        cursor = RawCursor(connection, row_factory=tuple_row)
        cursor.execute(
            request.text,
            request.args,
            prepare=self.connections.prepare if request.alone else False,
            binary=True,
        )
        self.connections.reached = True
        return cursor.fetchall() if gave_rows(cursor.pgresult) else []

    def _pause(self, error: BaseException) -> float:
        broke = self.connection is not None and self.connection.closed
        self.release()
        if broke:
            self.source.doubt()
        return next_pause(self, error)

    def release(self) -> None:
        """Give the connection back."""
        if self.connection is not None:
            connection, self.connection = self.connection, None
            self.source.give(connection)


class Patient(Protocol):
    connections: Any
    until: float
    tries: int


def next_pause(line: Patient, error: BaseException) -> float:
    """The next of a line's growing pauses; StoreError when there is no point in waiting any longer."""
    connections = line.connections
    if isinstance(error, UNPREPARED):
        connections.prepare = False
        return 0.0
    now = time.monotonic()
    line.until = line.until or now + connections.patience
    if not connections.reached or now >= line.until:
        raise StoreError(f"PostgreSQL cannot be reached: {error}") from error
    line.tries += 1
    return min(1.0, 0.005 * 2**line.tries) * random.uniform(0.5, 1.0) if line.tries > 1 else 0.0


def gave_rows(result: PGresult | None) -> bool:
    """Whether a statement gave rows back."""
    return result is not None and result.status == ExecStatus.TUPLES_OK and result.ntuples > 0
