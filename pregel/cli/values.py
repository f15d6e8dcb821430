"""How a value of a state is shown: as JSON for scripts, as lines for people."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Set
from dataclasses import fields, is_dataclass

ONE_LINE = 100
SHORT = 200


def as_json(value: object) -> str:
    """JSON text, indented; what JSON has no form for comes as its repr."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def plain(value: object) -> object:
    """A value in terms of JSON: models and dataclasses as objects, sets as sorted lists, anything else as its repr."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else repr(value)
        case Mapping():
            return {key if isinstance(key, str) else repr(key): plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case Set():
            return sorted((plain(one) for one in value), key=repr)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump())
    return repr(value)


def as_lines(values: object) -> Iterator[str]:
    """A state for people: a line for each key, texts of several lines as indented blocks."""
    if not isinstance(values, Mapping):
        yield from _block(values)
        return
    for key, value in values.items():
        first, *rest = _block(value)
        if rest:
            yield f"{key}:"
            yield from (f"  {line}" for line in (first, *rest))
        else:
            yield f"{key}: {first}"


def _block(value: object) -> list[str]:
    if isinstance(value, str):
        return value.splitlines() or [""]
    short = json.dumps(plain(value), ensure_ascii=False)
    return [short] if len(short) <= ONE_LINE else as_json(value).splitlines()


def shortened(text: str) -> str:
    """A text in one line of at most 200 characters."""
    line = " ".join(text.split())
    return line if len(line) <= SHORT else f"{line[:SHORT]}…"


def counted(number: int, noun: str) -> str:
    """A number of things: ``1 thread``, ``2 threads``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
