"""What a user gets who sets nothing: wall time of a superstep with SQLite on disk, ours and the peer's defaults."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace

from benchmarks.databases import bare_sqlite, commits
from benchmarks.graphs import invoke, loop
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR
from benchmarks.timing import Repetition, timed


@measured(Row("defaults.wall", "superstep with default settings, SQLite on disk, wall"))
def defaults(bench: Bench) -> Sides:
    steps = bench.size(100, 15)

    def repetition(side: SimpleNamespace) -> Repetition:
        directory = bench.stack.enter_context(TemporaryDirectory())
        saver_type = import_module(f"{side.package}.checkpoint.sqlite").SqliteSaver
        saver = bench.stack.enter_context(saver_type.from_conn_string(str(Path(directory) / "bench.db")))
        return timed(partial(invoke, loop(side, saver), steps), steps, perf_counter)

    connection = bench.stack.enter_context(bare_sqlite("FULL"))
    return {**bench.each(repetition), FLOOR: timed(lambda: commits(connection, steps), steps, perf_counter)}
