"""A disk that fails: SQLite's own calls to the file system, answered with errors when a test says so.

1. The default VFS of the SQLite library of this process is patched: each file that is opened while `faulty` is in force
   gets a table of methods of ours, which hand on to the real ones.
2. A fault names the kind of file and the call, when it starts (the nth such call from now on) and how long it lasts.
   The error is what SQLite makes of EIO or ENOSPC; the real call is done first when the fault says `late`.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int64, c_void_p, cast, pointer
from dataclasses import dataclass
from typing import Any, Literal

IOERR_READ, IOERR_WRITE, IOERR_FSYNC, FULL = 266, 778, 1034, 13
MAIN_DB, WAL = 0x100, 0x80000  # flags of xOpen

File = Literal["db", "wal"]
Operation = Literal["read", "write", "sync"]

_Read = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int64)  # of xRead and of xWrite
_Sync = CFUNCTYPE(c_int, c_void_p, c_int)
_Open = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_int, c_void_p)


class _Methods(Structure):
    """sqlite3_io_methods, with what is not ours as plain pointers."""

    _fields_ = [
        ("version", c_int),
        ("close", c_void_p),
        ("read", c_void_p),
        ("write", c_void_p),
        ("truncate", c_void_p),
        ("sync", c_void_p),
        ("others", c_void_p * 13),
    ]


class _Handle(Structure):
    """sqlite3_file."""

    _fields_ = [("methods", POINTER(_Methods))]


class _Vfs(Structure):
    """The head of sqlite3_vfs."""

    _fields_ = [
        ("version", c_int),
        ("handle_size", c_int),
        ("longest", c_int),
        ("next", c_void_p),
        ("name", c_char_p),
        ("data", c_void_p),
        ("open", c_void_p),
    ]


@dataclass
class Fault:
    """A call that fails: the `first` one from now on, and those after it, `times` in all (None: until it is mended)."""

    file: File
    operation: Operation
    code: int
    first: int = 1
    times: int | None = None
    late: bool = False  # the call is done, and then said to have failed
    kills: bool = False  # the process dies, before the call or after it
    seen: Callable[[], object] | None = None  # called as it strikes: what a process that died here would leave


class Disk:
    """What the patched file system does; nothing out of the ordinary until `break_down`."""

    def __init__(self) -> None:
        self.fault: Fault | None = None
        self.calls = 0  # that the fault is about
        self.failed = 0

    def break_down(self, fault: Fault) -> None:
        """From now on this fails."""
        self.fault, self.calls, self.failed = fault, 0, 0

    def mend(self) -> None:
        """All is well again."""
        self.fault = None

    def strikes(self, file: File, operation: Operation) -> Fault | None:
        """The fault, if this call is to fail."""
        fault = self.fault
        if fault is None or (fault.file, fault.operation) != (file, operation):
            return None
        self.calls += 1
        past = self.calls - fault.first
        if past < 0 or (fault.times is not None and past >= fault.times):
            return None
        self.failed += 1
        return fault


_kept: list[Any] = []  # tables and callbacks: a file may be open for as long as the process lives
_tables: dict[tuple[int, str], Any] = {}
_disk: Disk | None = None


def _strike(file: File, operation: Operation) -> Fault | None:
    return None if _disk is None else _disk.strikes(file, operation)


def _table(real: Any, file: File) -> Any:
    """The methods of a file of this kind, over the real ones."""
    address = ctypes.addressof(real.contents)
    if (address, file) in _tables:
        return _tables[address, file]
    table = _Methods.from_buffer_copy(real.contents)
    read, write, sync = _Read(table.read), _Read(table.write), _Sync(table.sync)

    def over(operation: Operation, call: Any) -> Any:
        def method(*args: Any) -> int:
            fault = _strike(file, operation)
            if fault is None:
                return int(call(*args))
            if fault.late:
                call(*args)
            if fault.seen is not None:
                fault.seen()
            if fault.kills:
                os.kill(os.getpid(), signal.SIGKILL)
            return fault.code

        return method

    ours = _Read(over("read", read)), _Read(over("write", write)), _Sync(over("sync", sync))
    table.read, table.write, table.sync = (cast(one, c_void_p).value for one in ours)
    made = pointer(table)
    _kept.extend((table, *ours, read, write, sync))
    _tables[address, file] = made
    return made


def _patched(vfs: Any) -> int:
    """Put our xOpen in the place of the real one, which is returned."""
    real = int(vfs.contents.open)
    call = _Open(real)

    def opened(self: Any, name: Any, handle: int, flags: int, out: Any) -> int:
        code = int(call(self, name, handle, flags, out))
        file: File | None = "db" if flags & MAIN_DB else "wal" if flags & WAL else None
        if code == 0 and file is not None:
            found = _Handle.from_address(handle)
            found.methods = _table(found.methods, file)
        return code

    ours = _Open(opened)
    _kept.extend((ours, call))
    vfs.contents.open = cast(ours, c_void_p).value
    return real


def _default_vfs() -> Any:
    """The VFS that connections of this process use; None when the library does not show its functions."""
    try:
        find = ctypes.CDLL(_sqlite3.__file__).sqlite3_vfs_find
    except AttributeError:
        return None
    find.restype, find.argtypes = POINTER(_Vfs), [c_char_p]
    return find(None)


AVAILABLE = _default_vfs() is not None


@contextmanager
def faulty() -> Iterator[Disk]:
    """The disk of the SQLite connections that are opened inside the block."""
    global _disk
    vfs = _default_vfs()
    disk = _disk = Disk()
    real = _patched(vfs)
    try:
        yield disk
    finally:
        vfs.contents.open = real
        _disk = None
