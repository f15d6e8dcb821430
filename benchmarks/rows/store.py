"""What a store's put, get, filter search and vector search cost, in memory and in SQLite.

Databases in other processes are left out: CPU time of this process says nothing about them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

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
)
INDEXED = ("put with a vector, in batches of 1,000", "nearest 10 of all", "nearest 10 of a user's")


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


def opened(side: SimpleNamespace, kind: str, indexed: bool, stack: ExitStack) -> Any:
    """A store of an implementation. Missing where it cannot be had."""
    index: Any = {"dims": DIMS, "embed": embed, "fields": ["text"]} if indexed else None
    try:
        if kind == "memory":
            return import_module(f"{side.package}.store.memory").InMemoryStore(index=index)
        made = import_module(f"{side.package}.store.sqlite").SqliteStore
        path = Path(stack.enter_context(TemporaryDirectory()), "store.db")
        store = stack.enter_context(made.from_conn_string(str(path), index=index))
        store.setup()
    except (AttributeError, ModuleNotFoundError) as error:  # the peer's needs a Python that loads SQLite's extensions
        raise Missing(f"{side.package} has no {kind} store here: {error}") from error
    return store


def putting(side: SimpleNamespace, store: Any, count: int) -> Callable[[], Any]:
    """Put everything, in batches."""
    put = import_module(f"{side.package}.store.base").PutOp
    ops = [put(*document) for document in documents(count)]
    return lambda: [store.batch(ops[first : first + BATCH]) for first in range(0, count, BATCH)]


def asking(store: Any, count: int, indexed: bool) -> list[tuple[Callable[[], Any], int]]:
    """What is timed on a store that is full, and how often in a repetition."""
    if indexed:
        return [
            (lambda: store.search(EVERYWHERE, query="fact 7"), 1),
            (lambda: store.search(("facts", "user-7"), query="fact 7"), 5),
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
    ]


def repeated(work: Callable[[], Any], times: int) -> Callable[[], Any]:
    """The same so many times."""
    return lambda: [work() for _ in range(times)]


def filled(side: SimpleNamespace, kind: str, indexed: bool, count: int, stack: ExitStack) -> Repetition:
    """Each thing that is done, on a store that is filled in the first repetition."""
    store = opened(side, kind, indexed, stack)
    fill = timed(lambda: putting(side, store, count), count)
    done: list[tuple[Sample, ...]] = []
    rest = [timed(partial(repeated, work, times), times) for work, times in asking(store, count, indexed)]

    def repeat() -> tuple[Sample, ...]:
        if not done:
            done.append(fill())
        return done[0] + tuple(sample for one in rest for sample in one())

    return repeat


def of_a_kind(kind: str, indexed: bool) -> None:
    """The rows of one kind of store."""
    whats = INDEXED if indexed else PLAIN
    name = f"store.{kind}_vectors" if indexed else f"store.{kind}"

    @measured(*(Row(f"{name}_{at}", f"{kind} store of 100,000: {what}") for at, what in enumerate(whats)), full=True)
    def figures(bench: Bench) -> Sides:
        count = bench.size(100_000, 5_000)
        sides = {}
        for side_name, side in bench.sides.items():
            try:
                sides[side_name] = filled(side, kind, indexed, count, bench.stack)
            except Missing:
                if side_name == OURS:
                    raise
        return sides


for kind in ("memory", "sqlite"):
    for indexed in (False, True):
        of_a_kind(kind, indexed)
