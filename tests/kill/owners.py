"""Processes that own a thread, for tests that freeze, fork and kill them. Each tells what it does, line by line."""

from __future__ import annotations

import asyncio
import operator
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.records import ThreadRow
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import PregelError, RunDisplaced, StoreError, ThreadBusy
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime

ROOT = Path(__file__).parents[2]
CONFIG: Any = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    a: Annotated[list[str], operator.add]


@contextmanager
def saver_at(where: str, lease: float = 30.0) -> Iterator[JournalSaver]:
    """The saver of a database: a DSN, or the path of a SQLite file."""
    if "=" in where or "://" in where:
        with PostgresSaver.from_conn_string(where, lease=lease) as postgres:
            yield postgres
    else:
        with SqliteSaver.from_conn_string(where, lease=lease, synchronous="NORMAL") as sqlite:
            yield sqlite


def row_at(saver: JournalSaver, thread: str = "t") -> ThreadRow:
    """A thread's row."""
    return saver.load(thread, []).thread


def two_nodes(saver: JournalSaver, first: Callable[[], str]) -> Any:
    """A graph whose first node adds what `first` returns."""
    graph = StateGraph(State).add_node("first", lambda state: {"a": [first()]})
    graph.add_node("second", lambda state: {"a": ["second"]})
    return graph.add_edge(START, "first").add_edge("first", "second").compile(checkpointer=saver)


def say(text: str) -> None:
    """Tell the test."""
    print(text, flush=True)


def start(program: str, *args: object, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """A process that runs a function of this module, started through other commands where there is a `prefix`."""
    code = f"import sys; from tests.kill import owners; owners.{program}(*sys.argv[1:])"
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", code, *map(str, args)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def heard(process: subprocess.Popen[str]) -> str:
    """The next line of a process; what it said on stderr when it ended instead."""
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdout.readline().strip() or process.stderr.read()


def hold(where: str, lease: str, durability: Any = "sync") -> None:
    """Stand inside the first node until a line comes; tell how the run ended."""

    def first() -> str:
        say("in the node")
        sys.stdin.readline()
        return "held"

    with saver_at(where, float(lease)) as saver:
        try:
            say("ended " + ",".join(two_nodes(saver, first).invoke({"a": []}, CONFIG, durability=durability)["a"]))
        except PregelError as error:
            say(type(error).__name__)


def submitting(saver: JournalSaver, adapter: str, first: Callable[[int], str]) -> Any:
    """A graph of one node that submits what `first` returns to an adapter that refuses older generations."""

    def node(state: State, runtime: Runtime[Any]) -> State:
        value = first(runtime.fence)
        with closing(sqlite3.connect(adapter)) as there, there:
            there.execute("CREATE TABLE IF NOT EXISTS submitted (one INTEGER PRIMARY KEY, fence INTEGER, value TEXT)")
            there.execute("INSERT OR IGNORE INTO submitted VALUES (1, 0, '')")
            done = there.execute(
                "UPDATE submitted SET fence = ?, value = ? WHERE one = 1 AND fence <= ?",
                (runtime.fence, value, runtime.fence),
            )
        return {"a": [f"{value} {'accepted' if done.rowcount else 'refused'}"]}

    return StateGraph(State).add_node("submit", node).add_edge(START, "submit").compile(checkpointer=saver)


def submit(where: str, lease: str, adapter: str) -> None:
    """Stand before a submission until a line comes; tell the generation, what the adapter said, how the run ended."""

    def first(fence: int) -> str:
        say(str(fence))
        sys.stdin.readline()
        return "late"

    with saver_at(where, float(lease)) as saver:
        app = submitting(saver, adapter, first)
        try:
            for update in app.stream({"a": []}, CONFIG, stream_mode="debug"):
                if update["type"] == "task_result":
                    say(update["payload"]["result"]["a"][0])
        except PregelError as error:
            with closing(sqlite3.connect(adapter)) as there:
                say(f"{type(error).__name__} {there.execute('SELECT value FROM submitted').fetchall()}")


def wait(where: str, lease: str) -> None:
    """Wait inside the first node, which is async, for ever; tell how the run ended."""

    async def first(state: Any) -> None:
        say("in the node")
        await asyncio.Event().wait()

    with saver_at(where, float(lease)) as saver:
        app = StateGraph(State).add_node("first", first).add_edge(START, "first").compile(checkpointer=saver)
        try:
            asyncio.run(app.ainvoke({"a": ["gone"]}, CONFIG))
        except RunDisplaced as error:
            say(f"displaced by {error.asked}")


def fork(where: str, told: str) -> None:
    """Fork inside the first node; both go on. The child writes how its copy of the run ended into a file."""
    child = -1

    def first() -> str:
        nonlocal child
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        return "parent" if child else "twin"

    with saver_at(where) as saver:
        app = two_nodes(saver, first)
        try:
            outcome = ",".join(app.invoke({"a": []}, CONFIG)["a"])
        except PregelError as error:
            outcome = type(error).__name__
        if child == 0:
            Path(told).write_text(outcome)
            os._exit(0)
    say(outcome)


def ahead(where: str, seconds: str, program: str, *args: str) -> None:
    """Run another function of this module with a wall clock that is ahead."""
    real, real_ns, by = time.time, time.time_ns, float(seconds)
    time.time = lambda: real() + by
    time.time_ns = lambda: real_ns() + int(by * 1e9)
    globals()[program](where, *args)


def go_on(where: str) -> None:
    """Go on with the thread once; tell how it ended."""
    with saver_at(where) as saver:
        try:
            app = two_nodes(saver, lambda: "heir")
            given: Any = None if app.get_state(CONFIG).created_at else {"a": []}
            say("ended " + ",".join(app.invoke(given, CONFIG)["a"]))
        except PregelError as error:
            say(type(error).__name__)


def reach(saver: JournalSaver) -> None:
    """Come to the store once: a process that never did gives up at its first cut, as one with a wrong address."""
    while True:
        try:
            saver.threads(limit=1)
            return
        except StoreError:
            continue


def hammer(where: str, name: str, threads: str, until: str) -> None:
    """Give threads new input until a time; tell each call that was acknowledged, and how long it took."""
    chance = random.Random(name)
    with saver_at(where) as saver:
        graph = StateGraph(State).add_node("n", lambda state: {"a": []}).add_edge(START, "n")
        app = graph.compile(checkpointer=saver, concurrency="enqueue", wait=30.0)
        reach(saver)
        number = 0
        while time.time() < float(until):
            number += 1
            token, thread = f"{name}.{number}", f"t{chance.randrange(int(threads))}"
            began = time.monotonic()
            try:
                app.invoke({"a": [token]}, {"configurable": {"thread_id": thread}})
            except ThreadBusy:
                say(f"refused {thread} {token} 0")
            except StoreError as error:
                say(f"unclear {thread} {token} {type(error).__name__}")
            else:
                say(f"acked {thread} {token} {time.monotonic() - began:.3f}")
