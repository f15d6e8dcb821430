"""A cell of the matrix of drivers and savers that a test leaves out is one that docs/limits.md names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parents[2]


def left_out() -> Iterator[tuple[str, str]]:
    """(file, reason) of each ``pytest.skip`` in a behaviour test; one that is computed says what to install."""
    for file in sorted((TOP / "tests" / "behaviour").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "skip":
                reason = node.args[0] if node.args else None
                if isinstance(reason, ast.Constant) and "install" not in str(reason.value):
                    yield str(file.relative_to(TOP)), str(reason.value)


def test_what_is_left_out_is_named() -> None:
    named = " ".join((TOP / "docs" / "limits.md").read_text(encoding="utf-8").split())

    assert [] == [(file, reason) for file, reason in left_out() if f"**{reason}**" not in named]
    assert len(set(left_out())) > 5
