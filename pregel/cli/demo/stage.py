"""Where a demo plays: a directory for its files, a provider, and the child processes that are killed there."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

from pregel.cli.demo.desk import ADDRESS, Desk, child_environment, open_provider
from pregel.cli.screen import Screen

PATIENCE = 60.0  # seconds until something that must happen counts as not happening
PAUSE = 0.01


class DemoFailed(Exception):
    """The demo did not show what it is there to show."""


@dataclass(slots=True)
class Stage:
    """A directory, a provider and a screen. Children run in the directory."""

    directory: Path
    desk: Desk
    screen: Screen
    database: str = "demo.db"
    children: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def path(self) -> str:
        return str(self.directory / self.database)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """A `pregel` process of its own, as a user would start it."""
        self.screen.say(f"$ pregel {shlex.join(arguments)}")
        command = [sys.executable, "-m", "pregel.cli", *arguments, "--db", self.database, "--json"]
        environment = child_environment(**{ADDRESS: self.desk.address})
        pipe = subprocess.PIPE
        child = subprocess.Popen(command, cwd=self.directory, env=environment, stdout=pipe, stderr=pipe, text=True)
        self.children.append(child)
        return child

    def finish(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What a `pregel` process printed as JSON; it must end with this exit code."""
        child = self.start(*arguments)
        try:
            out, err = child.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"pregel {arguments[0]} has not ended after {PATIENCE:g} s.") from None
        if child.returncode != code:
            raise DemoFailed(f"pregel {arguments[0]} ended with {child.returncode} in place of {code}:\n{err}{out}")
        told: dict[str, Any] = json.loads(out)
        return told

    def until(self, happened: Callable[[], bool], what: str, child: subprocess.Popen[str] | None = None) -> None:
        """Waits for what a child does; DemoFailed when the child ends first, or takes too long."""
        deadline = time.monotonic() + PATIENCE
        while not happened():
            if child is not None and child.poll() is not None:
                raise DemoFailed(f"The process ended before {what}:\n{child.communicate()[1]}")
            if time.monotonic() > deadline:
                raise DemoFailed(f"After {PATIENCE:g} s still waiting until {what}.")
            time.sleep(PAUSE)

    def kill(self, child: subprocess.Popen[str]) -> None:
        """SIGKILL: no handler runs, no buffer is flushed, nothing is said goodbye to."""
        child.kill()
        child.communicate()
        self.screen.say(f"$ kill -9 {child.pid}")
        if child.returncode != -signal.SIGKILL:
            raise DemoFailed(f"Process {child.pid} ended with {child.returncode}, not by SIGKILL.")

    def clear(self) -> None:
        """Ends the children that a failed demo left behind."""
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.communicate()


@contextmanager
def open_stage(screen: Screen, *, keep: bool = False) -> Iterator[Stage]:
    """A stage in a temporary directory, which is removed unless it is to be kept."""
    with open_provider() as desk, _directory(keep) as directory:
        stage = Stage(directory, desk, screen)
        try:
            yield stage
        finally:
            stage.clear()


@contextmanager
def _directory(keep: bool) -> Iterator[Path]:
    if keep:
        yield Path(mkdtemp(prefix="pregel-demo-"))
        return
    with TemporaryDirectory(prefix="pregel-demo-") as directory:
        yield Path(directory)
