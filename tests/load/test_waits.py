"""Ten thousand threads that each wait for a week hold nothing of their process, and all wake."""

from __future__ import annotations

import asyncio
import gc
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.sqlite.aio import AsyncSqliteSaver
from pregel.graph import START, StateGraph
from pregel.testing import FakeClock
from pregel.waits import wait_for_event

THREADS, EARLY = 10_000, 2_000  # from then on the caches of ids are full
WEEK = 7 * 24 * 3600.0


class State(TypedDict, total=False):
    number: int
    came: str


def node(state: State) -> State:
    found = wait_for_event("confirmed", key=str(state["number"]), timeout=WEEK)
    return {"came": f"{state['number']} " + ("in time" if found is None else str(found.value))}


def graph(saver: Any) -> Any:
    app = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=saver)
    app.clock = FakeClock()
    return app


def place(number: int) -> Any:
    return {"configurable": {"thread_id": str(number)}}


def held() -> int:
    """The bytes that are held now."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


@pytest.mark.slow
@pytest.mark.acceptance("S4-4")
def test_ten_thousand_waiting_threads_hold_nothing_and_all_wake(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as saver:
        app = graph(saver)
        tracemalloc.start()
        try:
            for number in range(EARLY):
                app.invoke({"number": number}, place(number))
            early, running = held(), threading.active_count()
            for number in range(EARLY, THREADS):
                app.invoke({"number": number}, place(number))
            late = held()
        finally:
            tracemalloc.stop()
        assert abs(late - early) < 100_000  # bytes, for 8,000 threads more
        assert threading.active_count() < running + 8  # a pool may grow, for 8,000 threads more

        app.clock.advance(WEEK - 1)
        for number in range(0, THREADS, 10):
            app.threads.send_event(str(number), "confirmed", "by event", key=str(number))
        came = [woken.output["came"] for woken in app.threads.wake_due()]
        assert [f"{number} by event" for number in range(0, THREADS, 10)] == came
        assert [] == list(app.threads.due())
        app.clock.advance(1)
        came = []
        while woken := app.threads.wake_due(limit=1000):
            came += [one.output["came"] for one in woken]
        assert [f"{number} in time" for number in range(THREADS) if number % 10] == came
        assert [] == app.threads.list(status="waiting", limit=1)


@pytest.mark.slow
@pytest.mark.acceptance("S4-4")
def test_awaited_runs_that_wait_are_no_tasks_of_the_loop(tmp_path: Path) -> None:
    async def all_of_it() -> int:
        async with AsyncSqliteSaver.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as saver:
            app = graph(saver)
            for start in range(0, THREADS, 500):
                await asyncio.gather(*(app.ainvoke({"number": n}, place(n)) for n in range(start, start + 500)))
            assert {asyncio.current_task()} == asyncio.all_tasks()
            app.clock.advance(WEEK)
            came = [woken.output["came"] for woken in await app.threads.awake_due()]
            assert sorted(f"{number} in time" for number in range(THREADS)) == sorted(came)
            assert {asyncio.current_task()} == asyncio.all_tasks()
            return len(came)

    assert THREADS == asyncio.run(all_of_it())
