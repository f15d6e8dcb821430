"""What a store's put, get, filter search and vector search cost, in memory and in SQLite, beside the reference's.

Databases in other processes are left out: CPU time of this process says nothing about them.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any

from benchmarks._harness import PACKAGES, Report, installed, options

DIMS = 128
BATCH = 1_000
USERS = 100


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


def opened(package: str, kind: str, place: str, index: dict[str, Any] | None, stack: ExitStack) -> Any:
    """A store of one implementation, None where it cannot be had."""
    try:
        if kind == "memory":
            return import_module(f"{package}.store.memory").InMemoryStore(index=index)
        made = import_module(f"{package}.store.sqlite").SqliteStore
        store = stack.enter_context(made.from_conn_string(str(Path(place, f"{package}.db")), index=index))
        store.setup()
    except (AttributeError, ModuleNotFoundError):  # the reference's needs a Python that loads SQLite's extensions
        return None
    return store


def timed(work: Callable[[], Any], times: int) -> float:
    """The least CPU time of some calls, in microseconds."""
    least = float("inf")
    for _ in range(times):
        start = process_time()
        work()
        least = min(least, process_time() - start)
    return least * 1e6


def figures(package: str, store: Any, count: int, rounds: int, indexed: bool) -> dict[str, float]:
    """Microseconds by what was done."""
    put = import_module(f"{package}.store.base").PutOp
    ops = [put(*document) for document in documents(count)]
    found = {}
    start = process_time()
    for first in range(0, count, BATCH):
        store.batch(ops[first : first + BATCH])
    what = "put with a vector, in batches of 1,000" if indexed else "put, in batches of 1,000"
    found[what] = (process_time() - start) * 1e6 / count
    everywhere = ("facts",)
    if indexed:
        found["nearest 10 of all"] = timed(lambda: store.search(everywhere, query="fact 7"), rounds)
        found["nearest 10 of a user's"] = timed(lambda: store.search(("facts", "user-7"), query="fact 7"), rounds)
        return found
    key = str(count // 2)
    place = ("facts", f"user-{count // 2 % USERS}")
    found["put one"] = timed(lambda: store.put(place, key, {"text": "new", "n": 1, "tag": "t1"}), rounds * 20)
    found["get one"] = timed(lambda: store.get(place, key), rounds * 20)
    searches: dict[str, dict[str, Any]] = {
        "first 10 of all": {},
        "10 by a text": {"filter": {"tag": "t77"}},
        "10 by a number, the last ones": {"filter": {"n": {"$gte": count - 5}}},
    }
    for name, arguments in searches.items():
        found[name] = timed(lambda arguments=arguments: store.search(everywhere, **arguments), rounds)
    found["first 10 of a user's"] = timed(lambda: store.search(("facts", "user-7")), rounds)
    found["all namespaces"] = timed(lambda: store.list_namespaces(), rounds)
    return found


def compare(report: Report, kind: str, count: int, rounds: int) -> None:
    """A row for each thing that is done, with and without vectors."""
    for index in (None, {"dims": DIMS, "embed": embed, "fields": ["text"]}):
        table: dict[str, dict[str, float]] = {}
        for side in installed():
            with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
                store = opened(PACKAGES[side], kind, place, index, stack)
                if store is None:
                    continue
                for what, value in figures(PACKAGES[side], store, count, rounds, index is not None).items():
                    table.setdefault(what, {})[side] = value
        for what, row in table.items():
            report.add(f"{kind}: {what}", row)


def main() -> None:
    """Print the table."""
    given = options(__doc__ or "")
    count = 5_000 if given.quick else 100_000
    report = Report(f"Stores of {count:,} items (µs of CPU time)")
    for kind in ("memory", "sqlite"):
        compare(report, kind, count, given.rounds)
    report.show()


if __name__ == "__main__":
    main()
