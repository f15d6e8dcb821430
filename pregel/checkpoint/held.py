"""Which runs of this process hold which threads of a saver that keeps no such record itself.

1. A thread is known here only while a run that loaded it lives, so the table does not grow; and one whose last run was
   rolled back until somebody goes on with it, who has to know.
2. A claim is compared with the thread as it was loaded, as a journal does; another process is not seen.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from pregel.checkpoint.keys import id_text
from pregel.checkpoint.records import ROLLED_BACK, Append, Owner, Release, ThreadRow
from pregel.warnings import warn_caller


class Held:
    """A thread, for as long as a run knows it."""

    __slots__ = ("__weakref__", "epoch", "owner", "pin", "release", "run", "seq")

    def __init__(self) -> None:
        self.epoch = self.seq = 0
        self.run: bytes | None = None
        self.owner: Owner | None = None
        self.release: Release | None = None  # how the last run gave it back
        self.pin = ""  # the newest checkpoint when it was claimed


@dataclass(slots=True)
class HeldRow(ThreadRow):
    """A thread's row that keeps its place in the table alive."""

    held: Held | None = None


class HeldThreads:
    """The threads of one saver that runs of this process hold or have looked at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: WeakValueDictionary[str, Held] = WeakValueDictionary()
        self._rolled_back: dict[str, Held] = {}

    def row(self, thread: str) -> HeldRow:
        with self._lock:
            held = self._held.get(thread)
            if held is None:
                held = self._held[thread] = Held()
            return self._row(thread, held)

    def enter(self, append: Append) -> Held | None:
        """The thread when the append may go in; a claim takes it."""
        with self._lock:
            held, claim = self._held.get(append.thread), append.claim
            if held is None or held.seq != append.seq:
                return None
            if claim is None:
                return held if (held.run, held.epoch) == (append.run, append.epoch) else None
            if held.epoch != claim.epoch or not (held.run is None or claim.dead):
                return None
            held.epoch, held.run = max(held.epoch + 1, int(time.time() * 1000)), append.run
            held.owner, held.pin = claim.owner, "" if claim.pin is None else id_text(claim.pin)
            self._rolled_back.pop(append.thread, None)
            return held

    def leave(self, held: Held, append: Append) -> ThreadRow:
        """The row after an append has landed."""
        with self._lock:
            held.seq += append.k
            if append.release is not None:
                held.run, held.owner, held.release = None, None, append.release
                if append.release.reason == ROLLED_BACK:
                    self._rolled_back[append.thread] = held
            return self._row(append.thread, held)

    @staticmethod
    def _row(thread: str, held: Held) -> HeldRow:
        row = HeldRow(
            thread, tno=1, epoch=held.epoch, run=held.run, seq=held.seq, owner=held.owner, pin=held.pin, held=held
        )
        if held.run is None and held.release is not None:
            row.status, row.reason = held.release.status, held.release.reason
            row.asked = "rollback" if row.reason == ROLLED_BACK else ""
        return row


_by_saver: WeakKeyDictionary[Any, HeldThreads] = WeakKeyDictionary()
_making = threading.Lock()


def held_threads(saver: Any) -> HeldThreads:
    """The table of a saver, made when it is first used, which is when it is warned about."""
    with _making:
        threads = _by_saver.get(saver)
        if threads is None:
            threads = _by_saver[saver] = HeldThreads()
        else:
            return threads
    warn_caller(
        f"{type(saver).__name__} has no guarded append: two processes that run one thread overwrite each other's work. "
        "InMemorySaver, SqliteSaver and PostgresSaver as they are keep them apart."
    )
    return threads
