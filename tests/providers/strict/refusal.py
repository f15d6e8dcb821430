"""How a service refuses a request, and the small checks that both sets of rules are made of."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any


class Refused(Exception):
    """A request that the real service would not take either."""

    def __init__(self, message: str, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.message, self.param, self.status = message, param, status


def need(held: bool, message: str, param: str | None = None) -> None:
    """Refuse unless it holds."""
    if not held:
        raise Refused(message, param)


def only(given: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """Refuse keys that do not exist."""
    for key in given:
        need(key in known, f"{where}{key}: Extra inputs are not permitted", f"{where}{key}")


def a_dict(value: Any, where: str) -> dict[str, Any]:
    """The value, which must be an object."""
    if not isinstance(value, dict):
        raise Refused(f"{where}: Input should be an object", where)
    return value


def a_list(value: Any, where: str) -> list[Any]:
    """The value, which must be an array with something in it."""
    if not isinstance(value, list):
        raise Refused(f"{where}: Input should be an array", where)
    need(bool(value), f"{where}: empty array. Expected an array with minimum length 1", where)
    return value


def a_text(value: Any, where: str) -> str:
    """The value, which must be a string that is not empty."""
    if not isinstance(value, str):
        raise Refused(f"{where}: Input should be a string", where)
    need(bool(value), f"{where}: empty string", where)
    return value


def a_match(value: Any, pattern: re.Pattern[str], where: str) -> str:
    """The value, which must be a string of this pattern."""
    text = a_text(value, where)
    need(pattern.fullmatch(text) is not None, f"{where}: String should match pattern '{pattern.pattern}'", where)
    return text


def a_number(value: Any, where: str, low: float, high: float) -> None:
    """Refuse what is no number in this range; booleans are none."""
    sound = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    need(sound, f"{where}: Input should be a number from {low} to {high}", where)


def a_count(value: Any, where: str) -> None:
    """Refuse what is no positive integer."""
    sound = isinstance(value, int) and not isinstance(value, bool) and value > 0
    need(sound, f"{where}: Input should be a positive integer", where)


def a_schema(value: Any, where: str) -> dict[str, Any]:
    """The value, which must be the JSON Schema of an object."""
    schema = a_dict(value, where)
    need(schema.get("type") == "object", f"{where}.type: schema must have type 'object'", where)
    need(isinstance(schema.get("properties", {}), dict), f"{where}.properties: Input should be an object", where)
    required = schema.get("required", [])
    need(isinstance(required, list), f"{where}.required: Input should be an array", where)
    for name in required:
        need(name in schema.get("properties", {}), f"{where}.required: {name!r} is no property", where)
    return schema
