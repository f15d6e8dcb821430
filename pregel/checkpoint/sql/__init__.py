"""The statements of database savers, each written once, by name, with a line that says what it does."""

from __future__ import annotations

import re
from importlib.resources import files

_HEAD = re.compile(r"^-- (\w+): (.+)$", re.MULTILINE)


def statements(file: str) -> dict[str, str]:
    """The statements of a file of this package: name -> text. Each starts with ``-- name: what it does``."""
    text = (files(__package__) / file).read_text("utf-8")
    heads = list(_HEAD.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    return {head[1]: text[head.end() : end].strip() for head, end in zip(heads, ends, strict=True)}
