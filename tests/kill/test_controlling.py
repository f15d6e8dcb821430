"""A controller that is alone and entities, over many processes of which some are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from .owners import ROOT, saver_at
from .points import thinned
from .test_agents import play

PROCESSES = 6
POINTS = (
    *(
        f"{when} {what}"
        for what in ("the start", "the taking", "the state", "the rest")
        for when in ("before", "after")
    ),
    "in the handler",
)


class World:
    """One store over many processes."""

    def __init__(self, directory: Path, store: str) -> None:
        self.directory, self.store = directory, store

    def __call__(self, *words: str, kill_at: str = "") -> Any:
        """What a process said; None when it died."""
        return play(self.directory, self.store, *words, kill_at=kill_at, program="controlling")

    def starts(self, key: str, processes: int = PROCESSES) -> list[Any]:
        """What so many processes were given that started it at once."""
        command = [sys.executable, "-m", "tests.kill.controlling", str(self.directory), self.store, "start", key]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        with ExitStack() as stack:
            started = [
                stack.enter_context(
                    subprocess.Popen(
                        command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
                    )
                )
                for _ in range(processes)
            ]
            for process in started:
                assert process.stdout is not None
                assert "ready\n" == process.stdout.readline()
            for process in started:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
            return [json.loads(process.communicate(timeout=60)[0]) for process in started]


@pytest.fixture(params=["sqlite", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    store = str(tmp_path / "threads.db") if request.param == "sqlite" else request.getfixturevalue("dsn")
    return World(tmp_path, store)


@pytest.mark.acceptance("S2-29")
def test_of_many_processes_that_start_a_controller_one_does_and_each_learns_which_it_is(world: World) -> None:
    told = world.starts("one")

    assert 1 == sum(not one["existing"] for one in told)
    assert 1 == len({(one["thread"], one["run"]) for one in told})
    with saver_at(world.store) as saver:
        assert ["pending"] == [row.status for row in saver.threads()]


@pytest.mark.acceptance("S2-29")
@pytest.mark.parametrize("point", thinned(["before the end", "after the end", "before the start", "after the start"]))
def test_a_signal_between_the_last_read_and_the_end_is_read_wherever_a_process_dies(world: World, point: str) -> None:
    world.starts("one", 1)
    died = [world("work", kill_at=point) is None for _ in range(2)]

    got = world("work")

    assert any(died)
    assert ["late"] == [one for one in got if one is not None]


@pytest.mark.acceptance("S2-27")
@pytest.mark.parametrize("point", thinned(POINTS))
def test_an_operation_counts_once_wherever_a_process_dies(world: World, point: str) -> None:
    for number in (1, 2, 3):
        while world("signal", f"e{number}", str(number), kill_at=point) is None:
            pass  # at least once: who does not know sends it again
    died = [world("serve", kill_at=point) is None for _ in range(2)]

    assert {"sum": 6, "ids": ["e1", "e2", "e3"]} == world("serve")
    assert any(died) or "the start" in point
    assert (world.directory / "died").exists()
    assert world("signal", "e2", "2")["repeated"]
