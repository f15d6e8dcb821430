"""Every import that the page for those who move over promises works."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "migration.md"
ROW = re.compile(r"^\| `(?P<there>[\w.]+)` \| `(?P<here>pregel[\w.]*)` \| (?P<names>(?:`\w+` ?)+) \|$", re.MULTILINE)
MOVES = [(row["there"], row["here"], re.findall(r"\w+", row["names"])) for row in ROW.finditer(PAGE.read_text("utf-8"))]


@pytest.mark.parametrize(("there", "here", "names"), MOVES, ids=lambda part: part if isinstance(part, str) else "")
def test_what_stands_for_an_import_can_be_imported(there: str, here: str, names: list[str]) -> None:
    module = importlib.import_module(here)

    assert [] == [name for name in names if not hasattr(module, name)]


def test_every_line_of_the_table_is_read_and_every_library_is_there() -> None:
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]

    assert len(lines) == len(MOVES)
    assert {"langgraph", "langchain", "langchain_core", "deepagents"} <= {there.split(".")[0] for there, _, _ in MOVES}
