"""Searches over more items than are looked through for nothing: what was put last is found first all the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pregel.store.base import PutOp
from pregel.store.flows import RECENT, WIDE
from pregel.store.sqlite import SqliteStore

COUNT = RECENT + 1_000


class Clock:
    now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Items 0 to COUNT - 1, the later ones put later; every third one elsewhere; a filter finds the first ones."""
    clock = Clock()
    path = Path(tmp_path_factory.mktemp("wide"), "store.db")
    with SqliteStore.from_conn_string(path, synchronous="NORMAL", clock=clock) as made:
        for first in range(0, COUNT, 500):
            made.batch([PutOp(place(number), str(number), {"n": number}) for number in range(first, first + 500)])
            clock.now += 1.0
        made.put(("a", "late"), "lapsed", {"n": -1}, ttl=1)
        clock.now += 61.0
        yield made


def place(number: int) -> tuple[str, ...]:
    return ("b",) if number % 3 == 0 else ("a", str(number % 2))


def newest(prefix: tuple[str, ...], low: int = 0, high: int = COUNT) -> list[str]:
    """Keys by what was put last, of the items with these numbers."""
    numbers = [number for number in range(low, high) if place(number)[: len(prefix)] == prefix]
    return [str(number) for number in sorted(numbers, key=lambda number: (number // 500, number % 500), reverse=True)]


def keys(store: Any, prefix: tuple[str, ...], **options: Any) -> set[str]:
    return {item.key for item in store.search(prefix, **options)}


def test_the_last_are_found_first(store: Any) -> None:
    assert len(newest(("a",))) > WIDE
    for prefix in ((), ("a",), ("b",)):
        found = [item.key for item in store.search(prefix, limit=40)]
        assert set(found) <= set(newest(prefix)[:500])
        assert [item.key for item in store.search(prefix, limit=10, offset=30)] == found[30:]


def test_a_filter_that_only_old_items_match_finds_them(store: Any) -> None:
    assert keys(store, (), filter={"n": {"$lt": 10}}, limit=20) == set(newest((), 0, 10))
    assert keys(store, ("a",), filter={"n": 7}) == {"7"}
    assert keys(store, (), filter={"n": -1}) == set()


def test_pages_show_each_item_once(store: Any) -> None:
    pages = [store.search(("a",), limit=1_000, offset=at) for at in range(0, COUNT, 1_000)]

    assert sorted(newest(("a",))) == sorted(item.key for page in pages for item in page)
