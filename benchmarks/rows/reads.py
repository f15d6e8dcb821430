"""What it costs to look at a thread: its state, and each entry of its history."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from benchmarks.databases import bare_postgres, bare_sqlite, commits, inserts, postgres, postgres_saver, sqlite
from benchmarks.graphs import THREADS, loop, new_thread, python
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR, OURS
from benchmarks.timing import Repetition, timed

STEPS = 100


def states(side: SimpleNamespace, saver: Any, reads: int) -> Repetition:
    """So many times the newest state of a thread of 100 steps."""
    graph, config = loop(side, saver), new_thread(STEPS)
    graph.invoke({"n": 0, "until": STEPS}, config)
    return timed(lambda: lambda: [graph.get_state(config) for _ in range(reads)], reads)


def histories(side: SimpleNamespace, saver: Any) -> Repetition:
    """The history of a thread of 100 steps; a unit is an entry."""
    graph, config = loop(side, saver), new_thread(STEPS)
    graph.invoke({"n": 0, "until": STEPS}, config)
    entries = len(list(graph.get_state_history(config)))
    return timed(lambda: lambda: list(graph.get_state_history(config)), entries)


def selects(connection: Any, reads: int, place: str) -> Callable[[], Any]:
    """So many bare reads of one row by its key."""
    query, key = f"SELECT blob FROM steps WHERE thread = {place} AND id = {place}", (next(THREADS) - 1, 0)
    return lambda: [connection.execute(query, key).fetchone() for _ in range(reads)]


@measured(Row("state.memory", "get_state, in-memory saver"))
def from_memory(bench: Bench) -> Sides:
    return {**bench.each(lambda side: states(side, side.InMemorySaver(), 100)), FLOOR: python()}


@measured(Row("state.sqlite", "get_state, SQLite"))
def from_sqlite(bench: Bench) -> Sides:
    connection = bench.stack.enter_context(bare_sqlite())
    commits(connection, 1)()
    sides = bench.each(lambda side: states(side, bench.stack.enter_context(sqlite(side)).saver, 50))
    return {**sides, FLOOR: timed(partial(selects, connection, 200, "?"), 200)}


@measured(Row("state.postgres", "get_state, PostgreSQL, client"))
def from_postgres(bench: Bench) -> Sides:
    ours, dsn = bench.ours, postgres(bench)
    saver = postgres_saver(bench, dsn)
    connection = bare_postgres(bench, dsn)
    inserts(connection, 1)()
    return {OURS: states(ours, saver, 30), FLOOR: timed(partial(selects, connection, 100, "%s"), 100)}


@measured(Row("history.memory", "get_state_history, in-memory saver, per entry"))
def history_in_memory(bench: Bench) -> Sides:
    return {**bench.each(lambda side: histories(side, side.InMemorySaver())), FLOOR: python()}


@measured(Row("history.sqlite", "get_state_history, SQLite, per entry"))
def history_in_sqlite(bench: Bench) -> Sides:
    return {
        **bench.each(lambda side: histories(side, bench.stack.enter_context(sqlite(side)).saver)),
        FLOOR: python(),
    }
