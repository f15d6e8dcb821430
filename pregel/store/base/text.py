"""Which texts of a document are searched by meaning: paths, and what they lead to.

A path is keys joined by dots; ``[0]``, ``[-1]`` and ``[*]`` pick from a list, ``*`` is every value of a dict or list,
``{a,b.c}`` is several paths at once, and ``$`` is the whole document as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def tokenize_path(path: str) -> list[str]:
    """The parts of a path: dots separate them outside of brackets and braces, an index is a part of its own."""
    if not path:
        return []
    parts: list[str] = []
    part, closing = "", ""
    for char in path:
        if closing:
            part += char
            closing = "" if char == closing else closing
            continue
        if char == "." or char == "[":
            if part:
                parts.append(part)
            part = ""
        if char in "[{":
            closing = "]" if char == "[" else "}"
        if char != ".":
            part += char
    return [*parts, part] if part else parts


def get_text_at_path(obj: Any, path: str | list[str]) -> list[str]:
    """The texts that a path leads to, none where it leads nowhere or to None. Dicts and lists become sorted JSON."""
    parts = path if isinstance(path, list) else tokenize_path(path)
    if not parts or parts == ["$"]:
        return [_json(obj)]
    return [text for found in _found(obj, parts) if (text := _text(found)) is not None]


def _found(value: Any, parts: Sequence[str]) -> Iterator[Any]:
    if not parts:
        yield value
        return
    part, rest = parts[0], parts[1:]
    for inner in _step(value, part):
        yield from _found(inner, rest)


def _step(value: Any, part: str) -> Iterator[Any]:
    if part.startswith("{") and part.endswith("}"):
        for path in part[1:-1].split(","):
            yield from _found(value, tokenize_path(path.strip()))
    elif part == "*":
        yield from value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    elif part.startswith("[") and part.endswith("]"):
        yield from _indexed(value, part[1:-1].strip())
    elif isinstance(value, Mapping) and part in value:
        yield value[part]


def _indexed(value: Any, index: str) -> Iterator[Any]:
    if not isinstance(value, list):
        return
    if index == "*":
        yield from value
        return
    try:
        yield value[int(index)]
    except (ValueError, IndexError):
        return


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return _json(value) if isinstance(value, Mapping | list) else str(value)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else str(value)
