"""What a Google-style docstring says about a function and its arguments."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection
from typing import NamedTuple

from pregel.errors import DefinitionError

_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Yields?|Raises|Examples?|Notes?):\s*$")
_ARGUMENT = re.compile(r"^(?P<name>\*{0,2}\w+)(\s*\([^)]*\))?:\s*(?P<text>.*)$")


class Docstring(NamedTuple):
    """The text before the sections, and the text of each argument."""

    summary: str
    arguments: dict[str, str]


def parse_docstring(name: str, text: str, parameters: Collection[str], *, strict: bool) -> Docstring:
    """A docstring, taken apart; DefinitionError when it is `strict` and names an argument that there is not."""
    summary: list[str] = []
    sections: dict[str, list[str]] = {}
    current = summary
    for line in inspect.cleandoc(text).splitlines():
        if match := _SECTION.match(line):
            current = sections.setdefault(match[1], [])
        else:
            current.append(line)
    lines = next((sections[key] for key in ("Args", "Arguments", "Parameters") if key in sections), [])
    arguments = _arguments(lines)
    unknown = sorted(set(arguments) - set(parameters))
    if unknown and strict:
        raise DefinitionError(
            f"The docstring of the tool {name!r} describes {', '.join(map(repr, unknown))}, which it does not take.",
            fix="Rename it there, or pass error_on_invalid_docstring=False.",
        )
    return Docstring("\n".join(summary).strip(), {key: one for key, one in arguments.items() if key in parameters})


def _arguments(lines: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    current, depth = "", 0
    for line in lines:
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        match = _ARGUMENT.match(line.strip())
        if match and (not current or indent <= depth):
            current, depth = match["name"].lstrip("*"), indent
            found[current] = match["text"].strip()
        elif current:
            found[current] = f"{found[current]} {line.strip()}".strip()
    return found
