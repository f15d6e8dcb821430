"""The job that deep agents are for: 60 files are searched, three reviewers work side by side, one asks, one report."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import pregel
from pregel.checkpoint.memory import InMemorySaver
from pregel.types import Command
from tests.kill.outside import Outside
from tests.kill.research import CONFIG, FILES, PARTS, POINTS, QUESTION, REPORT, TASK, UNSAFE, build, told

TOP = Path(pregel.__file__).parents[1]


def log_of(directory: Path) -> Counter[str]:
    return Counter((directory / "log").read_text().splitlines())


def check(directory: Path, end: Any) -> None:
    """The report is whole and was published once, and the agent thought each of its thoughts once."""
    assert {"asked": [], "last": "The report is out.", "report": REPORT} == end
    assert [REPORT] == [one.read_text() for one in directory.glob("published-*")]
    log = log_of(directory)
    assert 1 == log["published"]
    assert {f"lead thought {turn}": 1 for turn in range(5)} == {
        line: count for line, count in log.items() if line.startswith("lead")
    }


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
def test_a_repository_is_reviewed_by_three_and_one_of_them_asks(awaited: bool, tmp_path: Path) -> None:
    saver = InMemorySaver()

    def invoke(given: Any) -> Any:
        agent = build(Outside(tmp_path), saver)  # a new one: nothing but the thread goes on
        return told(asyncio.run(agent.ainvoke(given, CONFIG)) if awaited else agent.invoke(given, CONFIG))

    assert [QUESTION] == invoke({"messages": TASK})["asked"]
    end = invoke(Command(resume="is no fault"))

    check(tmp_path, end)
    assert FILES * len(PARTS) == len(list((tmp_path / "repository").rglob("*.py")))
    log = log_of(tmp_path)
    assert {1} == {count for line, count in log.items() if line.startswith(("read", "a", "b", "c", "heard"))}
    assert UNSAFE * len(PARTS) == sum(line.startswith("read") for line in log)


# -- killed ------------------------------------------------------------------------------------------------------------


def play(directory: Path, action: str, kill_at: str) -> Any:
    """What the program said; None when it died."""
    environment = {**os.environ, "PYTHONPATH": str(TOP), "KILL_AT": kill_at}
    command = [sys.executable, "-W", "error", "-m", "tests.kill.research", str(directory), action]
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        return None
    assert (0, "") == (done.returncode, done.stderr)
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.acceptance("S1-60")
@pytest.mark.parametrize(
    ("first", "second"), [(one, other) for at, one in enumerate(POINTS) for other in POINTS[at + 1 :]]
)
def test_the_report_is_written_once_though_the_process_is_killed_twice(first: str, second: str, tmp_path: Path) -> None:
    deaths, action, end = [first, second], "run", None
    for _ in range(6):
        end = play(tmp_path, action, deaths[0] if deaths else "")
        if end is None:
            (tmp_path / "died").unlink()  # the next process may die as well
            deaths.pop(0)
            action = "resume"
        elif end["asked"]:
            assert [QUESTION] == end["asked"]
            action = "answer"
        else:
            break

    assert [] == deaths
    check(tmp_path, end)
    log = log_of(tmp_path)
    assert all(count <= 3 for count in log.values()), log  # what was under way when it died is done again, no more
