"""The nets are worth something: each bug of the list is caught by the net that is named beside it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "mutants.py"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_planted_bug_is_caught_by_its_net() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, check=False)

    assert 0 == done.returncode, done.stdout
