"""What one superstep of a trivial node costs: no saver, in memory, SQLite; beside the reference and a bare loop."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib import import_module, util
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, TypedDict

from benchmarks._harness import BARE, OURS, REFERENCE, Budget, Contender, Report, Timing, measure, options, sides

THREADS = count()


class Counter(TypedDict):
    n: int
    until: int


def step(state: Counter) -> dict[str, int]:
    return {"n": state["n"] + 1}


# -- the graphs -------------------------------------------------------------------------------------------------------


def chain(side: SimpleNamespace, length: int, saver: Any = None) -> Any:
    """A compiled chain of trivial nodes."""
    graph = side.StateGraph(Counter)
    names = [f"n{place}" for place in range(length)]
    for name in names:
        graph.add_node(name, step)
    for start, end in zip([side.START, *names], [*names, side.END], strict=True):
        graph.add_edge(start, end)
    return graph.compile(saver)


def loop(side: SimpleNamespace, saver: Any = None) -> Any:
    """A compiled loop of one trivial node."""
    graph = side.StateGraph(Counter)
    graph.add_node("n", step)
    graph.add_edge(side.START, "n")
    graph.add_conditional_edges("n", lambda state: "n" if state["n"] < state["until"] else side.END, ["n", side.END])
    return graph.compile(saver)


def bare(steps: int) -> Callable[[], Any]:
    """The same in a bare loop."""

    def run() -> Counter:
        state = Counter(n=0, until=steps)
        while state["n"] < state["until"]:
            state = {**state, **step(state)}  # type: ignore[typeddict-item]
        return state

    return run


def invoke(graph: Any, steps: int, **arguments: Any) -> Callable[[], Any]:
    """A run of so many steps on a new thread."""
    config = {"recursion_limit": steps + 10, "configurable": {"thread_id": f"t{next(THREADS)}"}}
    return lambda: graph.invoke({"n": 0, "until": steps}, config, **arguments)


# -- the measurements -------------------------------------------------------------------------------------------------


def cpu(timings: dict[str, Timing]) -> dict[str, float]:
    """The CPU figures by side."""
    return {name: timing.cpu for name, timing in timings.items()}


def in_memory(report: Report, steps: int, rounds: int) -> None:
    """A superstep in a loop and in a chain, without a saver and with one in memory."""

    def field(make: Callable[[SimpleNamespace], Callable[[], Any]]) -> dict[str, float]:
        rivals = [Contender(name, partial(make, side), steps) for name, side in sides().items()]
        return cpu(measure([*rivals, Contender(BARE, partial(bare, steps), steps)], rounds))

    plain = Budget(20, 12, 25)
    stored = Budget(30, 18, 20)
    report.add("superstep in a loop, no saver, µs", field(lambda side: invoke(loop(side), steps)), plain)
    report.add("superstep in a chain, no saver, µs", field(lambda side: invoke(chain(side, steps), steps)), plain)
    kept = field(lambda side: invoke(loop(side, side.InMemorySaver()), steps))
    report.add("superstep in a loop, in-memory saver, µs", kept, stored)


def small_runs(report: Report, rounds: int) -> None:
    """A whole call of a one-node graph, and the compilation of a large one."""
    calls, size = 50, 200

    def invokes(graph: Any) -> Callable[[], Any]:
        return lambda: [invoke(graph, 1)() for _ in range(calls)]

    def compiles(side: SimpleNamespace) -> Callable[[], Any]:
        return lambda: chain(side, size)

    rivals = [Contender(name, partial(invokes, chain(side, 1)), calls) for name, side in sides().items()]
    report.add("one-node invoke, µs", cpu(measure(rivals, rounds)), Budget(60, 25))
    rivals = [Contender(name, partial(compiles, side), size) for name, side in sides().items()]
    report.add("build and compile, per node, µs", cpu(measure(rivals, rounds)), Budget(20, 10))


# -- SQLite -----------------------------------------------------------------------------------------------------------


@contextmanager
def database(side: SimpleNamespace, synchronous: str) -> Iterator[Any]:
    """A saver on a new database file."""
    saver_type = import_module(f"{side.package}.checkpoint.sqlite").SqliteSaver
    with TemporaryDirectory() as directory, ExitStack() as stack:
        connection = sqlite3.connect(Path(directory) / "bench.db", check_same_thread=False)
        stack.callback(connection.close)
        saver = saver_type(connection)
        saver.setup()
        connection.execute(f"PRAGMA synchronous={synchronous}")
        yield saver


def with_sqlite() -> dict[str, SimpleNamespace]:
    """The sides that have a SQLite saver."""
    return {name: side for name, side in sides().items() if util.find_spec(f"{side.package}.checkpoint.sqlite")}


def sqlite(report: Report, steps: int, rounds: int) -> None:
    """A superstep with SQLite, for each durability, beside one bare insert and commit."""
    for synchronous, durability, budget in (
        ("NORMAL", "async", Budget(120, 66, 12)),
        ("NORMAL", "sync", None),
        ("FULL", "sync", None),
    ):
        with ExitStack() as stack:
            graphs = {
                name: loop(side, stack.enter_context(database(side, synchronous)))
                for name, side in with_sqlite().items()
            }
            rivals = [
                Contender(name, partial(invoke, graph, steps, durability=durability), steps)
                for name, graph in graphs.items()
            ]
            rivals.append(Contender(BARE, stack.enter_context(commits(steps, synchronous)), steps))
            timings = measure(rivals, rounds)
        figures = cpu(timings)
        title = f"superstep, SQLite {synchronous}, {durability}"
        report.add(f"{title}, µs", figures, budget)
        report.add(f"{title}, wall µs", {name: timing.wall for name, timing in timings.items()})
        if synchronous == "FULL":
            ratio = {name: figures[name] / figures[BARE] for name in (OURS, REFERENCE) if name in figures}
            report.add(f"{title}, times a bare insert and commit", ratio, Budget(1.5, 1.2, 4), digits=2)


@contextmanager
def commits(steps: int, synchronous: str) -> Iterator[Callable[[], Callable[[], Any]]]:
    """So many bare transactions that insert about as many bytes as a superstep stores."""
    with TemporaryDirectory() as directory:
        connection = sqlite3.connect(Path(directory) / "bare.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute(f"PRAGMA synchronous={synchronous}")
        connection.execute("CREATE TABLE steps (thread INTEGER, id INTEGER, blob BLOB, PRIMARY KEY (thread, id))")

        def run() -> None:
            thread = next(THREADS)
            for number in range(steps):
                connection.execute("BEGIN IMMEDIATE")
                connection.execute("INSERT INTO steps VALUES (?, ?, ?)", (thread, number, b"x" * 400))
                connection.execute("COMMIT")

        yield lambda: run
        connection.close()


def main() -> None:
    """Measure and print."""
    given = options(__doc__ or "")
    report = Report("Superstep: CPU time")
    in_memory(report, 200 if given.quick else 1000, given.rounds)
    small_runs(report, given.rounds)
    sqlite(report, 50 if given.quick else 300, given.rounds)
    report.show()


if __name__ == "__main__":
    main()
