"""InMemoryStore: documents in this process, and the reference for what the other stores do."""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from threading import Lock
from typing import Any, ClassVar

import orjson

from pregel import flow as runner
from pregel.store.base import BaseStore, IndexConfig, Item, Op, Result, SearchItem, TTLConfig
from pregel.store.expiring import Expiring
from pregel.store.namespaces import listed, literal_prefix
from pregel.store.values import Document
from pregel.store.vectors import Index, Rows, aembedding, embedding, working
from pregel.store.words import weights
from pregel.store.work import Namespace, Search, Work, Write

_UNSEEN: Any = object()


@dataclass(slots=True)
class Kept:
    """A document as it is kept. `ttl` in seconds, `expires` unix seconds, `rows` the places of its vectors."""

    namespace: Namespace
    key: str
    document: Document
    created_at: datetime
    updated_at: datetime
    ttl: float | None
    expires: float
    rows: list[int] = field(default_factory=list)
    words: frozenset[str] = frozenset()
    view: Any = _UNSEEN

    def seen(self) -> Any:
        """What filters see."""
        if self.view is _UNSEEN:
            self.view = orjson.loads(self.document.text)
        return self.view


class InMemoryStore(Expiring, BaseStore):
    """Keeps documents in this process. Searches go in the order in which namespaces, then keys were first put.

    - `index`: how items are searched by meaning, see `IndexConfig`. `ttl`: how long they live, see `TTLConfig`.
    - `clock` gives unix seconds.
    """

    supports_ttl: ClassVar[bool] = True

    def __init__(
        self,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(ttl)
        self.index_config = index
        self._index = Index.of(index)
        self._rows = Rows(self._index.dims) if self._index is not None else None
        self._clock = clock
        self._lock = Lock()
        self._spaces: dict[Namespace, dict[str, Kept]] = {}
        self._under: dict[Namespace, dict[Namespace, None]] = {}  # each prefix -> the namespaces that start so

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        index = self._index
        return self._do(runner.run(working(index, ops, self._clock(), self.ttl_config), embedding(index)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        index = self._index
        return self._do(await runner.arun(working(index, ops, self._clock(), self.ttl_config), aembedding(index)))

    def sweep_ttl(self) -> int:
        """Remove what has lapsed; how many items that were comes back."""
        with self._lock:
            now = self._clock()
            lapsed = [kept for space in self._spaces.values() for kept in space.values() if kept.expires <= now]
            for kept in lapsed:
                self._remove(kept)
        return len(lapsed)

    # -- a batch -----------------------------------------------------------------------------------------------------

    def _do(self, work: Work) -> list[Result]:
        with self._lock:
            for place, get in work.gets:
                found = self._seen(get.namespace, get.key, work.horizon)
                if found is not None:
                    self._refresh_ttl([found] if get.refresh_ttl else (), work.now)
                    work.results[place] = _item(found)
            for place, search in work.searches:
                hits = self._search_kept(search, work.horizon)
                self._refresh_ttl([kept for kept, _ in hits] if search.op.refresh_ttl else (), work.now)
                work.results[place] = [_search_item(kept, score) for kept, score in hits]
            for place, op in work.lists:
                live = (
                    namespace
                    for namespace in self._under.get(literal_prefix(op), ())
                    if any(kept.expires > work.horizon for kept in self._spaces[namespace].values())
                )
                work.results[place] = listed(live, op)
            for write in work.writes:
                self._write(write, work)
        return work.results

    def _seen(self, namespace: Namespace, key: str, horizon: float) -> Kept | None:
        kept = self._spaces.get(namespace, {}).get(key)
        return kept if kept is not None and kept.expires > horizon else None

    def _candidates(self, search: Search, horizon: float) -> Iterator[Kept]:
        wanted = search.filter
        for namespace in self._under.get(search.op.namespace_prefix, ()):
            for kept in self._spaces[namespace].values():
                if kept.expires > horizon and (wanted is None or wanted.matches(kept.seen())):
                    yield kept

    def _search_kept(self, search: Search, horizon: float) -> list[tuple[Kept, float | None]]:
        start, stop = search.op.offset, search.op.offset + search.op.limit
        candidates = self._candidates(search, horizon)
        if search.vector is None:
            return [(kept, None) for kept in islice(candidates, start, stop)]
        assert self._rows is not None
        assert self._index is not None
        near: list[Kept] = []
        rest: list[Kept] = []
        for kept in candidates:
            if kept.rows:
                near.append(kept)
            elif len(rest) < stop:
                rest.append(kept)
        rows = [row for kept in near for row in kept.rows]
        scores = iter(self._rows.scores(self._index.distance, search.vector, rows))
        ranked = [(-max(islice(scores, len(kept.rows))), place) for place, kept in enumerate(near)]
        if search.words is not None:
            ranked = self._with_words(search, horizon, near, ranked)
        found: list[tuple[Kept, float | None]] = [(near[place], -far) for far, place in heapq.nsmallest(stop, ranked)]
        return [*found, *((kept, None) for kept in rest)][start:stop]

    def _with_words(
        self, search: Search, horizon: float, near: list[Kept], ranked: list[tuple[float, int]]
    ) -> list[tuple[float, int]]:
        assert search.words is not None
        assert self._index is not None
        part, asked = self._index.hybrid, frozenset(search.words)
        spaces = (self._spaces[namespace] for namespace in self._under.get(search.op.namespace_prefix, ()))
        having = Counter(  # the words that an item has of those asked for; most items have the same ones: none
            asked & kept.words for space in spaces for kept in space.values() if kept.rows and kept.expires > horizon
        )
        counts = {word: sum(times for found, times in having.items() if word in found) for word in asked}
        weigh = weights(search.words, having.total(), counts).items()
        shares = {found: part * sum(weight for word, weight in weigh if word in found) for found in having}
        return [((1.0 - part) * far - shares[asked & near[place].words], place) for far, place in ranked]

    def _refresh_ttl(self, found: Iterable[Kept], now: float) -> None:
        for kept in found:
            if kept.ttl is not None:
                kept.expires = now + kept.ttl

    def _write(self, write: Write, work: Work) -> None:
        old = self._spaces.get(write.namespace, {}).get(write.key)
        if write.document is None:
            if old is not None:
                self._remove(old)
            return
        expires = math.inf if write.ttl is None else work.now + write.ttl
        now = datetime.fromtimestamp(work.now, UTC)
        created = old.created_at if old is not None and old.expires > work.horizon else now
        rows = [self._rows.add(vector) for _, vector in write.vectors] if self._rows is not None else []
        if old is not None and self._rows is not None:
            for row in old.rows:
                self._rows.remove(row)
        if write.namespace not in self._spaces:
            self._add_space(write.namespace)
        words = frozenset(write.words)
        kept = Kept(write.namespace, write.key, write.document, created, now, write.ttl, expires, rows, words)
        self._spaces[write.namespace][write.key] = kept

    def _remove(self, kept: Kept) -> None:
        space = self._spaces[kept.namespace]
        del space[kept.key]
        if self._rows is not None:
            for row in kept.rows:
                self._rows.remove(row)
        if not space:
            del self._spaces[kept.namespace]
            for prefix in _prefixes(kept.namespace):
                del self._under[prefix][kept.namespace]
                if not self._under[prefix]:
                    del self._under[prefix]

    def _add_space(self, namespace: Namespace) -> None:
        self._spaces[namespace] = {}
        for prefix in _prefixes(namespace):
            self._under.setdefault(prefix, {})[namespace] = None


def _prefixes(namespace: Namespace) -> Sequence[Namespace]:
    return [namespace[:length] for length in range(len(namespace) + 1)]


def _item(kept: Kept) -> Item:
    return Item(
        value=kept.document.value(),
        key=kept.key,
        namespace=kept.namespace,
        created_at=kept.created_at,
        updated_at=kept.updated_at,
    )


def _search_item(kept: Kept, score: float | None) -> SearchItem:
    return SearchItem(kept.namespace, kept.key, kept.document.value(), kept.created_at, kept.updated_at, score)
