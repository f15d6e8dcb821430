"""`pregel lint`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pregel.cli import main

BAD = """
import time
from pregel import StateGraph, interrupt

def ask(state):
    time.time()
    return interrupt("?")

graph = StateGraph(dict).add_node("ask", ask)
raise SystemExit("this module was run")
"""
Captured = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "linted").mkdir()
    (tmp_path / "linted" / "bad_flow.py").write_text(BAD)
    (tmp_path / "linted" / "good_flow.py").write_text("import time\n")
    (tmp_path / "linted_flow.py").write_text(BAD)


def test_problems_are_printed_with_their_place_and_their_fix(capsys: Captured) -> None:
    assert 1 == main(["lint", "linted"])

    out = capsys.readouterr().out
    assert out.startswith("linted/bad_flow.py:6:5: PG101 `time.time()` gives another time when node 'ask' runs again")
    assert "Fix: " in out
    assert out.endswith("1 problem in 2 files.\n")


@pytest.mark.parametrize("target", ["linted_flow", "linted_flow:graph", "linted_flow.py"])
def test_a_module_is_found_and_not_run(target: str, capsys: Captured) -> None:
    assert 1 == main(["lint", "--format", "json", target])

    (problem,) = json.loads(capsys.readouterr().out)
    assert ("PG101", 6, 5) == (problem["rule"], problem["line"], problem["column"])


def test_nothing_found_is_0_and_nothing_there_is_2(capsys: Captured) -> None:
    assert 0 == main(["lint", "linted/good_flow.py"])
    assert "No problems in 1 file.\n" == capsys.readouterr().out
    assert 2 == main(["lint", "nowhere.py"])
    assert 2 == main(["lint", "nowhere:graph"])
    assert "nowhere" in capsys.readouterr().err
