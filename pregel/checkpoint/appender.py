"""A run's short way into a store in memory: its usual supersteps are kept as they come, without an `Append`.

1. The guard is the one of `InMemorySaver.append`: the thread still is the one that was claimed, and says (epoch, run,
   seq) as expected. What does not land changes nothing.
2. What is kept is made before the lock is taken: what cannot be stored is refused first, and nothing changes it later.
3. No answer can get lost between two functions, so a step has no mark: nobody sends it again.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from time import time
from typing import Any

from pregel.checkpoint.late import LateLedger
from pregel.checkpoint.memory_rows import Thread
from pregel.checkpoint.records import Hold, Lone


class Appender:
    """Appends the usual supersteps of one run. Whatever else it has to say goes through the saver's `append`."""

    __slots__ = ("_hold", "_ledger", "_lock", "_thread", "_threads")

    def __init__(
        self,
        lock: AbstractContextManager[Any],
        threads: Mapping[str, Thread],
        thread: str,
        hold: Hold,
        ledger: LateLedger,
    ) -> None:
        self._lock, self._threads = lock, threads
        self._thread, self._hold = thread, hold
        self._ledger = ledger

    def append(self, lone: Lone, seq: int) -> str | None:
        """Keep a superstep on top of the record `seq`; what another run asks for, mostly nothing.

        None when the thread is not this run's any more. SerializationError when a value cannot be stored.
        """
        now = time()
        said = self._ledger.step(lone, seq + 1, now)
        tno, epoch, run = self._hold
        with self._lock:
            thread = self._threads.get(self._thread)
            if thread is None or thread.seq != seq or thread.run != run or thread.epoch != epoch or thread.tno != tno:
                return None
            thread.hears(self._ledger).append(said)
            thread.seq, thread.mark = seq + 1, b""
            thread.updated_at, thread.expires = now, now + thread.ttl
            return thread.asked
