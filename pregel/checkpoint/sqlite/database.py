"""An SQLite file as its writers and readers in this process share it.

1. One writing connection, used under a lock that is held over the whole transaction, and one reading connection.
   A database in memory has one connection for both.
2. A write is BEGIN IMMEDIATE behind the lock file `<db>-queue`: no write starts as a read, nobody starves.
3. A connection that came over a fork is never used nor closed: closing it would take the parent's write-ahead log away.
4. Before each write the file is compared with the one that was opened: what is written to a file that was moved or
   replaced is lost.
5. A connection that met an I/O error is closed, unless it was given: what it believes of the file is in doubt.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

from pregel.checkpoint.turn import Turn
from pregel.errors import InvalidInputError, StoreError, StoreMoved

Synchronous = Literal["FULL", "NORMAL"]
LOG_LIMIT = 64 << 20  # bytes that the write-ahead log keeps on disk after it was emptied

_UNOPENED = {
    sqlite3.SQLITE_CANTOPEN: "Give the path of a file in a directory that exists and that this process may write to.",
    sqlite3.SQLITE_NOTADB: "Give the path of a new file, or of a database of this library; this file is none.",
    sqlite3.SQLITE_READONLY: "Let this process write to the file and to its directory.",
}

_leaked: list[sqlite3.Connection] = []  # handles of a parent process: closing them would harm it
_databases: weakref.WeakSet[Database] = weakref.WeakSet()


class Database:
    """The connections to one database.

    - `prepare` is called once, with a connection that is inside a transaction.
    - `opened` is called with each connection before it is used, to teach it functions.
    """

    def __init__(
        self,
        path: str,
        *,
        timeout: float = 30.0,
        synchronous: Synchronous = "FULL",
        connection: sqlite3.Connection | None = None,
        prepare: Callable[[sqlite3.Connection], None] = lambda connection: None,
        opened: Callable[[sqlite3.Connection], None] = lambda connection: None,
    ) -> None:
        if synchronous not in ("FULL", "NORMAL"):
            raise InvalidInputError(f"synchronous is {synchronous!r}.", fix="Use 'FULL' or 'NORMAL'.")
        self.path = path  # "" for a database in memory
        self.timeout, self.synchronous, self.prepare, self.opened = timeout, synchronous, prepare, opened
        self._given = connection
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self.closed = False  # on purpose, and not used since
        self._file: tuple[int, int] | None = None
        self._turn = Turn(f"{path}-queue") if path else None
        self._write_lock, self._read_lock = threading.RLock(), threading.RLock()
        _databases.add(self)

    @classmethod
    def adopt(
        cls,
        connection: sqlite3.Connection,
        prepare: Callable[[sqlite3.Connection], None],
        opened: Callable[[sqlite3.Connection], None] = lambda connection: None,
    ) -> Database:
        """The database behind a connection of the user; InvalidInputError when it is in no state to be used."""
        if connection.in_transaction:
            raise InvalidInputError(
                "The connection is inside a transaction.", fix="Commit it, or give a new connection."
            )
        if getattr(connection, "autocommit", True) is False:
            raise InvalidInputError(
                "The connection was opened with autocommit=False.", fix="Open it with isolation_level=None."
            )
        path = next((row[2] for row in connection.execute("PRAGMA database_list") if row[1] == "main"), "")
        return cls(path or "", connection=connection, prepare=prepare, opened=opened)

    @property
    def given(self) -> bool:
        """Whether the connection is the user's."""
        return self._given is not None

    # -- transactions ------------------------------------------------------------------------------------------------

    def kept(self) -> AbstractContextManager[object]:
        """While this is held, no other thread writes, nor closes."""
        return self._write_lock

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writing connection inside a transaction; committed at the end, rolled back on any error."""
        connection = self.begin()
        try:
            yield connection
        except BaseException as error:
            self.roll_back(error)
            raise
        self.commit()

    def begin(self) -> sqlite3.Connection:
        """The same by hand: exactly one of `commit` and `roll_back` must follow."""
        self._write_lock.acquire()
        try:
            connection = self._open_writer()
            if self._turn is not None:
                self._take_turn()
                self._check_file()
            connection.execute("BEGIN IMMEDIATE")
        except BaseException as error:
            self.roll_back(error)
            raise
        return connection

    def commit(self) -> None:
        """End the transaction; when that fails it is rolled back."""
        assert self._writer is not None
        try:
            self._writer.execute("COMMIT")
        except BaseException as error:
            self.roll_back(error)
            raise
        self._leave()

    def roll_back(self, error: BaseException | None) -> None:
        """Undo the transaction, which met this error."""
        writer = self._writer
        try:
            if writer is not None and writer.in_transaction:
                writer.execute("ROLLBACK")
        finally:
            if writer is not None and writer is not self._given and is_io_error(error):
                self._writer = None
                writer.close()
            self._leave()

    def _leave(self) -> None:
        try:
            if self._turn is not None:
                self._turn.give()
        finally:
            self._write_lock.release()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one moment of the database."""
        connection = self.begin_read()
        try:
            yield connection
        except BaseException as error:
            self.end_read(error)
            raise
        self.end_read()

    def begin_read(self, *, alone: bool = False) -> sqlite3.Connection:
        """The same by hand: exactly one `end_read` must follow. `alone`: for one statement, which sees one moment."""
        if not self.path:
            self._write_lock.acquire()
            try:
                return self._open_writer()
            except BaseException:
                self._write_lock.release()
                raise
        self._read_lock.acquire()
        try:
            connection = self._reader or self._open_reader()
            if not alone:
                connection.execute("BEGIN")
        except BaseException as error:
            self.end_read(error)
            raise
        return connection

    def end_read(self, error: BaseException | None = None) -> None:
        """The reading is over, with this error if it met one."""
        if not self.path:
            self._write_lock.release()
            return
        reader = self._reader
        try:
            if reader is not None and error is not None and is_io_error(error):
                self._reader = None
                reader.close()
            elif reader is not None and reader.in_transaction:
                reader.execute("ROLLBACK")
        finally:
            self._read_lock.release()

    def _take_turn(self) -> None:
        assert self._turn is not None
        try:
            self._turn.take(self.timeout)
        except TimeoutError:
            raise StoreError(
                f"Another process has been writing to {self.path} for {self.timeout} s.", fix="Raise `busy_timeout`."
            ) from None

    # -- connections -------------------------------------------------------------------------------------------------

    def _open_writer(self) -> sqlite3.Connection:
        if self._writer is None:
            with self._opening():
                writer = self._given or self._connect()
                try:
                    self._set_up(writer)
                except BaseException:
                    self._writer = None
                    if writer is not self._given:
                        writer.close()
                    raise
        return self._writer  # type: ignore[return-value]  # set up

    @contextmanager
    def _opening(self) -> Iterator[None]:
        """StoreError with the path and a fix when SQLite cannot use the file at all."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            fix = _UNOPENED.get(primary_code(error))
            if fix is None:
                raise
            raise StoreError(f"SQLite cannot open {self.path!r}: {error}.", fix=fix) from error

    def _set_up(self, writer: sqlite3.Connection) -> None:
        self.closed = False
        writer.isolation_level = None
        self.opened(writer)
        writer.execute(f"PRAGMA busy_timeout = {int(self.timeout * 1000)}")
        if self._turn is not None:
            self._make_log(writer, self._turn)
            self._set_up_file(writer)
        self._writer = writer
        if self._given is None:
            writer.execute(f"PRAGMA synchronous = {self.synchronous}")
        with self.writing() as connection:
            self.prepare(connection)

    def _make_log(self, writer: sqlite3.Connection, turn: Turn) -> None:
        """See that the file has a write-ahead log. Of two that make it at once SQLite refuses one, however it waits."""
        mode = writer.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "wal":
            self._take_turn()
            try:
                mode = writer.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            finally:
                turn.give()
        if mode != "wal":
            raise StoreError(f"{self.path} cannot use a write-ahead log (journal_mode is {mode}).")

    def _set_up_file(self, writer: sqlite3.Connection) -> None:
        writer.execute(f"PRAGMA journal_size_limit = {LOG_LIMIT}")
        if sys.platform == "darwin" and self.synchronous == "FULL":
            writer.execute("PRAGMA fullfsync = ON")
        self._file = _identity(self.path)

    def _open_reader(self) -> sqlite3.Connection:
        if self._reader is None:
            with self._write_lock:
                self._open_writer()
            self._reader = self._connect()
            self.opened(self._reader)
            self._reader.execute(f"PRAGMA busy_timeout = {int(self.timeout * 1000)}")
            self._reader.execute("PRAGMA query_only = ON")
        return self._reader

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path or ":memory:", check_same_thread=False, isolation_level=None)

    def _check_file(self) -> None:
        if _identity(self.path) != self._file:
            raise StoreMoved(
                f"{self.path} was moved or replaced while it was open; nothing was written.",
                fix="Open the database again.",
            )

    def close(self) -> None:
        """Close what this object opened, after what is under way on it. A connection that was given stays.

        To close one under a statement of another thread ends the process with a segmentation fault.
        """
        with self._read_lock, self._write_lock:  # in the order in which a reader takes them
            self.closed = True
            self._close()
            if self._turn is not None:  # nobody else is in it, or about to be
                self._turn.close()

    def __del__(self) -> None:
        if hasattr(self, "_turn"):  # its construction came to an end
            self.close()

    def _close(self) -> None:
        for connection in (self._reader, self._writer):
            if connection is not None and connection is not self._given:
                connection.close()
        self._reader = self._writer = None

    def forked(self) -> None:
        """In a child process: leave the parent's handles alone and open new ones when they are needed."""
        self._write_lock, self._read_lock = threading.RLock(), threading.RLock()
        if not self.path:
            return
        _leaked.extend(connection for connection in (self._given, self._reader, self._writer) if connection)
        self._given = self._reader = self._writer = None
        if self._turn is not None:
            self._turn.forget()


def primary_code(error: BaseException | None) -> int:
    """What kind of error SQLite met (SQLITE_FULL, SQLITE_IOERR, ...); 0 for one that is not of SQLite."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_io_error(error: BaseException | None) -> bool:
    """Whether the file system failed, which leaves it open what of a transaction is on disk."""
    return primary_code(error) == sqlite3.SQLITE_IOERR


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _after_fork() -> None:
    for database in list(_databases):
        database.forked()


os.register_at_fork(after_in_child=_after_fork)
