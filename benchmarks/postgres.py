"""What one superstep of a trivial node costs the client with PostgreSQL, for each durability and both drivers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks._harness import OURS, Budget, Contender, Report, measure, options, sides
from benchmarks.superstep import THREADS, cpu, invoke, loop
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from tests.postgres import MISSING, shared

BUDGETS = {"async": Budget(180, 90), "sync": Budget(450, 320), "exit": None}


@contextmanager
def database() -> Iterator[str]:
    """The DSN of an empty database on the server of the tests."""
    with TemporaryDirectory() as directory, shared(Path(directory)) as server:
        if server is None:
            raise SystemExit(MISSING)
        with server.emptied("pregel_bench") as made:
            yield made.dsn


def awaited(dsn: str, steps: int, durability: str) -> Callable[[], Any]:
    """The same run, awaited in an event loop of its own."""

    async def run() -> None:
        async with AsyncPostgresSaver.from_conn_string(dsn) as saver:
            config = {"recursion_limit": steps + 10, "configurable": {"thread_id": f"t{next(THREADS)}"}}
            await loop(sides()[OURS], saver).ainvoke({"n": 0, "until": steps}, config, durability=durability)

    return lambda: asyncio.run(run())


def main() -> None:
    """Measure and print."""
    given = options(__doc__ or "")
    steps = 50 if given.quick else 300
    report = Report("Superstep, PostgreSQL: CPU time of the client")
    with database() as dsn, PostgresSaver.from_conn_string(dsn) as saver:
        graph = loop(sides()[OURS], saver)
        kinds = [
            *(
                Contender(f"{one}, blocking", lambda one=one: invoke(graph, steps, durability=one), steps)
                for one in BUDGETS
            ),
            *(Contender(f"{one}, awaited", lambda one=one: awaited(dsn, steps, one), steps) for one in BUDGETS),
        ]
        timings = measure(kinds, given.rounds)
    for name, figure in cpu(timings).items():
        report.add(f"{name}, µs", {OURS: figure}, BUDGETS[name.split(",")[0]])
        report.add(f"{name}, wall µs", {OURS: timings[name].wall})
    report.show()


if __name__ == "__main__":
    main()
