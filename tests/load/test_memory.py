"""What memory large runs take, and that a process that goes on for long takes no more and no more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from .programs import start, told

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="the peak of one process is read from /proc"),
]
MB = 1024  # kilobytes


@pytest.mark.parametrize(
    ("program", "size", "most"),
    [("fan_out", 100_000, 300 * MB), ("conversation", 5_000, 60 * MB), ("crowd", 1_000, 80 * MB)],
)
def test_a_large_run_takes_no_more_memory_than(program: str, size: int, most: int, tmp_path: Path) -> None:
    more: list[Any] = [tmp_path / "t.db"] if program == "conversation" else []

    peak = told(start(program, size, *more))

    print(f"{program} of {size:,}: {peak / MB:.0f} MB above the idle process")
    assert peak < most


def test_ten_thousand_runs_leave_nothing_behind(tmp_path: Path) -> None:
    marks = told(start("many_runs", 10_000, tmp_path / "t.db"))

    print(f"after each tenth (blocks, kB): {marks}")
    (blocks, memory), (blocks_late, memory_late) = marks[3], marks[-1]  # until then bounded caches of ids fill
    assert blocks_late - blocks < 600  # of 6,000 runs: not one object of every tenth stays
    assert memory_late - memory < 4 * MB
