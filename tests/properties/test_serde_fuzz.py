"""Whatever the stored bytes are: a value or the named error, nothing foreign built or imported, bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
ZONES = "tzdata"  # Python's package of time zones is looked into for a zone that the system has not


def fuzz(count: int, seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.properties.fuzz_serde", str(count), str(seed)]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr[-2000:]  # a crash of the process is what this would show
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def check(found: dict[str, Any], count: int) -> None:
    events = {event for event in found["events"] if ZONES not in event and "importlib" not in event}

    assert [] == found["wrong"]
    assert set() == events
    assert [] == found["ran"]
    assert 64 > found["megabytes"]
    assert 100_000 > found["most calls"]  # of functions, by one input: 1,000, or without end
    assert count == found["outcomes"]["value"] + found["outcomes"]["error"]
    assert found["outcomes"]["value"] > count / 20  # otherwise the inputs would be too far from anything valid


def test_a_few_thousand_inputs() -> None:
    check(fuzz(4_000, seed=0), 4_000)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 5))
def test_200_000_inputs(seed: int) -> None:
    check(fuzz(50_000, seed), 50_000)
