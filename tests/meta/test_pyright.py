"""Pyright sees in the typing tests what mypy sees. It is no dependency: it fetches its own program over the network."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_pyright_accepts_what_is_right_and_objects_to_what_is_wrong() -> None:
    pyright = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pip install pyright")

    done = subprocess.run([pyright, "--pythonpath", sys.executable], cwd=ROOT, capture_output=True, text=True)

    assert (0, "0 errors") == (done.returncode, done.stdout.strip().splitlines()[-1][:8]), done.stdout
