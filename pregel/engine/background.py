"""The background of durability ``async``, for runs that block: it sends what a run held back once a moment has passed.

1. A run that goes on at once takes what it held back along in its next append: two supersteps share a transaction, and
   no thread is woken for either. A run whose node takes longer finds its append sent.
2. One thread keeps the time for all runs. It looks each `MOMENT` while there is something to look at, and hands what it
   saw at its last look to a worker, since an append may take long.
3. What is held back when the interpreter ends is sent then.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

MOMENT = 0.01  # seconds: no node that takes long loses its turn by it, no fast one is disturbed by the thread
LOOKS = 5  # at which no run had come by, before the thread goes to sleep
WORKERS = 16


class Holding(Protocol):
    """A run that may hold something back: an append, or chunks."""

    @property
    def held(self) -> Any:
        """What it holds back; None when that is nothing."""

    def let_go(self, held: Any, /) -> None:
        """Have this sent, unless the run has taken it meanwhile."""

    def flush(self) -> None:
        """Send what is held back."""


class Background:
    """The thread that keeps the time, and the workers that append."""

    def __init__(self, moment: float = MOMENT) -> None:
        self.moment = moment
        self._start_over()

    def _start_over(self) -> None:
        self._fresh: deque[Holding] = deque()
        self._seen: list[tuple[Holding, Any]] = []  # at the last look
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._asleep = False
        self._thread: threading.Thread | None = None
        self._workers: ThreadPoolExecutor | None = None

    def watch(self, run: Holding) -> None:
        """See to it that what this run holds back is sent in a moment or two."""
        self._fresh.append(run)
        if self._thread is None:
            self._start()
        elif self._asleep:
            self._asleep = False
            self._wake.set()

    def submit(self, work: Callable[[], None]) -> Future[None]:
        """Do this on a worker."""
        with self._lock:
            if self._workers is None:
                from concurrent.futures import ThreadPoolExecutor  # only durability "async" needs it

                self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="pregel-journal")
        return self._workers.submit(work)

    def drain(self) -> None:
        """Send all that is held back, at the end of the interpreter."""
        for run in [*self._fresh, *(run for run, _ in self._seen)]:
            run.flush()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._keep_time, name="pregel-journal-clock", daemon=True)
                self._thread.start()

    def _keep_time(self) -> None:
        looks = 0
        while True:
            looks = 0 if self._fresh else looks + 1
            self._look()
            if looks < LOOKS:
                time.sleep(self.moment)
                continue
            self._wake.clear()
            self._asleep = True
            if not self._fresh:  # a run that comes later wakes the thread
                self._wake.wait()
            self._asleep = False
            looks = 0

    def _look(self) -> None:
        """Let go what was seen at the last look, and see what came since."""
        for run, held in self._seen:
            run.let_go(held)
        self._seen = []
        while self._fresh:
            run = self._fresh.popleft()
            held = run.held
            if held is not None:
                self._seen.append((run, held))

    def after_fork(self) -> None:
        """In a child process: its parent sends what its parent held back."""
        self._start_over()


background = Background()
os.register_at_fork(after_in_child=background.after_fork)
atexit.register(background.drain)
