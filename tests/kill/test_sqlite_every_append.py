"""A process that is killed at each append of its run, before and after it, and at each write to the log."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Literal

import pytest

from pregel.checkpoint.records import Append, Receipt
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.types import Durability
from tests.disk import AVAILABLE, IOERR_WRITE, Fault, faulty
from tests.kill.story import DONE, afinish, check, finish, stored

ROOT = Path(__file__).parents[2]
When = Literal["before", "after"]

ZYGOTE = """
import sys
from tests.kill.test_sqlite_every_append import zygote
zygote(*sys.argv[1:])
"""


class Killing(SqliteSaver):
    """Dies at its nth append."""

    nth, when, appends = 0, "before", 0

    def append(self, append: Append) -> Receipt:
        self.appends += 1
        if (self.appends, self.when) == (self.nth, "before"):
            os.kill(os.getpid(), signal.SIGKILL)
        receipt = super().append(append)
        if self.appends == self.nth:
            os.kill(os.getpid(), signal.SIGKILL)
        return receipt


def zygote(here: str, point: str, when: When, durability: Durability, driver: str) -> None:
    """Forks a run for each point that there is, kills it there, has another one go on; tells of each as a line."""
    for nth in count(1):
        path, log = f"{here}/{nth}.db", Path(f"{here}/{nth}.log")
        log.touch()
        status, _ = forked(lambda: run(path, log, durability, driver, point, nth, when))  # noqa: B023
        if status == 0:
            return  # its run has no more points than that
        started = log.read_text().split()
        with SqliteSaver.from_conn_string(path) as saver:
            kept = sorted(stored(saver))
        log.write_text("")
        _, values = forked(lambda: run(path, log, durability, driver))  # noqa: B023
        print(json.dumps([nth, started, kept, log.read_text().split(), values]), flush=True)


def run(
    path: str, log: Path, durability: Durability, driver: str, point: str = "", nth: int = 0, when: str = ""
) -> Any:
    """Run the thread to its end, or to the point where it is killed."""
    with faulty() as disk, Killing.from_conn_string(path, synchronous="NORMAL") as saver:
        if point == "append":
            saver.nth, saver.when = nth, when
        elif point == "write":
            disk.break_down(Fault("wal", "write", IOERR_WRITE, nth, late=when == "after", kills=True))
        if driver == "async":
            return asyncio.run(afinish(saver, log, durability))
        return finish(saver, log, durability)


def forked(work: Callable[[], Any]) -> tuple[int, Any]:
    """The status of a child that does this, and its result."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(work()).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return status, json.loads(told) if told else None


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.acceptance("S1-43")
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize(
    ("point", "when", "driver"),
    [
        ("append", "before", "sync"),
        ("append", "before", "async"),
        ("append", "after", "sync"),
        ("append", "after", "async"),
        pytest.param(
            "write", "before", "sync", marks=pytest.mark.skipif(not AVAILABLE, reason="SQLite shows no functions")
        ),
    ],
)
def test_a_run_that_is_killed_anywhere_goes_on(
    tmp_path: Path, point: str, durability: Durability, when: When, driver: str
) -> None:
    arguments = [str(tmp_path), point, when, durability, driver]
    told = subprocess.run(
        [sys.executable, "-c", ZYGOTE, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert "" == told.stderr
    deaths = [json.loads(line) for line in told.stdout.splitlines()]
    assert len(deaths) >= 4
    for nth, started, kept, again, values in deaths:
        assert DONE == values, f"killed {when} {point} {nth}"
        check(started, set(kept), again, durability, f"{when} {point} {nth}")
