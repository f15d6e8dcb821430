"""PostgresSaver: the journal in PostgreSQL, for any number of processes and hosts.

1. An append is one statement and one round trip. Tables are made on first use, or by `setup`; their names start with
   ``pregel_``.
2. It works through a transaction pooler: nothing is kept in a session.
3. After a cut it goes on with a new connection, for as long as `patience` says; an append lands once all the same.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar, Union

import psycopg
from psycopg.conninfo import make_conninfo

from pregel import flow as runner
from pregel.checkpoint import flows
from pregel.checkpoint.chunks import ChunkPage, chunks_flow
from pregel.checkpoint.flows import Row, Sql
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.lease import LEASE
from pregel.checkpoint.news import News
from pregel.checkpoint.postgres import tables, verbs, wire
from pregel.checkpoint.postgres.connections import Connections, Line, Own, Source, Target, source_of
from pregel.checkpoint.postgres.listening import listening
from pregel.checkpoint.records import Append, Hold, Load, Opened, Page, Receipt, Saved, Status, ThreadRow
from pregel.checkpoint.serde.base import SerializerProtocol, UntypedSerializerProtocol
from pregel.errors import InvalidInputError
from pregel.flow import Flow

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

T = TypeVar("T")
Serde = SerializerProtocol | UntypedSerializerProtocol
Conn = Union[psycopg.Connection[Any], "ConnectionPool[Any]"]
POOL_SIZE = 10
PATIENCE = 30.0  # seconds: as long as a lease

log = logging.getLogger("pregel.checkpoint.postgres")
log.addHandler(logging.NullHandler())


class Spoken(JournalSaver):
    """The blocking verbs, said over the wire; `_do` performs them."""

    @abstractmethod
    def _do(self, verb: Flow[T], thread: str | None = None) -> T:
        """Perform a verb on tables that are there."""

    def append(self, append: Append) -> Receipt:
        return self._do(verbs.appending(append, self.names), append.thread)

    def read(self, flow: Flow[T]) -> T:
        return self._do(verbs.reading_once(flow))

    def write(self, flow: Flow[T]) -> T:
        return self._do(verbs.writing(flow))

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        self._introduce(names)
        return self._do(verbs.loading(lambda: flows.load_flow(self._decoder(), thread, loads), thread, loads), thread)

    def look(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        return self._do(verbs.looking(lambda: flows.look_flow(self._decoder(), thread, ns, checkpoint)), thread)

    def page(self, thread: str | None, page: Page) -> list[tuple[str, Saved]]:
        return self._do(verbs.reading(lambda: flows.page_flow(self._decoder(), thread, page)), thread)

    def intern(self, texts: Iterable[str]) -> None:
        if unknown := sorted(set(texts) - self.names.ids.keys()):
            self._do(verbs.interning(self.names, unknown))

    def renew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        return self._do(verbs.renewing(holds, keep))

    def ask(self, hold: Hold, asked: str) -> bool:
        return self._do(verbs.requesting(hold, asked))

    def chunks(self, thread: str, offset: int, seen: int | None = None) -> ChunkPage:
        return self._do(verbs.reading(lambda: chunks_flow(thread, offset, seen)), thread)

    def threads(self, *, status: Status | None = None, limit: int | None = None) -> list[ThreadRow]:
        return self._do(verbs.reading(lambda: flows.threads_flow(status, limit)))


class PostgresSaver(Spoken):
    """Keeps threads in PostgreSQL. Give a psycopg connection or pool, or use `from_conn_string`.

    A connection is put in autocommit mode and made anew when it breaks. `pipe` is not needed: an append is one round
    trip as it is.
    """

    def __init__(self, conn: Conn, pipe: object = None, serde: Serde | None = None, *, lease: float = LEASE) -> None:
        refuse_pipe(pipe)
        source, target = source_of(conn, type(self).__name__)
        super().__init__(serde=serde, lease=lease)
        self._set_up(Connections(source, lambda: Own(target, POOL_SIZE), PATIENCE), target)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        serde: Serde | None = None,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        prepare: bool = True,
        lease: float = LEASE,
    ) -> Iterator[Self]:
        """A saver on a database for a `with` block, over at most `pool_size` connections that are made as needed.

        - `patience`: seconds to wait for a free connection, and for a server that is away to come back.
        - `prepare`: False sends no prepared statements, for a pooler that cannot keep them apart. It is found out too.
        - `lease`: seconds after which another host may take over the thread of a run that was not heard of.
        - `pipeline` has no effect, since an append is one round trip as it is.
        """
        saver = cls.at(conn_string, serde=serde, pool_size=pool_size, patience=patience, prepare=prepare, lease=lease)
        try:
            yield saver
        finally:
            saver.close()

    @classmethod
    def at(
        cls,
        conn_string: str,
        *,
        serde: Serde | None = None,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        prepare: bool = True,
        lease: float = LEASE,
    ) -> Self:
        """The same without a block: `close` it in the end."""
        return cls.of(target_of(conn_string), serde, pool_size, patience, prepare, lease)

    @classmethod
    def of(
        cls,
        target: Target,
        serde: Serde | None,
        pool_size: int,
        patience: float,
        prepare: bool | None,
        lease: float = LEASE,
    ) -> Self:
        """A saver with connections of its own."""
        saver = cls.__new__(cls)
        JournalSaver.__init__(saver, serde=serde, lease=lease)
        saver._set_up(Connections(Own(target, pool_size), lambda: Own(target, pool_size), patience), target)
        saver.connections.prepare = None if prepare else False
        return saver

    def _set_up(self, connections: Connections[Source], target: Target) -> None:
        self.connections, self._target = connections, target
        # renewals have a connection of their own: a pool that is busy with runs would cost all of them their leases
        self.pulse: Connections[Source] = Connections(Own(target, 1), lambda: Own(target, 1), self.lease / 3)
        self.closed = False
        self._ready = False

    def listen(self) -> AbstractContextManager[News]:
        return listening(self._target, self.connections.prepare is False)

    def renew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        if self.closed:
            return {}
        self.pulse.prepare = self.connections.prepare
        with wire.explained():
            return self._drive(verbs.renewing(holds, keep), self.pulse)

    def setup(self) -> None:
        """Make or migrate the tables now instead of on first use."""
        with wire.explained():
            self._drive(tables.migrating())
            rows = self._drive(verbs.asking(Sql("settings")))
        warn_of(rows)
        self._ready = True

    def close(self) -> None:
        """Close the connections that this saver made."""
        self.closed = True
        self.connections.current().close()
        self.pulse.current().close()

    # -- doing it ----------------------------------------------------------------------------------------------------

    def do(self, verb: Flow[T], thread: str | None = None) -> T:
        """Perform a verb on tables that are there."""
        self.closed = False
        if not self._ready:
            self._make_ready()
        with wire.explained(thread):
            return self._drive(verb)

    _do = do

    def _drive(self, verb: Flow[T], connections: Connections[Source] | None = None) -> T:
        line = Line(connections or self.connections)
        try:
            return runner.run(verb, line.perform)
        finally:
            line.release()

    def _make_ready(self) -> None:
        with wire.explained():
            missing = self._drive(tables.missing_steps())
        if missing:
            self.setup()
        self._ready = True


# -- shared with the async saver ---------------------------------------------------------------------------------------


def target_of(conn_string: str) -> Target:
    """Where a DSN leads."""
    with wire.explained():
        return Target(make_conninfo(conn_string, client_encoding="utf8"))


def refuse_pipe(pipe: object) -> None:
    """InvalidInputError for a pipeline: what it takes is not committed until it ends."""
    if pipe is not None:
        raise InvalidInputError(
            "A saver takes no pipeline: what goes through one is committed when it ends.",
            fix="Leave `pipe` out: an append is one round trip as it is.",
        )


def warn_of(rows: Sequence[Row]) -> None:
    """Log the server's settings under which an acknowledged step can be lost."""
    for name, value in rows:
        if value == "off":
            log.warning("%s is off on this server: a crash of its machine may lose acknowledged steps", name)
