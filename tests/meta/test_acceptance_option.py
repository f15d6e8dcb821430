"""The `--acceptance` option, tried on a small project of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"

STATEMENTS = """
- **S1-2** Decided beside the list.
## S1
- **S1-10** Ten.
- **S1-2** Two.
- **S1-3** Three.
- **S1-4** Four.
"""

TESTS = """
import pytest

@pytest.mark.slow
@pytest.mark.acceptance("S1-2", "S1-3")
def test_two_statements(): pass

@pytest.mark.acceptance("S1-3")
def test_one_of_them_fails(): assert False

@pytest.mark.acceptance("S1-4")
def test_a_skipped_proof(): pytest.skip("no server")

def test_no_proof_of_anything(): assert False
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "acceptance.md").write_text(STATEMENTS, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\naddopts = -m 'not slow' --strict-markers\nmarkers =\n    slow:\n    acceptance(*ids):\n"
    )
    shutil.copy(CONFTEST, tmp_path / "conftest.py")
    return tmp_path


def pytest_in(project: Path, *options: str) -> list[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "PYTHONPATH"))}
    command = [sys.executable, "-m", "pytest", "-p", "no:randomly", *options]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_a_session_ends_with_one_line_per_statement(project: Path, workers: str) -> None:
    (project / "test_it.py").write_text(TESTS, encoding="utf-8")

    lines = pytest_in(project, "--acceptance", "-n", workers)

    expected = ["S1-2 pass", "S1-3 fail", "S1-4 missing", "S1-10 missing", "1 pass, 1 fail, 2 missing, of 4"]
    assert expected == lines[-5:]
    assert "1 failed, 1 passed, 1 skipped" in lines[-6]


def test_an_unknown_statement_fails_its_test_in_a_plain_run(project: Path) -> None:
    marked = '@pytest.mark.acceptance("S9-1")\ndef test_it(): pass\n'
    (project / "test_it.py").write_text(f"import pytest\n{marked}", encoding="utf-8")

    lines = pytest_in(project, "-n", "0")

    assert "docs/acceptance.md has no statement S9-1." in lines
    assert "1 error" in lines[-1]
