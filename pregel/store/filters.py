"""Filters, compiled once and understood by all stores alike.

1. A filter maps fields to conditions and nests as the document does. A field's name is taken literally: a dot, a
   wildcard or a ``$`` inside of it means nothing.
2. A condition is a value (equal; a dict: these fields of it; a list: as long, item by item) or a dict of operators:
   ``$eq $ne $gt $gte $lt $lte``, all of which must hold.
3. A missing field reads as None: it equals None, differs from all else, and is neither above nor below anything.
4. Numbers are compared as numbers, texts as texts by code point; a boolean is no number, and values of different kinds
   are neither equal nor in order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import orjson

from pregel.errors import InvalidInputError
from pregel.store.values import OPAQUE, view

OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")
DEEPEST = 100  # levels of a filter's fields, and of a value in it; JSON of a document has some more than both
ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class Condition(NamedTuple):
    """What must hold of the value at a path. `op` is one of OPERATORS, or ``like`` for a plain value."""

    path: tuple[str, ...]
    op: str
    value: Any

    def holds(self, document: Any) -> bool:
        """Whether it holds of a document's view."""
        path, op, value = self
        found = document
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        if op == "like":
            return found == value if value.__class__ is str else like(found, value)
        if op == "$eq":
            return equal(found, value)
        if op == "$ne":
            return not equal(found, value)
        return _comparable(found, value) and ORDERS[op](found, value)


class Filter:
    """A compiled filter."""

    __slots__ = ("conditions",)

    def __init__(self, conditions: tuple[Condition, ...]) -> None:
        self.conditions = conditions

    def text(self) -> bytes:
        """The filter as JSON, by which it can be handed on."""
        return orjson.dumps([tuple(condition) for condition in self.conditions])

    @classmethod
    def of(cls, text: bytes) -> Filter:
        """The filter that a text stands for."""
        return cls(tuple(Condition(tuple(path), op, value) for path, op, value in orjson.loads(text)))

    def matches(self, document: Any) -> bool:
        """Whether all conditions hold of a document's view."""
        for condition in self.conditions:  # noqa: SIM110 - a generator costs as much again, once a document
            if not condition.holds(document):
                return False
        return True


def compiled(given: Mapping[str, Any] | None) -> Filter | None:
    """The filter; None when it lets everything through, InvalidInputError when it is none."""
    if not given:
        return None
    if not isinstance(given, dict):
        raise InvalidInputError(f"A filter is a dict, got {type(given).__name__}.", fix="Map fields to values.")
    for key in given:
        if isinstance(key, str) and key in OPERATORS:
            raise InvalidInputError(
                f"The operator {key} belongs to a field.", fix=f'Write {{"field": {{"{key}": ...}}}}.'
            )
    conditions: list[Condition] = []
    try:
        _compile((), given, conditions)
    except RecursionError as error:
        raise _too_deep() from error
    return Filter(tuple(conditions))


def _compile(path: tuple[str, ...], given: Mapping[str, Any], conditions: list[Condition]) -> None:
    if len(path) > DEEPEST:
        raise _too_deep()
    for key, wanted in given.items():
        if not isinstance(key, str):
            raise InvalidInputError(f"A filter has the field {key!r}, which is no text.", fix="Name fields by text.")
        here = (*path, view(key))
        if not isinstance(wanted, dict):
            conditions.append(Condition(here, "like", _seen(wanted)))
        elif not any(isinstance(word, str) and word.startswith("$") for word in wanted):
            if wanted:
                _compile(here, wanted, conditions)
            else:
                conditions.append(Condition(here, "like", {}))
        else:
            conditions += [Condition(here, _operator(word), _seen(value)) for word, value in wanted.items()]


def _operator(word: object) -> str:
    if word in OPERATORS:
        return str(word)
    raise InvalidInputError(
        f"Unsupported operator: {word}", fix=f"Use {', '.join(OPERATORS)}; operators and fields do not mix."
    )


def _seen(value: Any) -> Any:
    seen = view(value)
    if isinstance(seen, list | dict) and _depth(seen) > DEEPEST:
        raise _too_deep()
    if _opaque(seen):
        raise InvalidInputError(
            f"A filter cannot compare with {value!r}.",
            fix="Compare with texts, numbers, booleans, dates, dicts or lists.",
        )
    return seen


def _depth(seen: Any) -> int:
    inner = seen.values() if isinstance(seen, dict) else seen if isinstance(seen, list) else ()
    return 1 + max(map(_depth, inner), default=0)


def _too_deep() -> InvalidInputError:
    return InvalidInputError("The filter is nested too deeply, or contains itself.", fix="Flatten it.")


def _opaque(seen: Any) -> bool:
    if isinstance(seen, dict):
        return any(map(_opaque, seen.values()))
    return seen == [OPAQUE] or (isinstance(seen, list) and any(map(_opaque, seen)))


def like(found: Any, wanted: Any) -> bool:
    """Equal, where a dict needs to have the wanted fields only."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(like(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(like, found, wanted))
    return equal(found, wanted)


def equal(found: Any, wanted: Any) -> bool:
    """Equal and of one kind."""
    if isinstance(wanted, dict):
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(equal(found[key], value) for key, value in wanted.items())
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(equal, found, wanted))
    return (isinstance(found, bool) == isinstance(wanted, bool)) and bool(found == wanted)


def _comparable(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, str):
        return isinstance(found, str)
    return _is_number(found) and _is_number(wanted)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
