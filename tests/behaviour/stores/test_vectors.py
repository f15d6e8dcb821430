"""Search by meaning beyond the laws: every measure on every store, with and without extensions, numpy and processes."""

from __future__ import annotations

import asyncio
import math
import random
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_args

import pytest

from pregel.errors import AsyncOnlyError, InvalidInputError
from pregel.store.base import BaseStore, IndexConfig
from pregel.store.memory import InMemoryStore
from pregel.store.postgres import PostgresStore
from pregel.store.sqlite import SqliteStore
from pregel.store.sqlite.functions import BY_PYTHON, comparing, extension, load_extension
from pregel.store.vectors import Distance, Rows, score

DIMS = 5


def embed(texts: Sequence[str]) -> list[list[float]]:
    """A vector that the text alone decides."""
    draws = [random.Random(text) for text in texts]
    return [[draw.uniform(-1, 1) for _ in range(DIMS)] for draw in draws]


def config(**more: Any) -> IndexConfig:
    index: Any = {"dims": DIMS, "embed": embed, "fields": ["text"], **more}
    return index  # type: ignore[no-any-return]


class WithoutExtensions(SqliteStore):
    """As on a Python that cannot load extensions."""

    def _opened(self, connection: Any) -> None:
        super()._opened(connection)
        self.scores = BY_PYTHON


@pytest.fixture(params=["memory", "sqlite", "sqlite without extensions", "postgres"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def opening(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """What opens a store with an index, again on the same storage where there is one."""
    with ExitStack() as stack:

        def opened(index: IndexConfig | None) -> BaseStore:
            if kind == "memory":
                return InMemoryStore(index=index)
            if kind == "postgres":
                return stack.enter_context(PostgresStore.from_conn_string(request.getfixturevalue("dsn"), index=index))
            made = SqliteStore if kind == "sqlite" else WithoutExtensions
            return stack.enter_context(made.from_conn_string(tmp_path / "store.db", index=index, synchronous="NORMAL"))

        yield opened


@pytest.mark.parametrize("distance", ["cosine", "l2", "inner_product"])
def test_scores_are_those_of_the_formula_on_every_store(opening: Any, distance: Any) -> None:
    store = opening(config(distance_type=distance))
    texts = [f"text {number}" for number in range(40)]
    for text in texts:
        store.put(("a",), text, {"text": text})
    (query,) = embed(["question"])
    expected = sorted(
        ((score(distance, vector, query), text) for vector, text in zip(embed(texts), texts, strict=True)), reverse=True
    )
    found = store.search(("a",), query="question", limit=7)

    assert [text for _, text in expected[:7]] == [item.key for item in found]
    for (right, _), item in zip(expected, found, strict=False):
        assert math.isclose(right, item.score, abs_tol=1e-5)


def test_a_store_without_an_index_makes_vectors_stale_too(opening: Any, kind: str) -> None:
    if kind == "memory":
        pytest.skip("a store in memory is not opened twice")
    indexed, plain = opening(config()), opening(None)
    indexed.put(("a",), "k", {"text": "old"})
    plain.put(("a",), "k", {"text": "new"})
    plain.put(("a",), "l", {"text": "new"})

    assert [None, None] == [item.score for item in indexed.search(("a",), query="old")]
    plain.delete(("a",), "k")
    indexed.put(("a",), "k", {"text": "newest"})
    assert [1.0] == [round(item.score, 4) for item in indexed.search(("a",), query="newest", limit=1)]


def test_a_filter_leaves_enough_of_the_nearest(opening: Any) -> None:
    store = opening(config())
    for number in range(300):
        store.put(("a",), str(number), {"text": f"t{number}", "tags": [number % 7, {"x": number % 2}]})
    found = store.search(("a",), query="t3", filter={"tags": [3, {"x": 1}]}, limit=5)

    assert "3" == found[0].key
    assert [True] * 5 == [int(item.key) % 7 == 3 and int(item.key) % 2 == 1 for item in found]
    scores = [item.score for item in found]
    assert scores == sorted(scores, reverse=True)


def test_the_extension_is_used_where_it_can_be_loaded(tmp_path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(":memory:")
    able = extension() is not None and hasattr(connection, "enable_load_extension")

    assert able == load_extension(connection)
    connection.close()


def test_rows_score_the_same_with_and_without_numpy() -> None:
    for distance in get_args(Distance):
        both = [Rows(DIMS, fast=fast) for fast in (True, False)]
        vectors = [*embed([str(number) for number in range(50)]), [0.0] * DIMS]
        for rows in both:
            places = [rows.add(vector) for vector in vectors]
            rows.remove(places[3])
            assert places[3] == rows.add(vectors[0])
        (query,) = embed(["q"])
        one, other = (rows.scores(distance, query, range(51)) for rows in both)

        assert all(math.isclose(a, b, abs_tol=1e-5) for a, b in zip(one, other, strict=True))
        some = [both[0].scores(distance, query, [7, 3]), both[1].scores(distance, query, [7, 3])]
        assert all(math.isclose(a, b, abs_tol=1e-5) for a, b in zip(*some, strict=True))


@pytest.mark.parametrize("distance", get_args(Distance))
def test_sqlite_scores_the_same_with_and_without_numpy(distance: Distance) -> None:
    query, *vectors = (array("f", vector).tobytes() for vector in [*embed(["q", "a", "b"]), [0.0] * DIMS])
    fast, plain = (comparing(distance, query, fast=fast) for fast in (True, False))

    assert all(math.isclose(fast(one), plain(one), abs_tol=1e-5) for one in vectors)


def test_a_function_that_is_awaited_works_in_awaited_calls_only() -> None:
    async def slow(texts: Sequence[str]) -> list[list[float]]:
        return embed(texts)

    store = InMemoryStore(index=config(embed=slow))
    with pytest.raises(AsyncOnlyError):
        store.put(("a",), "k", {"text": "x"})
    asyncio.run(store.aput(("a",), "k", {"text": "x"}))

    assert [1.0] == [round(item.score or 0, 4) for item in asyncio.run(store.asearch(("a",), query="x"))]


def test_an_object_with_an_encode_method_will_do() -> None:
    class Model:
        def encode(self, texts: list[str]) -> Any:
            import numpy as np

            return np.array(embed(texts), dtype=np.float32)

    store = InMemoryStore(index=config(embed=Model()))
    store.put(("a",), "k", {"text": "x"})

    assert [1.0] == [round(item.score or 0, 4) for item in store.search(("a",), query="x")]


@pytest.mark.parametrize(
    "index",
    [{"dims": 0}, {"dims": "3"}, {"embed": None}, {"embed": 3}, {"distance_type": "far"}, {"embed": "openai:x"}],
)
def test_an_index_that_is_wrong_is_refused(index: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        InMemoryStore(index=config(**index))


@pytest.mark.parametrize("more", [{}, {"hybrid": 0.5}], ids=["meaning", "hybrid"])
@pytest.mark.parametrize("kind", ["sqlite", "sqlite without extensions", "postgres"])  # memory keeps no former index
def test_vectors_of_another_length_are_not_there(opening: Any, more: dict[str, Any]) -> None:
    opening(config(**more)).put(("length",), "old", {"text": "a"})
    shorter: Any = {**config(**more), "dims": 2, "embed": lambda texts: [[1.0, float(len(text))] for text in texts]}
    store = opening(shorter)
    store.put(("length",), "new", {"text": "b"})

    found = store.search(("length",), query="a")
    assert [("new", True), ("old", False)] == [(item.key, item.score is not None) for item in found]
    store.put(("length",), "old", {"text": "a"})
    assert all(item.score is not None for item in store.search(("length",), query="a"))
