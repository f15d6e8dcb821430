"""The head of a SKILL.md: YAML between two lines of ``---``, at the very beginning. Needs PyYAML (extra ``agents``)."""

from __future__ import annotations

from typing import Any

from pregel.extras import extra


class FrontmatterError(ValueError):
    """The head of a skill cannot be read."""


def frontmatter(text: str) -> dict[str, Any]:
    """The head as a dict; FrontmatterError when there is none, or it is no YAML mapping."""
    with extra("agents", "The head of a skill"):  # only those who use skills need it
        import yaml

    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0] != "---":
        raise FrontmatterError("it does not begin with a line of ---")
    if "---" not in lines[1:]:
        raise FrontmatterError("its head does not end with a line of ---")
    try:
        found = yaml.safe_load("\n".join(lines[1 : lines.index("---", 1)]))
    except yaml.YAMLError as error:
        raise FrontmatterError(f"its head is no YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise FrontmatterError("its head is no mapping")
    return found
