"""What one superstep of a trivial node costs, for each saver and durability."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.databases import (
    bare_postgres,
    bare_sqlite,
    commits,
    inserts,
    postgres,
    postgres_awaiting,
    postgres_saver,
    sqlite,
)
from benchmarks.graphs import bare, chain, invoke, loop, new_thread
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR, OURS
from benchmarks.timing import timed


@measured(Row("superstep.none", "superstep in a loop, no saver"))
def none(bench: Bench) -> Sides:
    steps = bench.size(1_000, 300)
    sides = bench.each(lambda side: timed(partial(invoke, loop(side), steps), steps))
    return {**sides, FLOOR: timed(lambda: bare(steps), steps)}


@measured(Row("superstep.chain", "superstep in a chain of 1,000 nodes, no saver"))
def in_a_chain(bench: Bench) -> Sides:
    steps = 1_000
    sides = bench.each(lambda side: timed(partial(invoke, chain(side, steps), steps), steps))
    return {**sides, FLOOR: timed(lambda: bare(steps), steps)}


@measured(Row("superstep.memory", "superstep in a loop, in-memory saver"))
def memory(bench: Bench) -> Sides:
    steps = bench.size(1_000, 300)
    sides = bench.each(lambda side: timed(lambda: invoke(loop(side, side.InMemorySaver()), steps), steps))
    return {**sides, FLOOR: timed(lambda: bare(steps), steps)}


@measured(Row("superstep.invoke", "a whole invoke of one node, no saver"))
def one_invoke(bench: Bench) -> Sides:
    calls = bench.size(500, 50)

    def invokes(graph: Any) -> Callable[[], Any]:
        return lambda: [graph.invoke({"n": 0, "until": 1}) for _ in range(calls)]

    sides = bench.each(lambda side: timed(partial(invokes, chain(side, 1)), calls))
    return {**sides, FLOOR: timed(lambda: bare(calls), calls)}


@measured(Row("superstep.compile", "build and compile a graph of 200 nodes, per node"))
def compilation(bench: Bench) -> Sides:
    nodes = 200
    sides = bench.each(lambda side: timed(lambda: partial(chain, side, nodes), nodes))
    return {**sides, FLOOR: timed(lambda: bare(nodes), nodes)}


# -- databases --------------------------------------------------------------------------------------------------------


def on_sqlite(name: str, what: str, synchronous: str, durability: str) -> None:
    """A row of supersteps on a SQLite file beside as many bare transactions."""

    @measured(Row(f"superstep.{name}", f"superstep, SQLite {synchronous}, durability {what}"))
    def stored(bench: Bench) -> Sides:
        steps = bench.size(300, 40)
        graphs = {
            name: loop(side, bench.stack.enter_context(sqlite(side, synchronous)).saver)
            for name, side in bench.sides.items()
        }
        sides = {
            name: timed(partial(invoke, graph, steps, durability=durability), steps) for name, graph in graphs.items()
        }
        connection = bench.stack.enter_context(bare_sqlite(synchronous))
        return {**sides, FLOOR: timed(lambda: commits(connection, steps), steps)}


on_sqlite("sqlite_async", "async", "NORMAL", "async")
on_sqlite("sqlite_sync", "sync", "NORMAL", "sync")
on_sqlite("sqlite_full", "sync", "FULL", "sync")


def on_postgres(name: str, durability: str) -> None:
    """A row of supersteps on PostgreSQL, blocking and awaited, beside as many bare inserts."""

    @measured(
        Row(f"superstep.postgres_{name}", f"superstep, PostgreSQL, durability {durability}, client"),
        Row(f"superstep.postgres_{name}_awaited", f"superstep, PostgreSQL, durability {durability}, awaited, client"),
    )
    def stored(bench: Bench) -> Sides:
        ours, steps = bench.ours, bench.size(300, 40)
        dsn = postgres(bench)
        graph = loop(ours, postgres_saver(bench, dsn))
        blocking = timed(partial(invoke, graph, steps, durability=durability), steps)
        runner, saver = postgres_awaiting(bench, dsn)
        awaited = timed(lambda: partial(runner.run, ainvoke(loop(ours, saver), steps, durability)), steps)
        connection = bare_postgres(bench, dsn)
        return {
            OURS: lambda: blocking() + awaited(),
            FLOOR: timed(lambda: inserts(connection, steps), steps),
        }


async def ainvoke(graph: Any, steps: int, durability: str) -> None:
    """A run of so many steps on a new thread, awaited."""
    await graph.ainvoke({"n": 0, "until": steps}, new_thread(steps), durability=durability)


on_postgres("async", "async")
on_postgres("sync", "sync")
