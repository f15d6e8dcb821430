"""A process that is killed at each statement of its run: before the server gets it, and after it has done it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.types import Durability
from tests.kill.story import DONE, afinish, check, finish, stored
from tests.proxy import Proxy, standing

ROOT = Path(__file__).parents[2]

RUN = """
import sys
from tests.kill.test_postgres_every_append import finished
finished(*sys.argv[1:])
"""


def finished(dsn: str, log: str, durability: Durability, driver: str) -> Any:
    """Run the thread to its end."""
    if driver == "async":
        return asyncio.run(awaited(dsn, log, durability))
    with PostgresSaver.from_conn_string(dsn, prepare=False) as saver:
        return finish(saver, Path(log), durability)


async def awaited(dsn: str, log: str, durability: Durability) -> Any:
    """The same, awaited."""
    async with AsyncPostgresSaver.from_conn_string(dsn, prepare=False) as saver:
        return await afinish(saver, Path(log), durability)


@pytest.mark.slow
@pytest.mark.timeout(600)  # a process for each statement
@pytest.mark.acceptance("S1-43")
@pytest.mark.parametrize(("when", "driver"), [("before", "sync"), ("after", "sync"), ("after", "async")])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_is_killed_at_any_statement_goes_on(
    dsn: str, tmp_path: Path, durability: Durability, when: Any, driver: str, request: pytest.FixtureRequest
) -> None:
    empty = request.getfixturevalue("worker_database").empty
    deaths = 0
    with standing(Proxy(dsn)) as proxy:
        while True:
            empty()
            log = tmp_path / f"log-{deaths}"
            log.touch()
            child = subprocess.Popen([sys.executable, "-c", RUN, proxy.dsn, log, durability, driver], cwd=ROOT)
            proxy.on_cut = child.kill
            proxy.cut(deaths + 1, when)
            status = child.wait()
            if status == 0:
                break  # its run has no more statements than that
            deaths += 1
            started = log.read_text().split()
            with PostgresSaver.from_conn_string(dsn) as saver:
                kept = stored(saver)
            log.write_text("")

            assert DONE == finished(dsn, str(log), durability, driver)

            check(started, kept, log.read_text().split(), durability, f"{when} statement {deaths}")
    assert deaths >= 5
