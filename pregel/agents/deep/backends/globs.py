"""Which paths a glob means.

1. ``*`` and ``?`` stay within a segment, ``[abc]`` and ``[!abc]`` too; ``**`` as a segment means any number of them;
   ``{a,b}`` means either.
2. A pattern without a slash is matched with the name, at any depth; one with a slash with the whole path as seen from
   where the search began. A leading slash means the same, from the root.
3. A name that starts with a dot is only meant by a segment that does, or by a pattern for names alone; a rule
   (`hidden`) means it like any other: what protects a directory protects its ``.env``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from pregel.agents.deep.backends.errors import Refused

MOST_BRACES = 200
"""Patterns that braces may stand for."""


@lru_cache(maxsize=256)
def matcher(pattern: str, *, hidden: bool = False) -> Callable[[str], bool]:
    """Whether a relative path matches; Refused for a pattern that goes up, or stands for too many.

    `hidden`: any part of the pattern may mean a name with a leading dot.
    """
    if ".." in pattern.split("/"):
        raise Refused("invalid_path", f"the pattern {pattern!r} goes up with '..'.")
    by_name = "/" not in pattern
    expressions = [re.compile(_expression(one, hidden or by_name, hidden)) for one in _braces(pattern.lstrip("/"))]

    def matches(path: str) -> bool:
        text = path.rpartition("/")[2] if by_name else path
        return any(expression.fullmatch(text) for expression in expressions)

    return matches


def _braces(pattern: str) -> list[str]:
    """The patterns that one with braces stands for."""
    found: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop()
        if len(found) + len(waiting) > MOST_BRACES:
            raise Refused("invalid_path", f"the pattern {pattern!r} stands for more than {MOST_BRACES} others.")
        inner = re.search(r"\{([^{}]*,[^{}]*)\}", one)
        if inner is None:
            found.append(one)
        else:
            waiting += [one[: inner.start()] + part + one[inner.end() :] for part in inner[1].split(",")]
    return found


def _expression(pattern: str, dots: bool, deep_dots: bool) -> str:
    """`dots`: ``*`` means names with a leading dot; `deep_dots`: ``**`` does."""
    parts: list[str] = []
    any_name = "[^/]+" if deep_dots else "[^/.][^/]*"
    segments = pattern.split("/")
    for index, segment in enumerate(segments):
        last = index == len(segments) - 1
        if segment == "**":
            parts.append(f"(?:{any_name}/)*" + (any_name if last else ""))
        else:
            hidden = "" if dots or segment.startswith((".", "[")) else r"(?!\.)"
            parts.append(hidden + _segment(segment) + ("" if last else "/"))
    return "".join(parts)


def _segment(segment: str) -> str:
    parts: list[str] = []
    at = 0
    while at < len(segment):
        character = segment[at]
        at += 1
        if character == "*":
            parts.append("" if parts and parts[-1] == "[^/]*" else "[^/]*")
        elif character == "?":
            parts.append("[^/]")
        elif character == "[" and (end := segment.find("]", at + 1)) != -1:
            chosen = segment[at:end]
            negated, chosen = chosen.startswith("!"), chosen.removeprefix("!")
            escaped = re.sub(r"([\\\[\]^&~|])", r"\\\1", chosen)
            parts.append(f"(?!/)[{'^' if negated else ''}{escaped}]" if chosen else re.escape("[]"))
            at = end + 1
        else:
            parts.append(re.escape(character))
    return "".join(part for part in parts if part)
