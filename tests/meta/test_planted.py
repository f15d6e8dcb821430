"""The list of planted bugs follows the code: each finds its place in the source, and its net is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SCRIPTS = TOP / "scripts"
LOOK = r"""
import re
from pathlib import Path
from mutants import MUTANTS

for one in MUTANTS:
    for edit in one.edits:
        if edit.old not in Path(edit.file).read_text():
            print(f"{one.name}: its text is gone from {edit.file}")
    file, *names = one.net.split("::")
    wanted = names[-1].partition("[")[0] if names else ""
    if wanted and f"def {wanted}(" not in Path(file).read_text():
        print(f"{one.name}: {wanted} is gone from {file}")
"""


@pytest.mark.skipif(not SCRIPTS.is_dir(), reason="the scripts come with the source")
def test_every_planted_bug_has_its_place_and_its_net() -> None:
    command = [sys.executable, "-c", LOOK]
    done = subprocess.run(
        command, cwd=TOP, env={"PYTHONPATH": str(SCRIPTS)}, capture_output=True, text=True, check=False
    )

    assert (0, "", "") == (done.returncode, done.stderr, done.stdout)
