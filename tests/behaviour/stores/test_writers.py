"""Several writers of the same items in PostgreSQL: they take turns, and none of them fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from pregel.store.base import GetOp, Op, PutOp
from pregel.store.postgres import PostgresStore
from tests.postgres import WAITING

PLACE = ("writers",)
BUMP = "UPDATE pregel_store SET gen = gen + 1 WHERE ns = '.writers.' AND key = 'k'"
VECTORS = (
    "DELETE FROM pregel_store_vectors v USING pregel_store s WHERE v.item = s.id AND s.ns = '.writers.'",
    "INSERT INTO pregel_store_vectors SELECT id, 0, gen, '[1,2]' FROM pregel_store WHERE ns = '.writers.'",
)


def embed(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, float(text.count("a"))] for text in texts]


@pytest.fixture
def store(dsn: str) -> Iterator[PostgresStore]:
    index: Any = {"dims": 2, "embed": embed, "fields": ["t"]}
    with PostgresStore.from_conn_string(dsn, index=index) as opened:
        opened.put(PLACE, "k", {"t": "a"})
        yield opened


@contextmanager
def another(dsn: str, *statements: str) -> Iterator[psycopg.Connection[Any]]:
    """A writer in the middle of its transaction, which is committed in the end."""
    with psycopg.connect(dsn) as connection:
        for statement in statements:
            connection.execute(statement.encode())
        yield connection


def waits(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not connection.execute(f"SELECT 1 {WAITING}".encode()).fetchall():
            pass


@pytest.mark.parametrize(
    "others", [(BUMP, *VECTORS), (VECTORS[0], BUMP, VECTORS[1])], ids=["items first", "vectors first"]
)
def test_a_put_waits_for_another_put_of_its_key_and_replaces_its_vectors(
    store: PostgresStore, dsn: str, others: tuple[str, ...]
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with another(dsn, *others):
            done = pool.submit(store.put, PLACE, "k", {"t": "aaa"})
            waits(dsn)
        done.result()

    assert [(item.key, item.value) for item in store.search(PLACE, query="aaa")] == [("k", {"t": "aaa"})]
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT count(*) FROM pregel_store_vectors").fetchone() == (1,)


def test_a_first_put_of_a_key_waits_for_another_first_put_of_it(store: PostgresStore, dsn: str) -> None:
    store.delete(PLACE, "k")
    first = "INSERT INTO pregel_store (ns, key, value, created, updated) VALUES ('.writers.', 'k', '{}', 0, 0)"
    with ThreadPoolExecutor(1) as pool:
        with another(dsn, first, *VECTORS):
            done = pool.submit(store.put, PLACE, "k", {"t": "aaa"})
            waits(dsn)
        done.result()

    assert [item.value for item in store.search(PLACE, query="aaa")] == [{"t": "aaa"}]


def test_batches_that_put_and_delete_each_others_items_take_turns(store: PostgresStore, dsn: str) -> None:
    """Deletes and puts are two statements: without an order over both, each would hold what the other waits for."""
    store.put(PLACE, "l", {"t": "a"})
    lock = "SELECT 1 FROM pregel_store WHERE ns = '.writers.' AND key = 'k' FOR UPDATE"
    with ThreadPoolExecutor(1) as pool:
        with another(dsn, lock) as connection:
            done = pool.submit(store.batch, [PutOp(PLACE, "k", {"t": "b"}), PutOp(PLACE, "l", None)])
            waits(dsn)
            connection.execute("SELECT 1 FROM pregel_store WHERE ns = '.writers.' AND key = 'l' FOR UPDATE NOWAIT")
        done.result()

    assert store.get(PLACE, "l") is None


def test_a_batch_that_reads_is_done_again_after_a_deadlock(store: PostgresStore, dsn: str) -> None:
    store.delete(PLACE, "k")  # what is not there yet cannot be locked
    taken = "INSERT INTO pregel_store (ns, key, value, created, updated) VALUES ('.writers.', '{}', '{{}}', 0, 0)"
    ops: list[Op] = [GetOp(PLACE, "k"), PutOp(PLACE, "k", {"t": "a"}), PutOp(PLACE, "l", {"t": "a"})]
    with ThreadPoolExecutor(1) as pool:
        with another(dsn, "SET deadlock_timeout = '1h'", taken.format("l")) as connection:
            done: Future[Any] = pool.submit(store.batch, ops)
            waits(dsn)
            connection.execute(taken.format("k").encode())  # the store's transaction is the one that is undone
        found = done.result()[0]

    assert found is None or found.value == {}  # the other one had put it by then, or was about to
    written = [store.get(PLACE, key) for key in ("k", "l")]
    assert [item and item.value for item in written] == [{"t": "a"}, {"t": "a"}]  # all of the batch is done again
