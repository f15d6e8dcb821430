"""What a batch comes to: operations checked and compiled, before anything is read or written.

1. A batch is refused whole: every operation is checked, every value encoded and every text embedded first.
2. Of several puts to one key only the last is left.
3. Each text is embedded once a batch, however often it occurs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pregel.errors import InvalidInputError
from pregel.flow import Flow
from pregel.store.base.embed import Vector
from pregel.store.base.ops import (
    GetOp,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchOp,
    TTLConfig,
    checked_key,
    checked_namespace,
)
from pregel.store.base.text import get_text_at_path
from pregel.store.filters import Filter, compiled
from pregel.store.values import Document, document

Namespace = tuple[str, ...]
QUERY_WORDS = 64  # of a query that count
EVERYTHING = 1 << 60  # more items than there are; sums of such numbers are still numbers of a database


@dataclass(slots=True)
class Embed:
    """Vectors for these texts and for these queries, wanted from the store's embedding."""

    texts: list[str]
    queries: list[str]


class Search(NamedTuple):
    """A search: its filter compiled, its query as a vector and, where words count, as words."""

    op: SearchOp
    filter: Filter | None
    vector: Vector | None
    words: Sequence[str] | None = None


class Write(NamedTuple):
    """A value to be kept, or to be removed where `document` is None. `ttl` in seconds."""

    namespace: Namespace
    key: str
    document: Document | None
    ttl: float | None
    vectors: Sequence[tuple[str, Vector]] = ()  # by field
    words: Sequence[str] = ()


@dataclass(slots=True)
class Work:
    """A batch at one moment. What lapsed before `horizon` (unix seconds) is not seen."""

    now: float
    horizon: float
    results: list[Result]
    gets: list[tuple[int, GetOp]] = field(default_factory=list)
    searches: list[tuple[int, Search]] = field(default_factory=list)
    lists: list[tuple[int, ListNamespacesOp]] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)


def work_flow(
    ops: Iterable[Op],
    now: float,
    ttl: TTLConfig | None,
    fields: Sequence[str] | None,
    words: Callable[[Iterable[str]], Sequence[str]] | None = None,
) -> Flow[Work]:
    """The work of a batch. `fields`: paths of the texts that are embedded; None without an index.

    `words`: what gives the words of texts, where they count in a search.
    """
    ops = list(ops)
    omit = (ttl or {}).get("omit_expired", True)
    work = Work(now, now if omit else -math.inf, [None] * len(ops))
    puts: dict[tuple[Namespace, str], tuple[Write, list[tuple[str, str]]]] = {}
    for place, op in enumerate(ops):
        if isinstance(op, PutOp):
            write = _write(op)
            puts[write.namespace, write.key] = write, _texts(op, fields)
        else:
            _add_read(work, place, op)
    if fields is None:
        work.writes = [write for write, _ in puts.values()]
        return work
    texts = list(dict.fromkeys(text for _, found in puts.values() for _, text in found))
    queries = list(dict.fromkeys(one.op.query for _, one in work.searches if one.op.query))
    vectors: dict[str, Vector] = {}
    asked: dict[str, Vector] = {}
    if texts or queries:
        embedded, wanted = yield Embed(texts, queries)
        vectors, asked = dict(zip(texts, embedded, strict=True)), dict(zip(queries, wanted, strict=True))
    work.writes = [
        write._replace(vectors=[(at, vectors[text]) for at, text in found]) for write, found in puts.values()
    ]
    work.searches = [(place, one._replace(vector=asked.get(one.op.query or ""))) for place, one in work.searches]
    if words is not None:
        for place, (_, found) in enumerate(puts.values()):
            work.writes[place] = work.writes[place]._replace(words=words(text for _, text in found))
        work.searches = [
            (place, one._replace(words=words([one.op.query or ""])[:QUERY_WORDS])) for place, one in work.searches
        ]
    return work


def _add_read(work: Work, place: int, op: Any) -> None:
    if isinstance(op, GetOp):
        work.gets.append((place, GetOp(checked_namespace(op.namespace), checked_key(op.key), op.refresh_ttl)))
    elif isinstance(op, SearchOp):
        _check_page(op.limit, op.offset)
        if op.query is not None and not isinstance(op.query, str):
            raise InvalidInputError(f"The query is of type {type(op.query).__name__}.", fix="Give a text.")
        op = op._replace(
            namespace_prefix=checked_namespace(op.namespace_prefix),
            limit=min(op.limit, EVERYTHING),
            offset=min(op.offset, EVERYTHING),
        )
        work.searches.append((place, Search(op, compiled(op.filter), None)))
    elif isinstance(op, ListNamespacesOp):
        _check_page(op.limit, op.offset)
        _check_conditions(op)
        work.lists.append((place, op))
    else:
        raise InvalidInputError(
            f"{op!r} is no operation of a store.", fix="Give GetOp, SearchOp, PutOp or ListNamespacesOp."
        )


def _write(op: PutOp) -> Write:
    namespace = checked_namespace(op.namespace, written=True)
    if op.ttl is not None and (
        isinstance(op.ttl, bool) or not isinstance(op.ttl, int | float) or not 0 < op.ttl < math.inf
    ):
        raise InvalidInputError(f"ttl is {op.ttl!r}.", fix="Give minutes above 0, or None for ever.")
    ttl = None if op.ttl is None else op.ttl * 60.0
    return Write(namespace, checked_key(op.key), None if op.value is None else document(op.value), ttl)


def _texts(op: PutOp, fields: Sequence[str] | None) -> list[tuple[str, str]]:
    """The (field, text) pairs of a put that are searched by meaning."""
    index: Any = op.index
    if not (index is None or index is False or isinstance(index, list | tuple)):
        raise InvalidInputError(f"index is {index!r}.", fix="Give a list of paths, None or False.")
    if fields is None or index is False or op.value is None:
        return []
    found = []
    for path in fields if index is None else index:
        texts = get_text_at_path(op.value, path)
        found += [(path if len(texts) == 1 else f"{path}.{place}", text) for place, text in enumerate(texts)]
    return found


def _check_page(limit: int, offset: int) -> None:
    for name, value in (("limit", limit), ("offset", offset)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidInputError(f"{name} is {value!r}.", fix="Give a number from 0 on.")


def _check_conditions(op: ListNamespacesOp) -> None:
    for condition in op.match_conditions or ():
        if condition.match_type not in ("prefix", "suffix"):
            raise InvalidInputError(f"match_type is {condition.match_type!r}.", fix="Use 'prefix' or 'suffix'.")
        checked_namespace(condition.path)
    if op.max_depth is not None and op.max_depth < 1:
        raise InvalidInputError(f"max_depth is {op.max_depth}.", fix="Give a number from 1 on.")
