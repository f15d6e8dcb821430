"""What a batch does to a database, written once as flows of named statements; a store performs the statements.

1. A reading flow runs in one snapshot, a writing flow in one transaction. Reads come first, then the puts. Items are
   taken in the order of their addresses and before their vectors, so that two batches never wait for each other.
2. A vector belongs to one value of an item: `gen` counts them, so vectors of an old value are never found; and so do
   its words. Vectors of another length than the index's are not there: those of a model that was used before.
3. Where a database cannot tell exactly what a filter lets through, it lets more through, and `Page` looks again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from pregel.checkpoint.flows import Many, Row, Sql
from pregel.flow import Flow
from pregel.store.base import Item, SearchItem
from pregel.store.filters import Filter
from pregel.store.namespaces import joined, listed, literal_prefix, split, under
from pregel.store.values import Document, spelled
from pregel.store.words import weights
from pregel.store.work import Search, Work, Write

ID, NS, KEY, TEXT, TYPE, EXACT, CREATED, UPDATED, TTL, SCORE = range(10)  # the fields of a row
WIDE, RECENT = 2_000, 5_000  # items of a range above which the last ones of the table are looked at first
FAR = 4_000  # rows from an approximate index after which all vectors are compared
PAGE = 200  # rows that are looked through at a time where the database cannot tell exactly
_SPELLED = re.compile("\x01([0-9a-f]{4})")


class Engine(NamedTuple):
    """What a database does.

    - `exact`: it lets through exactly what a filter does. `indexed`: it has a table of vectors.
    - `approximate`: that one has an index which finds the nearest without looking at all, and it is asked where a range
      has more items than this.
    - `plans`: it chooses by itself between all items of a range and the last ones of the table.
    - `serial`: one batch writes at a time. Else the vectors of an item that is removed go with it.
    """

    exact: bool
    indexed: bool
    approximate: int | None = None
    plans: bool = True
    serial: bool = False


def read_flow(work: Work, engine: Engine) -> Flow[list[int]]:
    """Fill in the results of a batch's reads; the ids of items whose time starts anew come back."""
    read: list[Row] = []
    if work.gets:
        yield from _get_flow(work, read)
    for place, search in work.searches:
        rows = yield from _search_flow(search, work.horizon, engine)
        work.results[place] = [_search_item(row) for row in rows]
        read += rows if search.op.refresh_ttl else ()
    for place, op in work.lists:
        rows = yield Sql("namespaces", (*under(literal_prefix(op)), work.horizon))
        work.results[place] = listed((split(row[0]) for row in rows), op)
    return list(dict.fromkeys(row[ID] for row in read if row[TTL] is not None))


def write_flow(work: Work, engine: Engine) -> Flow[None]:
    """A whole batch in one transaction."""
    refreshed = yield from read_flow(work, engine)
    writes = {(joined(write.namespace), spelled(write.key)): write for write in work.writes}
    places = sorted(writes)
    mixed = bool(refreshed) or any(write.document is None for write in work.writes)
    if not engine.serial and mixed and len(refreshed) + len(places) > 1:
        yield Sql("lock", (places, refreshed))  # several statements, none of which takes all that the batch takes
    yield from refresh_flow(refreshed, work.now)
    yield from _put_flow(work, writes, engine)


def refresh_flow(ids: Sequence[int], now: float) -> Flow[None]:
    """Start the time of these items anew."""
    if ids:
        yield Many("refresh", [(one, now) for one in sorted(ids)])


def sweep_flow(now: float, *, cascades: bool) -> Flow[int]:
    """Remove what has lapsed; how many items comes back. `cascades`: vectors go with their items."""
    count: int = (yield Sql("lapsed", (now,)))[0][0]
    if count:
        if not cascades:
            yield Many("sweep_vectors", [(now,)])
        yield Many("sweep", [(now,)])
    return count


def _get_flow(work: Work, read: list[Row]) -> Flow[None]:
    places = [(joined(op.namespace), spelled(op.key)) for _, op in work.gets]
    rows = yield Sql("gets", (list(dict.fromkeys(places)), work.horizon))
    found = {(row[NS], row[KEY]): row for row in rows}
    for (place, op), at in zip(work.gets, places, strict=True):
        row = found.get(at)
        work.results[place] = None if row is None else _item(row)  # None: a batch that is done again found one before
        if row is not None and op.refresh_ttl:
            read.append(row)


def _search_flow(search: Search, horizon: float, engine: Engine) -> Flow[list[Row]]:
    where, exact = (*under(search.op.namespace_prefix), horizon), engine.exact
    start, stop = search.op.offset, search.op.offset + search.op.limit
    if search.vector is None:
        if not engine.plans and stop and (yield Sql("wide", (*where[:2], WIDE))):
            rows = yield _sql("recent", where, (search.op.limit, start), (RECENT,), search.filter)
            if len(rows) == search.op.limit:
                return [row[:SCORE] for row in rows]
        if exact or search.filter is None:
            return (yield _sql("search", where, (search.op.limit, start), (), search.filter))  # type: ignore[no-any-return]
        return (yield from _sifted_flow("search", where, (), search.filter, stop))[start:]
    if engine.approximate is not None and (yield Sql("wide", (*where[:2], engine.approximate))):
        found = yield from _nearest_flow(search, where, stop)
        if len(found) >= stop:
            return found[start:]
    if search.words is None:
        found = yield from _page_flow("near", where, (search.vector,), search.filter, stop, exact)
    else:
        weighed = yield from _weighed_flow(search.words, where)
        found = yield from _page_flow("hybrid", where, (search.vector, weighed), search.filter, stop, exact)
    if len(found) < stop:
        found += yield from _page_flow("bare", where, (), search.filter, stop - len(found), exact)
    return found[start:]


def _nearest_flow(search: Search, where: Row, stop: int) -> Flow[list[Row]]:
    """The first items by an approximate index; fewer than asked for where it may have missed some that match."""
    wanted, size = search.filter, max(stop, 1) * 2  # an item may have several vectors
    while True:
        rows = yield _sql("nearest", where, (size, 0), (search.vector,), wanted)
        rows.sort(key=itemgetter(SCORE, UPDATED, ID), reverse=True)
        nearest: dict[int, Row] = {}
        for row in rows:
            if row[ID] not in nearest and (wanted is None or wanted.matches(orjson.loads(row[TEXT]))):
                nearest[row[ID]] = row
        if len(nearest) >= stop or len(rows) < size or size >= FAR:
            return list(nearest.values())[:stop]
        size *= 4


def _weighed_flow(words: Sequence[str], where: Row) -> Flow[dict[str, float]]:
    """What the words of a query weigh."""
    if not words:
        return {}
    total: int = (yield Sql("indexed", where))[0][0]
    counts = yield Sql("word_counts", (*where, words))
    return weights(words, total, {words[place]: count for place, count in counts})


def _page_flow(name: str, where: Row, more: Row, wanted: Filter | None, limit: int, exact: bool) -> Flow[list[Row]]:
    """The first rows that match."""
    if exact or wanted is None:
        return list((yield _sql(name, where, (limit, 0), more, wanted)))
    return (yield from _sifted_flow(name, where, more, wanted, limit))


def _sifted_flow(name: str, where: Row, more: Row, wanted: Filter, limit: int) -> Flow[list[Row]]:
    found: list[Row] = []
    offset, size = 0, max(limit, PAGE)
    while len(found) < limit:
        rows = yield _sql(name, where, (size, offset), more, wanted)
        found += [row for row in rows if wanted.matches(orjson.loads(row[TEXT]))]
        if len(rows) < size:
            break
        offset += size
    return found[:limit]


def _sql(name: str, where: Row, page: Row, more: Row, wanted: Filter | None) -> Sql:
    return (
        Sql(name, (*where, *page, *more)) if wanted is None else Sql(f"{name}_filtered", (*where, *page, *more, wanted))
    )


def _put_flow(work: Work, writes: dict[tuple[str, str], Write], engine: Engine) -> Flow[None]:
    places = sorted(writes)
    puts = [_row(at, document, writes[at], work) for at in places if (document := writes[at].document) is not None]
    gone = [at for at in places if writes[at].document is None]
    if puts:
        yield Many("put", puts)
    if engine.indexed and (old := places if engine.serial else [row[:2] for row in puts]):
        yield Many("delete_vectors", old)  # after the puts: by then whoever put other vectors of these items is done
    if gone:
        yield Many("delete", gone)
    vectors = [(*at, number, vector) for at in places for number, (_, vector) in enumerate(writes[at].vectors)]
    if vectors:
        yield Many("put_vector", vectors)
    if worded := [(*at, writes[at].words) for at in places if writes[at].words]:
        yield Many("put_words", worded)


def _row(at: tuple[str, str], document: Document, write: Write, work: Work) -> Row:
    kind, blob = document.exact or (None, None)
    expires = None if write.ttl is None else work.now + write.ttl
    return (*at, document.text.decode(), kind, blob, work.now, work.now, write.ttl, expires, work.horizon)


def _document(row: Row) -> dict[str, Any]:
    text = row[TEXT]
    document = Document(text.encode() if isinstance(text, str) else text, row[TYPE] and (row[TYPE], bytes(row[EXACT])))
    return document.value()


def _item(row: Row) -> Item:
    return Item(
        value=_document(row),
        key=_key(row[KEY]),
        namespace=split(row[NS]),
        created_at=_time(row[CREATED]),
        updated_at=_time(row[UPDATED]),
    )


def _search_item(row: Row) -> SearchItem:
    score = row[SCORE] if len(row) > SCORE else None
    return SearchItem(split(row[NS]), _key(row[KEY]), _document(row), _time(row[CREATED]), _time(row[UPDATED]), score)


def _key(text: str) -> str:
    return _SPELLED.sub(lambda match: chr(int(match[1], 16)), text) if "\x01" in text else text


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
