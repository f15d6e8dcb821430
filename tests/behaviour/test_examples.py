"""The programs in examples/ run and say what they promise."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


def said(name: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    command = [sys.executable, "-W", "error", str(TOP / "examples" / name)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


@pytest.mark.acceptance("S1-63")
def test_a_tool_call_is_approved_by_another_process() -> None:
    told = said("approval.py")

    assert "asked: {'invoice': '17', 'amount': 900}" in told
    assert "paid 90 for 17" in told


def test_an_agent_hands_over_to_another() -> None:
    told = said("hand_off.py")

    assert "with: refunds" in told
    assert told.endswith("refund: refunded A1\nrefunds: Your money is on its way.\n")
