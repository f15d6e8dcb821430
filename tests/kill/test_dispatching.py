"""The process of a run is killed while another engine does its work: that work is taken, not done again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def program(name: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A program of this folder, which ends with the block."""
    command = [sys.executable, "-m", f"tests.kill.{name}", str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.acceptance("S0-17")
def test_work_that_another_engine_does_survives_the_process_of_its_run(tmp_path: Path) -> None:
    for name in ("begun", "go"):
        os.mkfifo(tmp_path / name)
    with program("engine", tmp_path) as engine:
        assert engine.stdout is not None
        assert "ready\n" == engine.stdout.readline()
        with program("dispatching", tmp_path) as killed:
            assert "begun" == (tmp_path / "begun").read_text()
            os.kill(killed.pid, signal.SIGKILL)
        (tmp_path / "go").write_text("go")  # the engine goes on by itself

        with program("dispatching", tmp_path) as resumed:
            assert resumed.stdout is not None
            told = json.loads(resumed.stdout.readline())

    assert ["car", "flight", "reviewed 2"] == told
    assert ["car", "flight"] == sorted((tmp_path / "booked").read_text().split())
