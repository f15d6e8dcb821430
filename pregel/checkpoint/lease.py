"""Who holds a thread: this process as an `Owner`, whether another owner is dead, and the runs that live here.

1. Two owners are one process only when boot id, pid namespace, pid and start ticks agree.
2. A verdict of death is given only about processes of this boot and this pid namespace. About all others the answer is
   "not known to be dead", and the lease's expiry decides.
3. In one process runs are compared, never owners: a run token that is not in `live_runs` belongs to a dead run, and so
   does one whose event loop was closed.
4. After fork() the child is a new owner, no run lives in it, and its appends have other marks than its parent's.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

from pregel.checkpoint.records import Owner

live_runs: set[bytes] = set()
"""Run tokens of the claims held here: `add` before the claim is sent, `discard` after the release."""

closed: dict[bytes, Callable[[], bool]] = {}
"""For the tokens of runs on an event loop: whether that was closed, after which nobody can tell of their end."""

GONE = frozenset("ZXx")  # states of /proc/<pid>/stat: zombie, dead

_me: Owner | None = None
_marks = itertools.count(int.from_bytes(os.urandom(8), "big"))


def new_mark() -> bytes:
    """Eight bytes for one append: never the same twice, also not in a forked child."""
    return (next(_marks) & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "big")


def this_owner() -> Owner:
    """This process. Boot id and ticks are empty where there is no /proc, and then no death is ever detected."""
    global _me
    if _me is None:
        _me = Owner(_boot_id(), _pid_namespace(), os.getpid(), _stat(os.getpid())[1], os.uname().nodename)
    return _me


def is_dead(owner: Owner, run: bytes) -> bool:
    """Whether it is certain that `run` of `owner` can never act again."""
    me = this_owner()
    if owner[:4] == me[:4]:
        return run not in live_runs or closed.get(run, _never)()
    if not me.boot or owner.boot != me.boot or owner.pidns != me.pidns:
        return False
    state, ticks = _stat(owner.pid)
    if not state or ticks != owner.ticks:
        return True
    return state in GONE and not _has_other_threads(owner.pid)


def _never() -> bool:
    return False


def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read().strip()
    except OSError:
        return ""


def _pid_namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _stat(pid: int) -> tuple[str, int]:
    """State letter and start ticks of a process; ("", 0) when there is none."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            line = file.read()
    except OSError:
        return "", 0
    fields = line[line.rindex(")") + 2 :].split()  # the name before it may hold anything, also spaces and brackets
    return fields[0], int(fields[19])


def _has_other_threads(pid: int) -> bool:
    """A main thread that ended leaves a zombie leader while the other threads go on."""
    try:
        return len(os.listdir(f"/proc/{pid}/task")) > 1
    except OSError:
        return False


def _after_fork() -> None:
    global _me, _marks
    _me = None
    _marks = itertools.count(int.from_bytes(os.urandom(8), "big"))
    live_runs.clear()
    closed.clear()


os.register_at_fork(after_in_child=_after_fork)
