"""Requests of saver flows in PostgreSQL's words: which text, and its arguments.

1. The statements are those of ``sql/postgres.sql``; a statement that adds rows is written over ``unnest`` of columns.
   A few rows go in as ``VALUES`` instead: each field is a parameter, which costs the client a third.
2. An append is one statement: its guard as the table ``t``, and insertions that all read from ``t``.
3. A row that one statement would touch twice is an error, so of equal rows of writes one is sent.
4. What is only shown (a reason, a graph's name) is mended where PostgreSQL cannot keep it; keys never are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from pregel.checkpoint.flows import Atomic, Many, Row, Sql
from pregel.checkpoint.postgres.columns import column
from pregel.checkpoint.sql import statements

CHUNK = 16 << 20  # bytes of rows that go in with one statement where there is more than that; the server ends at 1 GB
FEW = 4  # rows of one table that go in as VALUES: two steps of one task
_PLACE = re.compile(r"\$(\d+)")
_COLUMNS = re.compile(r"unnest\(((?:\s*\$\d+::\w+\[\],?)+)\)")
_KIND = re.compile(r"::(\w+)\[\]")
_SURROGATE = re.compile("[\0\ud800-\udfff]")


class Statement(NamedTuple):
    """A text whose places are numbered from 1 without gaps, and which arguments go there."""

    text: str
    places: tuple[int, ...]
    kinds: tuple[str, ...]  # of the columns, when it adds rows

    def ordered(self, args: Sequence[Any]) -> list[Any]:
        """The arguments as the places want them."""
        return [args[place] for place in self.places]


def _statement(text: str) -> Statement:
    used = sorted({int(number) for number in _PLACE.findall(text)})
    fresh = {number: place for place, number in enumerate(used, 1)}
    rows = _COLUMNS.search(text)
    return Statement(
        _PLACE.sub(lambda match: f"${fresh[int(match[1])]}", text),
        tuple(number - 1 for number in used),
        tuple(_KIND.findall(rows[1])) if rows else (),
    )


TEXTS = statements("postgres.sql")
STATEMENTS = {name: _statement(text) for name, text in TEXTS.items()}
SCHEMA = statements("postgres_schema.sql")

Words = tuple[str, list[Any]]


def words(request: Sql | Many | Atomic) -> Sequence[Words]:
    """The statements for a request: one, or one for each of its rows where there is none for many."""
    if isinstance(request, Atomic):
        return (_append(request),)
    if isinstance(request, Many):
        return _many(request)
    statement = STATEMENTS[request.name]
    adapt = _ADAPTED.get(request.name)
    return ((statement.text, statement.ordered(request.args if adapt is None else adapt(request.args))),)


def locked(request: Sql | Many | Atomic) -> Sequence[Words]:
    """The same inside a writing flow: a thread that it looks at stays as it is until the flow has ended."""
    found = words(request)
    if isinstance(request, Sql) and request.name == "thread":
        return [(f"{text} FOR UPDATE OF t", args) for text, args in found]
    return found


def _values(args: Row) -> Row:
    channels, firsts, lasts, deltas = zip(*args[2], strict=True)
    spans = column("integer", channels), column("bigint", firsts), column("bigint", lasts), column("integer", deltas)
    return args[0], args[1], *spans, args[3]


def _holds(args: Row) -> Row:
    tnos, epochs, runs = zip(*args[0], strict=True)
    return column("bigint", tnos), column("bigint", epochs), column("bytea", runs), args[1]


_ADAPTED: dict[str, Callable[[Row], Row]] = {
    "renew": _holds,
    "values": _values,
    "numbers": lambda args: (column("text", args[0]),),
}


# -- rows --------------------------------------------------------------------------------------------------------------


def _append(request: Atomic) -> Words:
    args = head_args(request)
    shape: list[tuple[str, int]] = []
    for many in request.rest:
        rows = tidied(many)
        if len(rows) <= FEW:
            shape.append((many.name, len(rows)))
            args += chain.from_iterable(rows)
        else:
            shape.append((many.name, 0))
            args += columns(STATEMENTS[many.name].kinds, rows)
    return _append_text(request.head.name, tuple(shape)), args


def head_args(request: Atomic) -> list[Any]:
    """The arguments of an append's guard, as its places want them."""
    args = STATEMENTS[request.head.name].ordered([_shown(a) if a.__class__ is str else a for a in request.head.args])
    if request.head.name == "create":
        args[0] = request.thread
    return args


def tidied(many: Many) -> Sequence[Row]:
    """The rows as one statement takes them."""
    return _TIDIED[many.name](many.rows) if many.name in _TIDIED else many.rows


def columns(kinds: Sequence[str], rows: Sequence[Row]) -> list[Any]:
    """The rows, column by column."""
    return [column(kind, values) for kind, values in zip(kinds, zip(*rows, strict=True), strict=True)]


@lru_cache(256)
def _append_text(head: str, shape: tuple[tuple[str, int], ...]) -> str:
    """The guard `head`, and what adds rows: as many as said, 0 for columns."""
    guard = STATEMENTS[head]
    parts = [f"t AS ({guard.text} RETURNING *)"]
    place = len(guard.places)
    for name, count in shape:
        statement = STATEMENTS[name]
        parts.append(f"{name} AS ({_placed(statement, count, place)})")
        place += len(statement.kinds) * max(count, 1)
    return f"WITH {', '.join(parts)} {STATEMENTS['landed'].text}"


def _placed(statement: Statement, count: int, first: int) -> str:
    """The statement with its places after the first ones, for so many rows."""
    if not count:
        return _PLACE.sub(lambda match: f"${int(match[1]) + first}", statement.text)
    width = len(statement.kinds)
    rows = [
        ", ".join(f"${first + row * width + i}::{kind}" for i, kind in enumerate(statement.kinds, 1))
        for row in range(count)
    ]
    return _COLUMNS.sub(lambda match: f"(VALUES ({'), ('.join(rows)}))", statement.text)


def _many(request: Many) -> Sequence[Words]:
    """Rows outside of an append."""
    rows = tidied(request)
    if not rows:
        return ()
    statement = STATEMENTS.get(f"{request.name}_rows") or STATEMENTS[request.name]
    if not statement.kinds:
        return [(statement.text, statement.ordered(row)) for row in rows]
    if not request.name.startswith("add_"):
        return ((statement.text, columns(statement.kinds, rows)),)
    look_up = STATEMENTS["looked_up"].text  # they are all of one thread, their first field
    text = f"WITH t AS ({look_up}) {_placed(statement, 0, 1)}"
    return [
        (text, [piece[0][0], *columns(statement.kinds, [row[1:] for row in piece])]) for piece in _pieces(rows, CHUNK)
    ]


def _pieces(rows: Sequence[Row], chunk: int) -> Iterator[Sequence[Row]]:
    """The rows in turn, as many at once as make up a chunk."""
    start = size = 0
    for end, row in enumerate(rows):
        weight = sum(len(field) for field in row if field.__class__ is bytes)
        if size and size + weight > chunk:
            yield rows[start:end]
            start, size = end, 0
        size += weight
    yield rows[start:]


def _tidied_writes(rows: Sequence[Row]) -> Sequence[Row]:
    """Of control rows with one key the last, of others the first."""
    if len(rows) < 2:
        return rows
    kept: dict[Row, Row] = {}
    for row in rows:
        key = row[-10:-6]
        if row[-7] < 0 or key not in kept:
            kept[key] = row
    return rows if len(kept) == len(rows) else list(kept.values())


def _tidied_checkpoints(rows: Sequence[Row]) -> Sequence[Row]:
    """A run id may be any plain value; it is kept as text."""
    return [
        (*row[:-4], str(row[-4]), *row[-3:]) if row[-4] is not None and row[-4].__class__ is not str else row
        for row in rows
    ]


_TIDIED: dict[str, Callable[[Sequence[Row]], Sequence[Row]]] = {
    "add_writes": _tidied_writes,
    "add_checkpoints": _tidied_checkpoints,
}


def _shown(text: str) -> str:
    return text if text.isascii() and "\0" not in text else _SURROGATE.sub("\ufffd", text)
