"""One thing that a review found, and where."""

from __future__ import annotations

import ast
from typing import NamedTuple


class Finding(NamedTuple):
    """What is wrong at a line (from 1) and column (from 0). Findings sort by place."""

    line: int
    column: int
    rule: str
    message: str

    @classmethod
    def at(cls, node: ast.AST, rule: str, message: str) -> Finding:
        return cls(int(getattr(node, "lineno", 1)), int(getattr(node, "col_offset", 0)), rule, message)
