"""Every saver knows every statement that a flow asks for, and the list of them is neither too long nor too short."""

from __future__ import annotations

import ast
from importlib.resources import files
from pathlib import Path

import pytest

from pregel.checkpoint import chunks, flows, foreign, housekeeping, items, verify, waits
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sql import ASKED, GUARDS, statements

TREES = [
    ast.parse(Path(module.__file__ or "").read_text("utf-8"))
    for module in (chunks, flows, foreign, housekeeping, items, verify, waits)
]
FILES = sorted(
    entry.name
    for entry in files("pregel.checkpoint.sql").iterdir()
    if entry.name.endswith(".sql") and not entry.name.endswith("_schema.sql")
)


def test_the_list_names_only_what_flows_ask_for() -> None:
    texts = {node.value for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.Constant)}

    assert set() == (ASKED | GUARDS) - texts


def test_flows_ask_for_nothing_that_is_not_listed() -> None:
    calls = [node for tree in TREES for node in ast.walk(tree) if isinstance(node, ast.Call)]
    asked = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id in ("Sql", "Many")]

    assert set() == {name.value for name in asked if isinstance(name, ast.Constant)} - ASKED - GUARDS


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_statements_has_them_all(file: str) -> None:
    names = {name.removesuffix("_rows") for name in statements(file)}  # one for a row, one for many, or both

    assert set() == (ASKED | GUARDS) - names


def test_the_memory_saver_has_them_all() -> None:
    assert ASKED == {name.removeprefix("_do_") for name in dir(InMemorySaver) if name.startswith("_do_")}
