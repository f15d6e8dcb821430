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
from pregel.store.namespaces import EVERYWHERE
from pregel.store.postgres.approximate import Approximate
from pregel.store.vectors import Distance, Index
from pregel.store.words import scope, scopes

TEXTS = statements("postgres.sql", "pregel.store.sql")
SCHEMA = statements("postgres_schema.sql", "pregel.store.sql")
VECTORS = statements("postgres_vectors.sql", "pregel.store.sql")
WORDS = statements("postgres_words.sql", "pregel.store.sql")

SCORES: dict[Distance, str] = {
    "cosine": "coalesce(nullif(1.0 - (v.vector <=> $6::text::vector), 'NaN'), 0.0)",
    "l2": "-(v.vector <-> $6::text::vector)",
    "inner_product": "-(v.vector <#> $6::text::vector)",
}
ORDERS = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

_KIND = re.compile(r"::(\w+)\[\]")

Words = tuple[str, list[Any]]


def words_of(index: Index | None, near: Approximate | None = None) -> Callable[[Sql | Many | Atomic], Sequence[Words]]:
    """What says the requests of a store with this index."""

    def words(request: Sql | Many | Atomic) -> Sequence[Words]:
        assert not isinstance(request, Atomic)
        if isinstance(request, Sql):
            return _read(request, index, near)
        return (_many(request),) if request.rows else ()

    return words


def _many(request: Many) -> Words:
    """A statement for many rows: a column each, and what all rows have in common after them."""
    text = TEXTS[request.name]
    kinds = _KIND.findall(text)
    rows = request.rows
    if request.name == "put_words":
        rows = [(ns, key, " ".join([*scopes(ns), *words])) for ns, key, words in rows]
    columns = list(zip(*map(_plain, rows), strict=True))
    common = [values[0] for values in columns[len(kinds) :]]
    return text, [*map(column, kinds, columns), *common]


def _read(request: Sql, index: Index | None, near: Approximate | None) -> Sequence[Words]:
    text, args = TEXTS[request.name], request.args
    if request.name == "gets":
        namespaces, keys = zip(*args[0], strict=True)
        return ((text, [column("text", namespaces), column("text", keys), args[1]]),)
    if request.name == "lock":
        namespaces, keys = zip(*args[0], strict=True)
        return ((text, [column("text", namespaces), column("text", keys), column("bigint", args[1])]),)
    if request.name == "word_counts":
        return ((text, [*args[:-1], column("text", [_match(word, args[0]) for word in args[-1]])]),)
    wanted = None
    if args and isinstance(args[-1], Filter):
        *args, wanted = args  # type: ignore[assignment]
    more: list[Any] = []
    if index is not None:
        text = text.replace("{score}", SCORES[index.distance]).replace("{dims}", f"{index.dims:d}")
        if request.name.startswith("hybrid"):
            *args, weighed = args  # type: ignore[assignment]
            more = [1.0 - index.hybrid, *_hits(weighed, args[0], index.hybrid)]
    before: tuple[Words, ...] = ()
    if near is not None and request.name.startswith("nearest"):
        text, more = text.replace("{order}", near.order(6)), [near.dims]
        before = ((TEXTS["scan"], [part for setting in near.settings(args[3]) for part in setting]),)
    args = (*_plain(args), *more)
    if wanted is not None:
        clause, values = _clause(wanted, len(args))
        text, args = text.replace("{filter}", clause), (*args, *values)
    return (*before, _placed(text, args))


def _hits(weighed: dict[str, float], ns: str, part: float) -> list[Any]:
    matched = [_match(word, ns) for word in weighed]
    return [column("text", matched), column("float8", [part * weight for weight in weighed.values()])]


def _match(word: str, ns: str) -> str:
    """The tsquery for items that have a word and are under a namespace. A word is letters and digits."""
    return f"'{word}'" if ns == EVERYWHERE else f"'{word}' & '{scope(ns)}'"


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
