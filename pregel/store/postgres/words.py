"""A store's statements in PostgreSQL's words: which text, and its arguments.

What a filter says goes in as parameters: what must be contained as one JSON document, orders as a path and a bound.
They let through all that match and maybe more, since JSON here is a little more lenient than filters are; `flows` looks
again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import orjson

from pregel.checkpoint.flows import Atomic, Many, Row, Sql
from pregel.checkpoint.postgres.columns import column
from pregel.checkpoint.sql import statements
from pregel.store.filters import Filter
from pregel.store.vectors import Distance

TEXTS = statements("postgres.sql", "pregel.store.sql")
SCHEMA = statements("postgres_schema.sql", "pregel.store.sql")
VECTORS = statements("postgres_vectors.sql", "pregel.store.sql")

SCORES: dict[Distance, str] = {
    "cosine": "coalesce(nullif(1.0 - (v.vector <=> $6::text::vector), 'NaN'), 0.0)",
    "l2": "-(v.vector <-> $6::text::vector)",
    "inner_product": "-(v.vector <#> $6::text::vector)",
}
ORDERS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

_KIND = re.compile(r"::(\w+)\[\]")

Words = tuple[str, list[Any]]


def words_of(distance: Distance | None) -> Callable[[Sql | Many | Atomic], Sequence[Words]]:
    """What says the requests of a store whose index has this distance."""
    score = "" if distance is None else SCORES[distance]

    def words(request: Sql | Many | Atomic) -> Sequence[Words]:
        assert not isinstance(request, Atomic)
        if isinstance(request, Sql):
            return (_read(request, score),)
        return (_many(request),) if request.rows else ()

    return words


def _many(request: Many) -> Words:
    """A statement for many rows: a column each, and what all rows have in common after them."""
    text = TEXTS[request.name]
    kinds = _KIND.findall(text)
    columns = list(zip(*map(_plain, request.rows), strict=True))
    common = [values[0] for values in columns[len(kinds) :]]
    return text, [*map(column, kinds, columns), *common]


def _read(request: Sql, score: str) -> Words:
    text, args = TEXTS[request.name], request.args
    if request.name == "gets":
        namespaces, keys = zip(*args[0], strict=True)
        return text, [column("text", namespaces), column("text", keys), args[1]]
    wanted = None
    if args and isinstance(args[-1], Filter):
        *args, wanted = args  # type: ignore[assignment]
    args = _plain(args)
    text = text.replace("{score}", score)
    if wanted is not None:
        clause, more = _clause(wanted, len(args))
        text, args = text.replace("{filter}", clause), [*args, *more]  # type: ignore[assignment]
    return _placed(text, args)


def _clause(wanted: Filter, taken: int) -> tuple[str, list[Any]]:
    """A condition that holds for all documents that match, and its arguments, numbered after those taken."""
    contained: dict[str, Any] = {}
    clauses: list[str] = []
    args: list[Any] = []
    for path, op, value in wanted.conditions:
        if op in ("like", "$eq") and value is not None:
            _put(contained, path, _present(value))
        elif op in ORDERS and isinstance(value, int | float) and not isinstance(value, bool):
            place = taken + len(args)
            clauses.append(f"s.value #> ${place + 1}::text[] {ORDERS[op]} ${place + 2}::text::jsonb")
            args += [column("text", path), orjson.dumps(value).decode()]
    if contained:
        clauses.append(f"s.value @> ${taken + len(args) + 1}::text::jsonb")
        args.append(orjson.dumps(contained).decode())
    return " AND ".join(clauses) or "true", args


def _put(contained: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for key in path[:-1]:
        contained = contained.setdefault(key, {})
        if not isinstance(contained, dict):
            return
    contained.setdefault(path[-1], value)


def _present(value: Any) -> Any:
    """A value without fields that are None: they may be missing."""
    if isinstance(value, dict):
        return {key: _present(inner) for key, inner in value.items() if inner is not None}
    return [_present(inner) for inner in value] if isinstance(value, list) else value


def _plain(row: Row) -> Row:
    """Vectors as texts."""
    return tuple(f"[{','.join(map(repr, arg))}]" if arg.__class__.__name__ == "array" else arg for arg in row)


@lru_cache(512)
def _used(text: str) -> tuple[str, tuple[int, ...]]:
    """A text whose places are numbered without gaps, and which arguments go there."""
    used = sorted({int(number) for number in re.findall(r"\$(\d+)", text)})
    fresh = {number: place for place, number in enumerate(used, 1)}
    return re.sub(r"\$(\d+)", lambda match: f"${fresh[int(match[1])]}", text), tuple(number - 1 for number in used)


def _placed(text: str, args: Sequence[Any]) -> Words:
    text, places = _used(text)
    return text, [args[place] for place in places]
