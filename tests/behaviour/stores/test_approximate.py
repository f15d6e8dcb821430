"""Approximate indexes of PostgreSQL: they decide what is looked at first, never what is found."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg import sql

from pregel.checkpoint.flows import Sql
from pregel.errors import InvalidInputError
from pregel.store.base import PutOp
from pregel.store.filters import compiled
from pregel.store.memory import InMemoryStore
from pregel.store.postgres import PostgresStore
from pregel.store.postgres.words import words_of

DIMS = 6
HNSW, IVFFLAT = {"kind": "hnsw", "m": 8, "ef_construction": 32}, {"kind": "ivfflat", "nlist": 4}


def embed(texts: Sequence[str]) -> list[list[float]]:
    """A vector that the text alone decides; none has a length of zero but that of "nothing"."""
    draws = [random.Random(text) for text in texts]
    return [
        [0.0] * DIMS if text == "nothing" else [draw.uniform(-1, 1) for _ in range(DIMS)]
        for text, draw in zip(texts, draws, strict=True)
    ]


def config(**more: Any) -> Any:
    return {"dims": DIMS, "embed": embed, "fields": ["text", "more"], **more}


@pytest.fixture
def opened(dsn: str) -> Iterator[Callable[..., PostgresStore]]:
    """What opens a store with an approximate index."""
    with ExitStack() as stack:

        def opening(ann: Any, **more: Any) -> PostgresStore:
            index = config(ann_index_config={"exact_below": 0, **ann}, **more)
            return stack.enter_context(PostgresStore.from_conn_string(dsn, index=index))

        yield opening
    with psycopg.connect(dsn, autocommit=True) as connection:  # other tests have the same database
        found = connection.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'pregel_store_vectors_%_6_%'")
        for (name,) in found.fetchall():
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))


def fill(store: Any, count: int = 120) -> None:
    store.batch(
        [
            PutOp(("a", str(number % 4)), str(number), {"text": f"t{number}", "more": f"m{number}", "n": number})
            for number in range(count)
        ]
    )


def scores(store: Any, *args: Any, **options: Any) -> list[float]:
    return [round(item.score, 4) for item in store.search(*args, **options)]


@pytest.mark.parametrize(
    ("ann", "distance"),
    [
        (HNSW, "cosine"),
        (HNSW, "l2"),
        (HNSW, "inner_product"),
        (IVFFLAT, "cosine"),
        ({"vector_type": "halfvec"}, "cosine"),
    ],
)
def test_the_nearest_are_found_with_exact_scores(
    opened: Callable[..., PostgresStore], ann: dict[str, Any], distance: str
) -> None:
    model = InMemoryStore(index=config(distance_type=distance))
    fill(model)
    store = opened(ann, distance_type=distance)
    fill(store)

    right, found = (scores(one, ("a",), query="question", limit=10) for one in (model, store))
    assert sorted(found, reverse=True) == found
    assert set(found[:1]) <= set(right)
    assert len(set(found) & set(right)) >= (7 if ann is not IVFFLAT else 4)


def test_the_statement_of_a_search_uses_the_index(opened: Callable[..., PostgresStore], dsn: str) -> None:
    store = opened(HNSW)
    fill(store)
    where = (".a.", ".a/", 0.0, 5, 0, array("f", [1.0] * DIMS))
    for wanted in ((), (compiled({"n": 3}),)):
        name = "nearest_filtered" if wanted else "nearest"
        (settings, _), (text, args) = words_of(store.index, store.near)(Sql(name, (*where, *wanted)))
        with psycopg.connect(dsn, cursor_factory=psycopg.RawCursor) as connection:
            connection.execute("SET LOCAL enable_seqscan = off")
            connection.execute("SET LOCAL enable_sort = off")
            plan = connection.execute(f"EXPLAIN {text}".encode(), args).fetchall()

        assert "set_config" in settings
        assert "Index Scan using pregel_store_vectors_hnsw_vector_6_cosine" in str(plan)


def test_conditions_lose_nothing_to_the_index(opened: Callable[..., PostgresStore]) -> None:
    store = opened(HNSW)
    fill(store)
    store.put(("a", "1"), "nothing", {"text": "nothing", "n": 1_000})  # a vector that no index of cosines holds
    only = {"n": {"$gte": 110}}

    assert {"113", "117", "nothing"} == {item.key for item in store.search(("a", "1"), query="q", filter=only)}
    assert 10 == len(store.search(("a",), query="q", filter=only, limit=10))
    assert ["7"] == [item.key for item in store.search((), query="q", filter={"n": 7})]
    assert 121 == len({item.key for item in store.search(("a",), query="q", limit=1_000)})
    pages = [item.key for place in range(0, 121, 25) for item in store.search((), query="q", limit=25, offset=place)]
    assert len(pages) == 121


def test_few_items_are_compared_one_by_one(opened: Callable[..., PostgresStore]) -> None:
    model, store = InMemoryStore(index=config()), opened({**HNSW, "exact_below": 120})
    fill(model)
    fill(store)

    assert scores(model, ("a",), query="question", limit=30) == scores(store, ("a",), query="question", limit=30)


def test_vectors_of_an_old_value_and_other_lengths_are_not_found(opened: Callable[..., PostgresStore]) -> None:
    store = opened(HNSW)
    store.batch([PutOp(("a",), str(number), {"text": "old"}) for number in range(30)])
    store.batch([PutOp(("a",), str(number), {"text": f"new {number}"}) for number in range(30)])

    assert 1.0 not in scores(store, ("a",), query="old", limit=30)
    assert scores(store, ("a",), query="new 7", limit=1) == [1.0]


def test_setup_makes_the_index_beside_what_is_there(opened: Callable[..., PostgresStore], dsn: str) -> None:
    fill(opened({"kind": "flat"}))
    opened(HNSW).setup()
    opened({"kind": "ivfflat"}, distance_type="l2").setup()
    with psycopg.connect(dsn) as connection:
        names = connection.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'pregel%hnsw%'").fetchall()
        lists = connection.execute("SELECT indexdef FROM pg_indexes WHERE indexname LIKE 'pregel%ivf%l2'").fetchall()

    assert ("pregel_store_vectors_hnsw_vector_6_cosine",) in names  # others may be left from other tests
    assert any("lists='100'" in definition for (definition,) in lists)


@pytest.mark.parametrize(
    "ann",
    [
        {"kind": "tree"},
        {"vector_type": "bit"},
        {"kind": "hnsw", "nlist": 3},
        {"kind": "ivfflat", "m": 3},
        {"m": 1},
        {"m": "8); DROP TABLE pregel_store; --"},
        {"ef_construction": True},
        {"exact_below": -1},
    ],
)
def test_an_approximate_index_that_is_wrong_is_refused(opened: Callable[..., PostgresStore], ann: Any) -> None:
    with pytest.raises(InvalidInputError):
        opened(ann)


@pytest.mark.parametrize("more", [{"dims": 2_001}, {"hybrid": 0.5}])
def test_what_pgvector_cannot_index_is_refused(opened: Callable[..., PostgresStore], more: Any) -> None:
    with pytest.raises(InvalidInputError):
        opened(HNSW, **more)
