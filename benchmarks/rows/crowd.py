"""What a superstep costs while 1,000 runs go on at once in one event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from benchmarks.databases import (
    asqlite,
    awaiting,
    bare_postgres,
    bare_sqlite,
    commits,
    inserts,
    postgres,
    postgres_awaiting,
)
from benchmarks.graphs import astep, loop, new_thread, python
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR, OURS
from benchmarks.timing import Repetition, timed

STEPS = 10


def crowd(graph: Any, runs: int, runner: asyncio.Runner, **arguments: Any) -> Repetition:
    """So many runs of ten supersteps at once."""

    async def play() -> None:
        given = {"n": 0, "until": STEPS}
        await asyncio.gather(*(graph.ainvoke(given, new_thread(), **arguments) for _ in range(runs)))

    return timed(lambda: lambda: runner.run(play()), runs * STEPS)


@measured(Row("crowd.none", "superstep, 1,000 runs at once (check: 50), no saver"))
def without(bench: Bench) -> Sides:
    runs, runner = bench.size(1_000, 50), bench.stack.enter_context(asyncio.Runner())
    return {**bench.each(lambda side: crowd(loop(side, None, astep), runs, runner)), FLOOR: python()}


@measured(Row("crowd.memory", "superstep, 1,000 runs at once (check: 50), in-memory saver"))
def with_memory(bench: Bench) -> Sides:
    runs, runner = bench.size(1_000, 50), bench.stack.enter_context(asyncio.Runner())
    sides = bench.each(lambda side: crowd(loop(side, side.InMemorySaver(), astep), runs, runner, durability="async"))
    return {**sides, FLOOR: python()}


@measured(Row("crowd.sqlite", "superstep, 1,000 runs at once (check: 50), SQLite NORMAL, async"))
def with_sqlite(bench: Bench) -> Sides:
    runs, connection = bench.size(1_000, 30), bench.stack.enter_context(bare_sqlite())

    def repetition(side: Any) -> Repetition:
        runner, saver = awaiting(bench, asqlite(side))
        return crowd(loop(side, saver, astep), runs, runner, durability="async")

    return {**bench.each(repetition), FLOOR: timed(lambda: commits(connection, 200), 200)}


@measured(Row("crowd.postgres", "superstep, 1,000 runs at once (check: 50), PostgreSQL, async, client"))
def with_postgres(bench: Bench) -> Sides:
    ours, runs, dsn = bench.ours, bench.size(1_000, 30), postgres(bench)
    runner, saver = postgres_awaiting(bench, dsn)
    connection = bare_postgres(bench, dsn)
    mine = crowd(loop(ours, saver, astep), runs, runner, durability="async")
    return {OURS: mine, FLOOR: timed(lambda: inserts(connection, 200), 200)}
