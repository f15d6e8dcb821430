"""What a store's puts, gets and searches cost, in memory, SQLite and PostgreSQL.

In memory and in SQLite it is CPU time. With PostgreSQL it is wall time, since the work is done in another process; its
tables are analysed after the puts, as the housekeeping of a server does sooner or later.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from types import SimpleNamespace
from typing import Any

from benchmarks.databases import postgres
from benchmarks.measured import Bench, Missing, Row, Sides, measured
from benchmarks.sides import OURS
from benchmarks.timing import Repetition, Sample, timed

DIMS = 128
BATCH = 1_000
USERS = 100
EVERYWHERE = ("facts",)

PLAIN = (
    "put, in batches of 1,000",
    "put one",
    "get one",
    "first 10 of all",
    "10 by a text",
    "10 by a number, the last ones",
    "first 10 of a user's",
    "all namespaces",
    "one by a text that nothing has",
    "10 of a user's by a number",
)
INDEXED = (
    "put with a vector, in batches of 1,000",
    "nearest 10 of all",
    "nearest 10 of a user's",
    "nearest 10 of a hundredth, by a number",
)
INDEXES: dict[str, dict[str, Any] | None] = {
    "": None,
    "vectors": {"ann_index_config": {"kind": "flat"}},
    "hnsw": {"ann_index_config": {"kind": "hnsw"}},
    "words": {"hybrid": 0.5},
}
"""What an index of a kind has beside dims, embed and fields."""


def embed(texts: Sequence[str]) -> list[list[float]]:
    """A vector that the text alone decides, at the cost of no model."""
    vectors = []
    for text in texts:
        draw = random.Random(text)
        vectors.append([draw.random() - 0.5 for _ in range(DIMS)])
    return vectors


def documents(count: int) -> Iterator[tuple[tuple[str, ...], str, dict[str, Any]]]:
    """(namespace, key, value)."""
    for number in range(count):
        value = {"text": f"fact {number}", "n": number, "tag": f"t{number % 1_000}", "by": {"name": f"u{number % 50}"}}
        yield ("facts", f"user-{number % USERS}"), str(number), value


def opened(side: SimpleNamespace, kind: str, more: dict[str, Any] | None, bench: Bench) -> tuple[Any, str]:
    """A store of an implementation, and its DSN. Missing where it cannot be had."""
    index: Any = None if more is None else {"dims": DIMS, "embed": embed, "fields": ["text"], **more}
    stack, dsn = bench.stack, ""
    try:
        if kind == "memory":
            return import_module(f"{side.package}.store.memory").InMemoryStore(index=index), ""
        if kind == "postgres":
            made = import_module(f"{side.package}.store.postgres").PostgresStore
            dsn = postgres(bench)
            store = stack.enter_context(made.from_conn_string(dsn, index=index))
            store.setup()
            return store, dsn
        made = import_module(f"{side.package}.store.sqlite").SqliteStore
        path = Path(stack.enter_context(TemporaryDirectory()), "store.db")
        store = stack.enter_context(made.from_conn_string(str(path), index=index))
        store.setup()
    except (AttributeError, ModuleNotFoundError) as error:  # the peer's needs a Python that loads SQLite's extensions
        raise Missing(f"{side.package} has no {kind} store here: {error}") from error
    return store, ""


def putting(side: SimpleNamespace, store: Any, count: int) -> Callable[[], Any]:
    """Put everything, in batches."""
    put = import_module(f"{side.package}.store.base").PutOp
    ops = [put(*document) for document in documents(count)]
    return lambda: [store.batch(ops[first : first + BATCH]) for first in range(0, count, BATCH)]


def analysed(dsn: str) -> None:
    """Let a server look at what it has."""
    if dsn:
        import psycopg

        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("VACUUM ANALYZE")


def asking(store: Any, count: int, indexed: bool) -> list[tuple[Callable[[], Any], int]]:
    """What is timed on a store that is full, and how often in a repetition."""
    if indexed:
        return [
            (lambda: store.search(EVERYWHERE, query="fact 7"), 1),
            (lambda: store.search(("facts", "user-7"), query="fact 7"), 5),
            (lambda: store.search(EVERYWHERE, query="fact 7", filter={"n": {"$lt": count // 100}}), 1),
        ]
    key, place = str(count // 2), ("facts", f"user-{count // 2 % USERS}")
    return [
        (lambda: store.put(place, key, {"text": "new", "n": 1, "tag": "t1"}), 20),
        (lambda: store.get(place, key), 50),
        (lambda: store.search(EVERYWHERE), 1),
        (lambda: store.search(EVERYWHERE, filter={"tag": "t77"}), 1),
        (lambda: store.search(EVERYWHERE, filter={"n": {"$gte": count - 5}}), 1),
        (lambda: store.search(("facts", "user-7")), 5),
        (lambda: store.list_namespaces(), 1),
        (lambda: store.search(EVERYWHERE, filter={"tag": "none"}), 1),
        (lambda: store.search(("facts", "user-7"), filter={"n": {"$lt": 1_000}}), 5),
    ]


def repeated(work: Callable[[], Any], times: int) -> Callable[[], Any]:
    """The same so many times."""
    return lambda: [work() for _ in range(times)]


def filled(side: SimpleNamespace, kind: str, more: dict[str, Any] | None, count: int, bench: Bench) -> Repetition:
    """Each thing that is done, on a store that is filled in the first repetition."""
    store, dsn = opened(side, kind, more, bench)
    clock = perf_counter if dsn else process_time
    fill = timed(lambda: putting(side, store, count), count, clock)
    done: list[tuple[Sample, ...]] = []
    asked = asking(store, count, more is not None)
    rest = [timed(partial(repeated, work, times), times, clock) for work, times in asked]

    def repeat() -> tuple[Sample, ...]:
        if not done:
            done.append(fill())
            analysed(dsn)
        return done[0] + tuple(sample for one in rest for sample in one())

    return repeat


def of_a_kind(kind: str, index: str) -> None:
    """The rows of one kind of store with one kind of index."""
    more = INDEXES[index]
    whats = PLAIN if more is None else INDEXED
    full = 10_000 if kind == "postgres" and index else 100_000  # a vector takes milliseconds to put there
    name, title = f"store.{kind}{index and '_'}{index}", f"{kind} store of {full:,}{index and ', '}{index}"

    @measured(*(Row(f"{name}_{at}", f"{title}: {what}") for at, what in enumerate(whats)), full=True)
    def figures(bench: Bench) -> Sides:
        count = bench.size(full, 5_000)
        sides = {}
        for side_name, side in bench.sides.items():
            if side_name != OURS and index == "words":
                continue
            try:
                sides[side_name] = filled(side, kind, more, count, bench)
            except Missing:
                if side_name == OURS:
                    raise
        return sides


for kind in ("memory", "sqlite", "postgres"):
    for index in INDEXES:
        if index != "hnsw" or kind == "postgres":
            of_a_kind(kind, index)
