"""Checkpoint metadata as a store keeps it: one JSON object, to look at and filter by, that gives the metadata back.

1. Every store takes it: PostgreSQL's jsonb has no NUL and no lone surrogates, so those are written as `ESCAPE` and four
   hexadecimal digits, and so is `ESCAPE` itself. Different texts stay different.
2. Where JSON cannot say it all (tuples, dates, keys that are no text, NaN, integers beyond 64 bits), the object is a
   projection, and the exact msgpack stands beside it under the key `EXACT`, in base64.
3. A filter value is put into the same form before it is compared with projections; `UNKNOWN` when JSON has none for it,
   and then it can only be compared with what was loaded.
4. What earlier versions wrote is read: JSON as Python writes it, with NaN, long integers and half surrogate pairs.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.errors import SerializationError

ESCAPE = "\x1a"
EXACT = ESCAPE  # a key of the user's is escaped, so none is this
UNKNOWN: Final[Any] = object()
ATOMS = frozenset((str, int, float, bool, type(None)))
LARGEST_FLAT = 1024  # bytes of metadata that are worth remembering
LARGEST_INT = 2**63 - 1  # beyond it, parsers of JSON differ

_ESCAPED = re.compile("[\0\x1a\ud800-\udfff]")
_LONG = re.compile(r"\d{19}")
_serde = JsonPlusSerializer()


def metadata_blob(metadata: Mapping[str, Any]) -> bytes:
    """Metadata as a JSON object in UTF-8; CannotStore for what could not come back equal."""
    plain = metadata if type(metadata) is dict else dict(metadata)
    if _is_json(plain):
        return orjson.dumps(plain)
    try:
        exact = _serde.dumps(plain)
    except CannotStore as error:
        raise error.inside("metadata") from None
    shown = {_escaped(str(key)): part for key, part in ((key, filter_form(part)) for key, part in plain.items())}
    shown = {key: part for key, part in shown.items() if part is not UNKNOWN}
    return orjson.dumps({**shown, EXACT: base64.b64encode(exact).decode()})


def metadata_of(blob: bytes | str) -> dict[str, Any]:
    """The metadata that `metadata_blob` was given."""
    try:
        found = shown_of(blob)
        if EXACT in found:
            found = _serde.loads(base64.b64decode(found[EXACT]))
    except (TypeError, ValueError) as error:
        raise SerializationError(f"Checkpoint metadata cannot be read: {error}") from error
    return found


@lru_cache(128)
def flat_metadata(blob: bytes | str) -> Mapping[str, Any] | None:
    """The metadata without empty ``parents``, when nothing in it could be changed by whoever is shown it; else None.

    A run stores the same with each of its checkpoints.
    """
    if len(blob) > LARGEST_FLAT:
        return None
    found = metadata_of(blob)
    if not found.get("parents", True):
        del found["parents"]
    return found if ATOMS.issuperset(map(type, found.values())) else None


def shown_of(blob: bytes | str) -> dict[str, Any]:
    """The projection alone, for which no class of the user's is needed. ValueError when it is damaged."""
    text = blob if isinstance(blob, str) else blob.decode()
    try:
        found: dict[str, Any] = orjson.loads(text)
    except ValueError:
        found = json.loads(text)
    else:
        if EXACT not in found and _LONG.search(text):
            found = json.loads(text)  # the other parser makes floats of long integers
    return found


def filter_form(value: Any) -> Any:
    """A value as it stands in projections; UNKNOWN when JSON has no form for it."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _escaped(str.__str__(value))
    if isinstance(value, int):
        return int(value) if -LARGEST_INT <= value <= LARGEST_INT else UNKNOWN
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else UNKNOWN
    if isinstance(value, (list, tuple)):
        parts = [filter_form(part) for part in value]
        return UNKNOWN if any(part is UNKNOWN for part in parts) else parts
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        inside = {_escaped(key): filter_form(part) for key, part in value.items()}
        return UNKNOWN if any(part is UNKNOWN for part in inside.values()) else inside
    return UNKNOWN


def _is_json(value: Any) -> bool:
    """Whether JSON gives this value back, with its types, through any parser and store."""
    kind = type(value)
    if kind is str:
        return (value.isascii() and value.isprintable()) or not _ESCAPED.search(value)
    if kind is dict:
        for key, part in value.items():  # noqa: SIM110  # a generator costs twice as much, in every run
            if type(key) is not str or not _is_json(key) or not _is_json(part):
                return False
        return True
    if kind is list:
        return all(map(_is_json, value))
    if kind is int:
        return bool(-LARGEST_INT <= value <= LARGEST_INT)
    return value is None or kind is bool or (kind is float and math.isfinite(value))


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"{ESCAPE}{ord(match[0]):04x}", text)
