"""SqliteSaver: the journal in an SQLite file that several processes may share.

1. ``synchronous="FULL"`` (the default) survives power loss, at one fsync a commit; ``"NORMAL"`` survives a killed
   process.
2. Tables are made and migrated on first use. Their names start with ``pregel_``, so the file may hold other tables.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import partial
from typing import Any, Self, TypeVar

import orjson

from pregel import flow as runner
from pregel.checkpoint import flows
from pregel.checkpoint.decode import Decoder
from pregel.checkpoint.flows import Atomic, Clock, Many, Row, Sql, append_flow, kept
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.lease import LEASE, this_owner
from pregel.checkpoint.records import Append, Hold, Receipt, Saved
from pregel.checkpoint.serde.base import SerializerProtocol, UntypedSerializerProtocol
from pregel.checkpoint.sql import numbered, statements
from pregel.checkpoint.sqlite.bound import BOUND, checkpoint_args, guard_args, write_args
from pregel.checkpoint.sqlite.database import Database, Synchronous, is_io_error, primary_code
from pregel.errors import InternalError, InvalidInputError, PregelError, StoreError
from pregel.flow import Flow

A = TypeVar("A")
T = TypeVar("T")
STATEMENTS = {name: numbered(text) for name, text in statements("sqlite.sql").items()}
SCHEMA = statements("sqlite_schema.sql")

UNASKED = f"{STATEMENTS['append'].text} AND asked = ''"
LAST_UNASKED = f"{STATEMENTS['release'].text} AND asked = ''"
ADD_NAMESPACES, ADD_VALUES = STATEMENTS["add_namespaces"], STATEMENTS["add_values"]
ADD_CHECKPOINTS, ADD_WRITES = STATEMENTS["add_checkpoints"], STATEMENTS["add_writes"]
LANDED = Receipt(True)

Serde = SerializerProtocol | UntypedSerializerProtocol


class SqliteSaver(JournalSaver):
    """Keeps threads in SQLite. Give a connection, or use `from_conn_string`, which makes its own."""

    def __init__(self, conn: sqlite3.Connection, *, serde: Serde | None = None, lease: float = LEASE) -> None:
        if not isinstance(conn, sqlite3.Connection):
            raise TypeError(
                f"SqliteSaver takes a sqlite3 connection, got {type(conn).__name__}. "
                "For a path use `with SqliteSaver.from_conn_string(path) as saver:`."
            )
        super().__init__(serde=serde, lease=lease)
        self.database = Database.adopt(conn, migrate)
        self._beats: Database | None = None

    @classmethod
    def _of(cls, database: Database, serde: Serde | None, lease: float) -> Self:
        saver = cls.__new__(cls)
        JournalSaver.__init__(saver, serde=serde, lease=lease)
        saver.database, saver._beats = database, None
        return saver

    @classmethod
    @contextmanager
    def from_conn_string(
        cls,
        conn_string: str | os.PathLike[str],
        *,
        serde: Serde | None = None,
        busy_timeout: float = 30.0,
        synchronous: Synchronous = "FULL",
        lease: float = LEASE,
    ) -> Iterator[Self]:
        """A saver on a file (or ``:memory:``) for a `with` block.

        - `busy_timeout`: seconds to wait for other writers.
        - `lease`: seconds after which another host may take over the thread of a run that was not heard of.
        """
        saver = cls.at(conn_string, serde=serde, busy_timeout=busy_timeout, synchronous=synchronous, lease=lease)
        try:
            yield saver
        finally:
            saver.database.close()

    @classmethod
    def at(
        cls,
        conn_string: str | os.PathLike[str],
        *,
        serde: Serde | None = None,
        busy_timeout: float = 30.0,
        synchronous: Synchronous = "FULL",
        lease: float = LEASE,
    ) -> Self:
        """The same without a `with` block; what it opened is closed when it is garbage, or by `database.close()`."""
        name = os.fspath(conn_string)
        path = "" if name == ":memory:" else os.path.abspath(name)
        return cls._of(Database(path, timeout=busy_timeout, synchronous=synchronous, prepare=migrate), serde, lease)

    def setup(self) -> None:
        """Make or migrate the tables now instead of on first use."""
        with self.database.reading():
            pass

    # -- the store ---------------------------------------------------------------------------------------------------

    def append(self, append: Append) -> Receipt:
        now = clock()
        try:
            if append.claim is None and self._append_unasked(append, now):
                return LANDED
            return runner.run(append_flow(append, now), self._perform_append)
        except _DRIVERS as error:
            if not is_io_error(error):
                raise explanation(error, append.thread) from error
        with explained(append.thread):  # whether the commit came through is unclear; sending it again settles it
            return runner.run(append_flow(append, now), self._perform_append)

    def append_all(self, appends: Sequence[Append]) -> list[Receipt | Exception]:
        """What became of each of several runs' appends, all in one transaction.

        When that fails each is stored by itself, so that an error is told to the one whose it is.
        """
        if len(appends) > 1:
            try:
                with self.database.writing() as connection:
                    return [self._append_in(connection, append, clock()) for append in appends]
            except _DRIVERS as error:  # what landed all the same is told by its mark
                if primary_code(error) == sqlite3.SQLITE_BUSY:  # each would wait as long in vain, one after the other
                    return [explanation(error, append.thread) for append in appends]
            except PregelError as error:  # nobody gets to the file
                return [copy(error) for _ in appends]
        return [self._outcome(append) for append in appends]

    def _outcome(self, append: Append) -> Receipt | Exception:
        try:
            return self.append(append)
        except Exception as error:
            return error

    def _append_in(self, connection: sqlite3.Connection, append: Append, now: Clock) -> Receipt:
        if append.claim is None and _add_unasked(connection, append, now):
            return LANDED
        return runner.run(append_flow(append, now), partial(_perform_in, connection))

    def _append_unasked(self, append: Append, now: Clock) -> bool:
        """The usual append in few statements; False, and nothing done, when its guard misses or something is asked."""
        database = self.database
        connection = database.begin()  # and not `writing`: this is the hot path
        try:
            moved = _add_unasked(connection, append, now)
        except BaseException as error:
            database.roll_back(error)
            raise
        if moved:
            database.commit()
        else:
            database.roll_back(None)
        return moved

    def intern(self, texts: Iterable[str]) -> None:
        try:
            super().intern(texts)
        except StoreError as error:
            if not is_io_error(error.__cause__):
                raise
            super().intern(texts)  # does no harm twice

    def renew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        with self.database.kept():
            if self.database.closed:  # nobody is meant to write any more
                return {}
            pulse = self._pulse()
            with explained(), pulse.writing() as connection:
                return runner.run(flows.renew_flow(holds, keep), lambda request: _perform(connection, request))

    def _pulse(self) -> Database:
        """The connections for renewals, which come from another thread: one that was given may not be used there."""
        if not self.database.given or not self.database.path:
            return self.database
        if self._beats is None:
            self._beats = Database(self.database.path, timeout=self.lease / 3, synchronous="NORMAL")
        return self._beats

    def read(self, flow: Flow[T]) -> T:
        return self._reading(_run, flow)

    def look(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        return self.look_with(self._decoder(), thread, ns, checkpoint)

    def look_with(self, decoder: Decoder, thread: str, ns: str, checkpoint: str | None) -> Saved | None:
        """The same, read by this decoder."""
        looking = flows.look_flow(decoder, thread, ns, checkpoint)
        request = next(looking)
        rows = self._reading(_perform, request, alone=True)
        try:
            looking.send(rows)
        except StopIteration as stop:
            found: Saved | None = stop.value
            return found
        return self.read(flows.look_flow(decoder, thread, ns, checkpoint))  # of more than one statement

    def _reading(self, work: Callable[[sqlite3.Connection, A], T], asked: A, *, alone: bool = False) -> T:
        database = self.database  # by hand: each of the blocks would cost as much as a statement
        try:
            connection = database.begin_read(alone=alone)
            try:
                found = work(connection, asked)
            except BaseException as error:
                database.end_read(error)
                raise
            database.end_read()
        except _DRIVERS as error:
            raise explanation(error, None) from error
        return found

    def write(self, flow: Flow[T]) -> T:
        with explained(), self.database.writing() as connection:
            return runner.run(flow, lambda request: _perform(connection, request))

    def _perform_append(self, request: Atomic | Sql) -> list[Row]:
        if isinstance(request, Sql):
            with self.database.reading() as connection:
                rows: list[Row] = _perform(connection, request)
                return rows
        connection = self.database.begin()  # and not `writing`: this is the hot path
        try:
            rows = _perform_in(connection, request)
        except BaseException as error:
            self.database.roll_back(error)
            raise
        self.database.commit()
        return rows


def _add_unasked(connection: sqlite3.Connection, append: Append, now: Clock) -> bool:
    """The usual append inside an open transaction; False, and nothing done, unless its guard holds and nobody asks."""
    tno = append.tno
    guard = UNASKED if append.release is None else LAST_UNASKED
    if connection.execute(guard, guard_args(append, now.now, now.since_boot)).rowcount != 1:
        return False
    if append.namespaces:
        connection.executemany(ADD_NAMESPACES.text, [(tno, *row) for row in append.namespaces])
    if append.checkpoints:
        arrange = ADD_CHECKPOINTS.ordered
        connection.executemany(ADD_CHECKPOINTS.text, [arrange(checkpoint_args(tno, row)) for row in append.checkpoints])
    if append.values:
        connection.executemany(ADD_VALUES.text, [(tno, *row) for row in append.values])
    if append.writes:
        connection.executemany(ADD_WRITES.text, [write_args(tno, row) for row in append.writes])
    if append.chunks or append.marks:
        _perform(connection, Many("add_chunks", [(tno, *row) for row in append.chunks]))
        _perform(connection, Many("add_marks", [(tno, *row) for row in append.marks]))
    if append.drops:
        _perform(connection, Many("add_dropped", [(tno, 1)]))
    if append.release is not None and append.release.waits:
        _perform(connection, Many("add_waits", [(tno, *row) for row in append.release.waits]))
    if append.release is not None and append.release.withdraws:
        _perform(connection, Many("add_kept", [(tno, kept(append.release.items))]))
    if append.release is not None and append.release.items:
        _perform(connection, Many("add_items", [(tno, *row) for row in append.release.items]))
    return True


def _perform_in(connection: sqlite3.Connection, request: Atomic | Sql) -> list[Row]:
    """Perform what an append asks for inside an open transaction."""
    if isinstance(request, Sql):
        return _perform(connection, request)  # type: ignore[no-any-return]
    guard = STATEMENTS[request.head.name]
    if connection.execute(guard.text, guard.ordered(request.head.args)).rowcount != 1:
        return []
    rows: list[Row] = connection.execute(STATEMENTS["standing_row"].text, (request.thread,)).fetchall()
    tno = rows[0][0]
    for many in request.rest:
        statement, args = STATEMENTS[many.name], BOUND.get(many.name, _as_they_are)
        connection.executemany(statement.text, [statement.ordered(args(tno, row)) for row in many.rows])
    return rows


def _as_they_are(tno: int, row: Row) -> Row:
    return tno, *row


def _run(connection: sqlite3.Connection, flow: Flow[T]) -> T:
    """Run a flow on a connection."""
    return runner.run(flow, partial(_perform, connection))


def _perform(connection: sqlite3.Connection, request: Sql | Many) -> Any:
    """Perform one statement of a flow."""
    if request.__class__ is Many:
        statement = STATEMENTS[request.name]
        connection.executemany(statement.text, [statement.ordered(row) for row in request.rows])
        return None
    text, args = placed(request)  # type: ignore[arg-type]
    return connection.execute(text, args).fetchall()


def placed(request: Sql) -> tuple[str, Sequence[Any]]:
    """A statement's text, and its arguments as its places want them."""
    text, arrange = STATEMENTS[request.name]
    adapt = _ADAPTED.get(request.name)
    args = request.args if adapt is None else adapt(request.args)
    return text, args if arrange is None else arrange(args)


def _with_clock(args: Row) -> Row:
    now = clock()
    return (*args, now.boot, now.since_boot, now.now)


_ADAPTED: dict[str, Callable[[Row], Row]] = {
    "thread": _with_clock,
    "renew": _with_clock,
    "threads": _with_clock,
    "values": lambda args: (args[0], args[1], orjson.dumps(args[2]).decode(), args[3]),
}

_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def clock() -> Clock:
    """Time since boot does not jump with the wall clock, but says something only within one boot."""
    now = time.time()
    return Clock(now, this_owner().boot, now if _BOOTTIME is None else time.clock_gettime(_BOOTTIME))


_DRIVERS = (sqlite3.Error, UnicodeEncodeError, OverflowError)  # the last for a value above 2 GB
_GOES_ON = "a thread goes on from its last stored step when it is invoked again."
_FIXES = {
    sqlite3.SQLITE_BUSY: "Raise `busy_timeout`, or find who holds the write lock.",
    sqlite3.SQLITE_FULL: f"Make room; {_GOES_ON}",
    sqlite3.SQLITE_IOERR: f"Look at the disk and its file system; {_GOES_ON}",
}


@contextmanager
def explained(thread: str | None = None) -> Iterator[None]:
    """Errors of the driver as errors of ours."""
    try:
        yield
    except _DRIVERS as error:
        raise explanation(error, thread) from error


def explanation(error: Exception, thread: str | None) -> PregelError:
    """An error of the driver as one of ours."""
    if isinstance(error, sqlite3.IntegrityError):
        return InternalError(f"A record is stored already: {error}", thread=thread)
    if isinstance(error, UnicodeEncodeError):
        return InvalidInputError(
            f"SQLite keeps no text with half a surrogate pair; nothing was written ({error}).",
            fix="Keep such characters out of thread ids, names and namespaces; values may hold them.",
            thread=thread,
        )
    return StoreError(f"SQLite: {error}", fix=_FIXES.get(primary_code(error)), thread=thread)


# -- tables ------------------------------------------------------------------------------------------------------------


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables to the newest version, inside the transaction that is open."""
    runner.run(tables(), lambda statement: connection.execute(*statement).fetchall())


def tables() -> Flow[None]:
    """The same as a flow of (text, arguments); nothing to do costs one look."""
    found = yield "SELECT 1 FROM sqlite_master WHERE name = 'pregel_migrations'", ()
    if not found:
        yield "CREATE TABLE pregel_migrations (v INTEGER PRIMARY KEY, applied_at REAL NOT NULL)", ()
    newest = (yield "SELECT coalesce(max(v), 0) FROM pregel_migrations", ())[0][0]
    if newest > len(SCHEMA):
        raise StoreError(
            f"The database has format {newest}, this version knows up to {len(SCHEMA)}.", fix="Upgrade pregel."
        )
    for version, script in enumerate(SCHEMA.values(), 1):
        if version > newest:
            for statement in script.split(";\n"):
                yield statement, ()
            yield "INSERT INTO pregel_migrations (v, applied_at) VALUES (?, ?)", (version, time.time())
