"""Whose turn it is to write to a file that several processes share: a lock file that queues them.

SQLite's own busy handler lets one writer starve the others; a blocking flock around each write is fair.
"""

from __future__ import annotations

import os
import threading

try:
    import fcntl
except ImportError:  # where there is no flock, the database's own waiting has to do
    fcntl = None  # type: ignore[assignment]


class Turn:
    """One process's place in the queue of a lock file. Not for two threads at once."""

    __slots__ = ("fd", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1

    def take(self, timeout: float) -> None:
        """Wait for the turn; TimeoutError after `timeout` seconds."""
        if fcntl is None:
            return
        if self.fd < 0:
            self.fd = self._open()
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._wait(timeout)

    def give(self) -> None:
        """Let the next one write."""
        if fcntl is not None and self.fd >= 0:
            fcntl.flock(self.fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leave the queue."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def forget(self) -> None:
        """After fork: the descriptor shares its lock with the parent, so the child needs one of its own."""
        self.close()

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)

    def _wait(self, timeout: float) -> None:
        """Queue up in a thread, since a blocking flock cannot be given a timeout; a late turn is given back."""
        claim = threading.Lock()  # who comes first: the turn, or the end of patience
        fresh = self._open()
        ready = threading.Event()

        def queue() -> None:
            fcntl.flock(fresh, fcntl.LOCK_EX)
            if claim.acquire(blocking=False):
                ready.set()
            else:
                os.close(fresh)

        threading.Thread(target=queue, name="pregel-turn", daemon=True).start()
        if not ready.wait(timeout) and claim.acquire(blocking=False):
            raise TimeoutError
        ready.wait()  # at the very end of patience the turn may have come first
        os.close(self.fd)
        self.fd = fresh
