"""How a document is kept: JSON where JSON gives it back exactly, beside it the serialiser's bytes where it does not.

1. `text` is JSON of what filters see: each document has one such view, the same in every store.
2. In the view a tuple or set is a list, a date or time its ISO text, an enum its value; what JSON has no word for
   (bytes, NaN, your own classes) is there but equals nothing. NUL and half surrogate pairs are spelled out, since
   databases keep none.
3. What comes back is equal to what was put, and of the same types.
"""

from __future__ import annotations

from datetime import date, datetime, time
from enum import Enum
from typing import Any, NamedTuple, cast

import orjson

from pregel.checkpoint.serde.base import SerializerProtocol
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import InvalidInputError

OPAQUE = "\x01opaque"  # no text looks like this: see spelled
EXACT = 1 << 53  # integers below this one are floats exactly
WORD = 1 << 63
LARGEST = 1e15  # above it JSON of some databases writes floats as integers

_serde = JsonPlusSerializer()


class Document(NamedTuple):
    """A value as it is kept. `exact`: (type, bytes) of the serialiser when `text` does not give it back exactly."""

    text: bytes
    exact: tuple[str, bytes] | None = None

    def value(self, serde: SerializerProtocol = _serde) -> dict[str, Any]:
        """The value, a new one each time."""
        found = orjson.loads(self.text) if self.exact is None else serde.loads_typed(self.exact)
        return cast("dict[str, Any]", found)


def document(value: object, serde: SerializerProtocol = _serde) -> Document:
    """The document of a value; InvalidInputError for what is no dict, CannotStore where something cannot be kept."""
    if not isinstance(value, dict):
        raise InvalidInputError(f"A value must be a dict, got {type(value).__name__}.", fix="Wrap it in a dict.")
    try:
        if _plain(value):
            return Document(_json(value))
        exact = serde.dumps_typed(value)
        return Document(_json(view(value)), exact)
    except RecursionError as error:
        raise _too_deep() from error


def _json(seen: Any) -> bytes:
    try:
        return orjson.dumps(seen)
    except TypeError as error:  # all it was given are kinds that it knows
        raise _too_deep() from error


def _too_deep() -> InvalidInputError:
    return InvalidInputError("The value is nested too deeply, or contains itself.", fix="Flatten it.")


def view(value: Any) -> Any:
    """What filters see of a value: dicts with text keys, lists, texts, numbers, booleans and None."""
    kind = type(value)
    if kind is str:
        return spelled(value)
    if kind is bool or value is None:
        return value
    if isinstance(value, dict):
        return {spelled(key if isinstance(key, str) else repr(key)): view(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [view(inner) for inner in value]
    if isinstance(value, Enum):
        return view(value.value)
    if isinstance(value, int | float):
        return _number(value)
    if isinstance(value, set | frozenset):
        return sorted((view(inner) for inner in value), key=repr)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    return spelled(str.__str__(value)) if isinstance(value, str) else [OPAQUE]


def _plain(value: Any) -> bool:
    """Whether every store's JSON gives the value back exactly."""
    kind = type(value)
    if kind is str:
        return bool(value.isprintable()) or spelled(value) == value
    if kind is dict:
        return all(type(key) is str and _plain(key) and _plain(inner) for key, inner in value.items())
    if kind is list:
        return all(map(_plain, value))
    if kind is int:
        return bool(-WORD <= value < WORD)
    if kind is float:
        return (value == 0.0 and str(value) == "0.0") or 1e-4 <= abs(value) < LARGEST
    return kind is bool or value is None


def _number(value: int | float) -> Any:
    """Equal numbers look equal, whatever their types are."""
    number = float(value) if isinstance(value, float) else int(value)
    try:
        if isinstance(number, int):
            return number if -WORD <= number < WORD else _number(float(number))
    except OverflowError:
        return [OPAQUE]
    if number.is_integer() and EXACT <= abs(number) < WORD:
        return int(number)
    return number + 0.0 if abs(number) < float("inf") else [OPAQUE]  # + 0.0: minus zero is zero


def spelled(text: str) -> str:
    """A text without NUL and surrogates, which no other text becomes."""
    if text.isascii() and "\0" not in text and "\x01" not in text:
        return text
    return "".join(f"\x01{ord(char):04x}" if char < "\x02" or "\ud800" <= char <= "\udfff" else char for char in text)
