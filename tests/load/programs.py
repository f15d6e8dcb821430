"""What processes do under load: the tests start them, and read one line of JSON when they end."""

from __future__ import annotations

import asyncio
import gc
import json
import operator
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.graph import END, START, StateGraph
from pregel.graph.message import add_messages
from pregel.messages import AIMessage, HumanMessage
from pregel.types import Send

ROOT = Path(__file__).parents[2]
TEXT = "So the forecast for tomorrow is light rain in the morning, clearing up by noon, with a mild breeze. " * 3
STEPS = 5  # of a run under load


class Items(TypedDict, total=False):
    items: list[int]
    out: Annotated[list[int], operator.add]


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]


class Counter(TypedDict, total=False):
    n: int
    until: int
    log: Annotated[list[int], operator.add]


def start(program: str, *args: object) -> subprocess.Popen[str]:
    """A process that runs a function of this module."""
    code = f"import sys; from tests.load import programs; programs.{program}(*sys.argv[1:])"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, args)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def told(process: subprocess.Popen[str]) -> Any:
    """What a process tells at its end. It must say nothing else."""
    out, complaints = process.communicate()
    assert (0, "") == (process.returncode, complaints)
    return json.loads(out)


def resident() -> tuple[int, int]:
    """(now, at most so far) in kilobytes, of this process alone."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]), int(lines["VmHWM"].split()[0])


def peak_of(work: Callable[[], None]) -> None:
    """Tell the kilobytes that some work adds to what the process held before."""
    before, _ = resident()
    work()
    print(json.dumps(resident()[1] - before))


# -- memory -----------------------------------------------------------------------------------------------------------


def fan_out(tasks: str) -> None:
    """So many Sends in one superstep."""

    async def work(item: int) -> Items:
        return {"out": [item * 2]}

    graph = StateGraph(Items).add_node("work", work)
    graph.add_conditional_edges(START, lambda state: [Send("work", item) for item in state["items"]], ["work"])
    app = graph.compile()

    def run() -> None:
        done = asyncio.run(app.ainvoke({"items": list(range(int(tasks)))}))
        assert len(done["out"]) == int(tasks)

    peak_of(run)


def conversation(messages: str, path: str) -> None:
    """A thread that grows to so many messages, twenty an invoke, in SQLite."""
    graph = StateGraph(Chat)
    graph.add_node("answer", lambda state: {"messages": [AIMessage(TEXT) for _ in range(10)]})
    graph.add_edge(START, "answer")

    def run() -> None:
        with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
            app = graph.compile(saver)
            config: Any = {"configurable": {"thread_id": "t"}}
            for _ in range(int(messages) // 20):
                done = app.invoke({"messages": [HumanMessage(TEXT) for _ in range(10)]}, config)
            assert len(done["messages"]) == int(messages)

    peak_of(run)


def counting() -> StateGraph[Any, Any, Any, Any]:
    """A loop of one awaited node that counts."""

    async def count(state: Counter) -> Counter:
        return {"n": state.get("n", 0) + 1}

    graph = StateGraph(Counter).add_node("count", count).add_edge(START, "count")
    return graph.add_conditional_edges("count", lambda state: "count" if state["n"] < state["until"] else END)


def crowd(runs: str) -> None:
    """So many runs at once, of ten supersteps, in memory."""
    app = counting().compile(InMemorySaver())

    async def play() -> None:
        await asyncio.gather(
            *(
                app.ainvoke({"n": 0, "until": 10}, {"configurable": {"thread_id": str(number)}})
                for number in range(int(runs))
            )
        )

    peak_of(lambda: asyncio.run(play()))


# -- one process for long ---------------------------------------------------------------------------------------------


def many_runs(runs: str, path: str) -> None:
    """Tell (allocated blocks, kilobytes) after each tenth of so many runs: a third fails, a third is cancelled."""

    async def play() -> list[tuple[int, int]]:
        with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
            kinds = [*endings(None), *endings(InMemorySaver()), *endings(saver)]
            marks = []
            for number in range(int(runs)):
                await kinds[number % len(kinds)](f"t{number % 30}")
                if (number + 1) % (int(runs) // 10) == 0:
                    gc.collect()
                    marks.append((sys.getallocatedblocks(), resident()[0]))
            return marks

    print(json.dumps(asyncio.run(play())))


def endings(saver: Any) -> list[Callable[[str], Awaitable[None]]]:
    """Runs of one node that end well, by a failure, and by being cancelled; what they stored is deleted."""
    begun = asyncio.Event()

    async def act(state: Counter) -> Counter:
        if state["until"] == 1:
            raise ValueError("as planned")
        if state["until"] == 2:
            begun.set()
            await asyncio.Event().wait()
        return {"n": 1}

    app = StateGraph(Counter).add_node("act", act).add_edge(START, "act").compile(saver)

    async def run(kind: int, thread: str) -> None:
        begun.clear()
        task = asyncio.ensure_future(app.ainvoke({"n": 0, "until": kind}, {"configurable": {"thread_id": thread}}))
        if kind == 2:
            await begun.wait()
            task.cancel()
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        assert [dict, ValueError, asyncio.CancelledError][kind] is type(ended), ended
        if saver is not None:
            saver.delete_thread(thread)

    return [partial(run, kind) for kind in range(3)]


# -- many threads on one PostgreSQL -----------------------------------------------------------------------------------


def share(dsn: str, first: str, threads: str, pool: str, until: str) -> None:
    """Run these threads again and again until a time; tell the last count of each, and how long supersteps took."""
    waits: list[float] = []
    counts = dict.fromkeys(range(int(first), int(first) + int(threads)), 0)

    async def play() -> None:
        async with AsyncPostgresSaver.from_conn_string(dsn, pool_size=int(pool)) as saver:
            app = counting().compile(saver)

            async def one(number: int) -> None:
                config: Any = {"configurable": {"thread_id": f"t{number}"}}
                while not counts[number] or time.time() < float(until):  # each has its turn on any machine
                    began, at = time.perf_counter(), counts[number]
                    done = await app.ainvoke({"until": at + STEPS}, config)
                    waits.append((time.perf_counter() - began) / STEPS)
                    counts[number] = done["n"]

            await asyncio.gather(*(one(number) for number in counts))

    asyncio.run(play())
    print(json.dumps({"counts": counts, "waits": waits}))
