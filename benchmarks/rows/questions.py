"""What a question costs: a run that stops at one, and the run that goes on with the answer."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from benchmarks.databases import bare_postgres, bare_sqlite, commits, inserts, postgres, postgres_saver, sqlite
from benchmarks.graphs import Counter, new_thread, python
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR, OURS
from benchmarks.timing import Repetition, timed

PAUSES = 10


def asking(side: SimpleNamespace, saver: Any) -> Repetition:
    """So many threads that ask, each of which is answered."""

    def ask(state: Counter) -> dict[str, int]:
        return {"n": side.interrupt("how many?")}

    graph = side.StateGraph(Counter).add_node("ask", ask).add_edge(side.START, "ask").compile(saver)

    def play() -> None:
        for _ in range(PAUSES):
            config = new_thread()
            graph.invoke({"n": 0}, config)
            graph.invoke(side.Command(resume=7), config)

    return timed(lambda: play, PAUSES)


@measured(Row("question.memory", "interrupt and resume, in-memory saver"))
def in_memory(bench: Bench) -> Sides:
    return {**bench.each(lambda side: asking(side, side.InMemorySaver())), FLOOR: python()}


@measured(Row("question.sqlite", "interrupt and resume, SQLite NORMAL"))
def in_sqlite(bench: Bench) -> Sides:
    sides = bench.each(lambda side: asking(side, bench.stack.enter_context(sqlite(side)).saver))
    return {**sides, FLOOR: timed(partial(commits, bench.stack.enter_context(bare_sqlite()), 100), 100)}


@measured(Row("question.postgres", "interrupt and resume, PostgreSQL, client"))
def in_postgres(bench: Bench) -> Sides:
    ours, dsn = bench.ours, postgres(bench)
    saver = postgres_saver(bench, dsn)
    connection = bare_postgres(bench, dsn)
    return {OURS: asking(ours, saver), FLOOR: timed(partial(inserts, connection, 100), 100)}
