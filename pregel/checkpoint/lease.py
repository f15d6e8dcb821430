"""Who holds a thread: this process as an `Owner`, whether another owner is dead, and the runs that live here.

1. Two owners are one process only when boot id, pid namespace, pid and start ticks agree.
2. A verdict of death is given only about processes of this boot and this pid namespace. About all others the answer is
   "not known to be dead", and the lease's expiry decides.
3. In one process runs are compared, never owners: a run token that is not in `live_runs` belongs to a dead run, and so
   does one whose event loop was closed. A run of this process that lives never lapses for this process.
4. After fork() the child is a new owner, no run lives in it, and its appends have other marks than its parent's; the
   runs that the parent had are disowned, so that their copies never write.
5. Clocks decide when another may take a thread over, never who may write: that is the guard of the append.
"""

from __future__ import annotations

import itertools
import os
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pregel.checkpoint.records import Hold, Owner

LEASE = 30.0
"""Seconds that a claim lasts without being renewed, unless the saver says otherwise."""


class Holder(Protocol):
    """A run that holds a thread, or is about to, as the heartbeat and other runs of this process see it."""

    @property
    def saver(self) -> Any:
        """What stores the thread."""

    @property
    def lease(self) -> float:
        """Seconds that a renewal lasts."""

    @property
    def hold(self) -> Hold | None:
        """What it holds; None before the claim has landed and after it was given back."""

    def has_moved(self, since: float) -> bool:
        """Whether an append has renewed the lease since it was asked last, at `since` (uptime)."""

    def renewed(self, at: float) -> None:
        """The lease was renewed at this uptime."""

    def lapse(self) -> None:
        """The thread is another's now."""

    def heed(self, asked: str) -> None:
        """What another run asks of this one; empty for nothing."""

    def gives_way(self, caller: object) -> bool:
        """Whether nothing of it goes on and nobody pulls, so that a run of `caller` may take its thread."""

    def disown(self) -> None:
        """This is a fork's copy: it must never write."""


live_runs: set[bytes] = set()
"""Run tokens of the claims held here: `add` before the claim is sent, `discard` after the release."""

closed: dict[bytes, Callable[[], bool]] = {}
"""For the tokens of runs on an event loop: whether that was closed, after which nobody can tell of their end."""

_holders: dict[bytes, weakref.ref[Holder]] = {}
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


def uptime() -> float:
    """Seconds by a clock that nobody sets and that goes on while the machine sleeps, where there is one."""
    return time.monotonic() if _BOOTTIME is None else time.clock_gettime(_BOOTTIME)


_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", None)


def hold(run: bytes, holder: Holder) -> None:
    """From here on a run of this process acts on a thread; `release` ends it."""
    _holders[run] = weakref.ref(holder)
    live_runs.add(run)


def release(run: bytes) -> None:
    """A run will not act again. May be called from a destructor."""
    live_runs.discard(run)
    _holders.pop(run, None)


def holders() -> Iterator[Holder]:
    """The runs of this process that hold threads."""
    for reference in list(_holders.values()):
        holder = reference()
        if holder is not None:
            yield holder


def holder_of(run: bytes) -> Holder | None:
    """The run of this process with that token."""
    reference = _holders.get(run)
    return None if reference is None else reference()


def lives_here(owner: Owner | None, run: bytes | None) -> bool:
    """Whether a run of this very process holds a thread and can still act."""
    return owner is not None and run is not None and owner[:4] == this_owner()[:4] and not is_dead(owner, run)


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
    for holder in holders():
        holder.disown()
    live_runs.clear()
    closed.clear()
    _holders.clear()


os.register_at_fork(after_in_child=_after_fork)
