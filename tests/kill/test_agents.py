"""An agent whose process is killed at every point that matters: nothing is done twice, nothing shown is replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.kill import bookings, sessions
from tests.kill.incident import POINTS

TOP = Path(__file__).parents[2]


def play(directory: Path, *action: str, kill_at: str = "", program: str = "incident") -> Any:
    """What the program said; None when it died."""
    environment = {**os.environ, "PYTHONPATH": str(TOP), "KILL_AT": kill_at}
    command = [sys.executable, "-W", "error", "-m", f"tests.kill.{program}", str(directory), *action]
    done = subprocess.run(command, cwd=TOP, env=environment, capture_output=True, text=True, check=False)
    if done.returncode == -signal.SIGKILL:
        return json.loads(done.stdout) if done.stdout else None
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.acceptance("S2-31", "S2-32", "S5-4")
@pytest.mark.parametrize("point", POINTS)
def test_an_incident_is_handled_once_wherever_its_process_dies(point: str, tmp_path: Path) -> None:
    told = play(tmp_path, "run", kill_at=point) or play(tmp_path, "resume", kill_at=point)
    (asked,) = told["asked"]
    proposal = asked["action_requests"][0]["args"]["proposal"]

    again = play(tmp_path, "resume", kill_at=point)
    assert told["asked"] == again["asked"]
    told = play(tmp_path, "approve", kill_at=point) or play(tmp_path, "resume", kill_at=point)

    log = Counter((tmp_path / "log").read_text().splitlines())
    assert (1, 1) == (log["read logs"], log["read metrics"])
    assert 1 == log[f"remediated {proposal}"]
    assert 1 == sum(count for line, count in log.items() if line.startswith("remediated"))
    assert (2 if point == "proposal made" else 1) == log["asked for a proposal"]
    assert told["last"].startswith("done: change-")
    assert (tmp_path / "died").exists()


@pytest.mark.slow
@pytest.mark.acceptance("S0-14")
@pytest.mark.parametrize("point", bookings.POINTS)
def test_parallel_agents_come_to_checked_results_wherever_their_process_dies(point: str, tmp_path: Path) -> None:
    assert play(tmp_path, kill_at=point, program="bookings") is None

    told = play(tmp_path, kill_at=point, program="bookings")

    assert ["failed", "booked", "needs_input"] == [one["status"] for one in told]
    assert ["car", "flight", "hotel"] == [one["number"].partition("-")[0] for one in told]
    log = Counter((tmp_path / "log").read_text().splitlines())
    assert [1, 1, 1] == [log[f"booked {kind}"] for kind in bookings.KINDS]
    asked = {line: count for line, count in log.items() if line.startswith("asked")}
    assert 6 == len(asked)
    if point == "flight recorded":
        assert {1} == set(asked.values())
    assert set(asked.values()) <= {1, 2}


@pytest.mark.slow
@pytest.mark.acceptance("S1-63", "S2-31")
def test_the_demo_of_an_agent_needs_nothing_but_this_machine() -> None:
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    command = [sys.executable, "-W", "error", "-m", "pregel.cli", "demo", "agent"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert (0, "") == (done.returncode, done.stderr)
    assert "Your trip is confirmed: TRIP-1001." in done.stdout


FIRST, SECOND = [1, "rolled_over", 2, "after 1"], [2, "rolled_over", 2, "after 2"]


@pytest.mark.acceptance("S6-10", "S6-11")
@pytest.mark.parametrize(
    ("point", "before", "asked"),
    [
        ("handing over", [[1, "interrupted", 2, ""]], 5),
        ("handed over", [[1, "rolled_over", 2, "after 1"], [2, "interrupted", 0, ""]], 6),
        ("in the tool", [[1, "rolled_over", 2, "after 1"], [2, "interrupted", 1, ""]], 5),
        (
            "at the end",
            [[1, "rolled_over", 2, "after 1"], [2, "rolled_over", 2, "after 2"], [3, "interrupted", 0, ""]],
            6,
        ),
    ],
)
def test_a_session_hands_over_once_wherever_its_process_dies(
    point: str, before: list[Any], asked: int, tmp_path: Path
) -> None:
    assert play(tmp_path, kill_at=point, program="sessions") is None

    stood, found, over = play(tmp_path, kill_at=point, program="sessions")

    assert ("abandoned", before) == (stood, found)
    assert [FIRST, SECOND, [3, "succeeded", 1, ""]] == over
    log = Counter((tmp_path / "log").read_text().splitlines())
    assert [1] * sessions.CALLS == [log[f"built {part}"] for part in range(sessions.CALLS)]
    assert asked == sum(count for line, count in log.items() if line.startswith("asked"))
