"""Columns of many rows as PostgreSQL arrays in binary form: one parameter a column, however many rows there are.

psycopg's own list adaption looks at each element's type; here the statement says it, at a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import calcsize, pack
from typing import Any

from psycopg.abc import AdaptContext
from psycopg.adapt import Dumper, PyFormat
from psycopg.pq import Format

NULL = b"\xff\xff\xff\xff"


class Column(bytes):
    """An array's binary form."""


class _Ints(Column): ...


class _BigInts(Column): ...


class _Floats(Column): ...


class _Booleans(Column): ...


class _Texts(Column): ...


class _Blobs(Column): ...


# name in a cast -> class, oid of an element, oid of the array, layout of an element of fixed size
KINDS: dict[str, tuple[type[Column], int, int, str]] = {
    "integer": (_Ints, 23, 1007, ">ii"),
    "bigint": (_BigInts, 20, 1016, ">iq"),
    "float8": (_Floats, 701, 1022, ">id"),
    "boolean": (_Booleans, 16, 1000, ">i?"),
    "text": (_Texts, 25, 1009, ""),
    "bytea": (_Blobs, 17, 1001, ""),
}


def column(kind: str, values: Sequence[Any]) -> Column:
    """The values as an array of this kind. NotStorable or UnicodeEncodeError for a text that cannot be kept."""
    made, oid, _, layout = KINDS[kind]
    head = pack(">iiiii", 1, None in values, oid, len(values), 1)
    if layout:
        size = calcsize(layout) - 4
        return made(head + b"".join([NULL if value is None else pack(layout, size, value) for value in values]))
    raw = [None if value is None else _text_bytes(value) for value in values] if kind == "text" else values
    return made(head + b"".join([NULL if value is None else pack(">i", len(value)) + value for value in raw]))


class NotStorable(ValueError):
    """A text that PostgreSQL cannot keep."""


def _text_bytes(text: str) -> bytes:
    raw = text.encode()  # UnicodeEncodeError for half a surrogate pair
    if 0 in raw:
        raise NotStorable(f"a NUL in {text!r}")
    return raw


def _dumper(array: int) -> type[Dumper]:
    class AsIs(Dumper):
        format = Format.BINARY
        oid = array

        def dump(self, obj: bytes) -> bytes:
            return obj

    return AsIs


_DUMPERS = [(made, _dumper(array)) for made, _, array, _ in KINDS.values()]


def know(connection: AdaptContext) -> None:
    """Teach a connection to send columns, unless it can."""
    adapters = connection.adapters
    assert adapters is not None
    if adapters.get_dumper(_Ints, PyFormat.AUTO).oid != KINDS["integer"][2]:  # the dumper of bytes
        for made, dumper in _DUMPERS:
            adapters.register_dumper(made, dumper)
