"""The heartbeat: one daemon thread of this process that renews the leases of its runs between their appends.

1. An append renews its run's lease, so a run that appends often is never renewed here: the thread looks every third of
   the shortest lease, and renews what has not moved since it looked last. Two thirds of a lease are over at most.
2. One saver's runs are renewed in one transaction. A store that does not answer costs its own runs their leases, never
   the authority over what nobody else took.
3. A run that was given up without a release is let go of at once, so that nobody waits for its lease.
4. The thread ends when there was nothing to do for a while; in a forked child there is none.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from pregel.checkpoint import lease
from pregel.checkpoint.records import Hold

PAUSE = 10.0  # seconds between two looks when no lease asks for a shorter time

log = logging.getLogger("pregel.checkpoint.heartbeat")
log.addHandler(logging.NullHandler())


class Dropped(NamedTuple):
    """A claim that its run gave up."""

    saver: Any
    hold: Hold


class Heartbeat:
    """The thread and when it looks next. `look` is one look, for callers with a clock of their own."""

    def __init__(self) -> None:
        self._news: SimpleQueue[Dropped | None] = SimpleQueue()  # may be put to from a destructor
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._pause = PAUSE
        self._looked = lease.uptime()

    def watch(self, ttl: float) -> None:
        """Look at the runs that hold threads within a third of `ttl` seconds."""
        if self._thread is None:
            self._start()
        if ttl / 3 < self._pause:
            self._news.put(None)

    def drop(self, saver: Any, hold: Hold) -> None:
        """Let go of a thread whose run will not act any more. Never blocks."""
        if hasattr(saver, "renew"):
            self._news.put(Dropped(saver, hold))

    def look(self, now: float) -> float:
        """Renew what has not moved since the last look; the seconds until the next."""
        pause = PAUSE
        due: dict[int, list[lease.Holder]] = {}
        since, self._looked = self._looked, now
        for holder in lease.holders():
            if holder.hold is None:
                continue
            pause = min(pause, holder.lease / 3)
            if not holder.has_moved(since):
                due.setdefault(id(holder.saver), []).append(holder)
        for holders in due.values():
            self._renew(holders, now)
        return pause

    def _renew(self, holders: list[lease.Holder], now: float) -> None:
        holds = {holder.hold: holder for holder in holders if holder.hold is not None}
        try:
            kept = holders[0].saver.renew(list(holds))
        except Exception as error:  # a store that is away: the runs renew before they start another task
            log.warning("%d leases could not be renewed: %s", len(holds), error)
            return
        for hold, holder in holds.items():
            if hold.run in kept:
                holder.renewed(now)
                holder.heed(kept[hold.run])
            else:
                holder.lapse()

    # -- the thread ------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._pause = PAUSE
                self._thread = threading.Thread(target=self._run, name="pregel-heartbeat", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            self._drop(self._heard())
            self._pause = self.look(lease.uptime())
            if self._may_end():
                return

    def _heard(self) -> Iterable[Dropped]:
        dropped = []
        try:
            news = self._news.get(timeout=self._pause)
            while True:
                if news is not None:
                    dropped.append(news)
                news = self._news.get_nowait()
        except Empty:
            return dropped

    def _drop(self, dropped: Iterable[Dropped]) -> None:
        for saver, hold in dropped:
            try:
                saver.renew([hold], keep=False)
            except Exception as error:  # its lease runs out all the same
                log.info("a claim that was given up could not be let go of: %s", error)

    def _may_end(self) -> bool:
        """Whether nothing is left to do; a run that came meanwhile keeps the thread."""
        if any(True for _ in lease.holders()):
            return False
        with self._lock:
            self._thread = None
            if any(True for _ in lease.holders()) or not self._news.empty():
                self._thread = threading.current_thread()
                return False
        return True


heartbeat = Heartbeat()


def _after_fork() -> None:
    heartbeat.__init__()  # type: ignore[misc]  # its thread is the parent's


os.register_at_fork(after_in_child=_after_fork)
