"""What a program that dies does outside of its thread: it leaves lines in a log, and dies once, where it is told."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path


class Outside:
    """The world: a log of what was done, and the effects that must not happen twice."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._whole = threading.Lock()  # no effect is half done: another thread's death waits for it

    def note(self, line: str) -> None:
        with (self.directory / "log").open("a") as log:
            log.write(f"{line}\n")

    def once(self, key: str, line: str) -> None:
        """Do what the line says, unless it was done under this key before."""
        done = self.directory / f"done-{key}"
        with self._whole:
            if not done.exists():
                done.touch()
                self.note(line)

    def die_at(self, point: str) -> None:
        """SIGKILL, the first time the point is reached that KILL_AT names."""
        mark = self.directory / "died"
        if os.environ.get("KILL_AT") == point and not mark.exists():
            with self._whole:
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
