"""How callers wait for their tasks: on a thread, on an event loop, side by side, or not at all."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import AsyncOnlyError, UsageError
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.types import Command, interrupt

from .conftest import Runner
from .marks import State, Thread


def test_a_question_nobody_waits_for_still_pauses(run: Runner, thread: Thread) -> None:
    @task
    def ask(question: str) -> Any:
        return interrupt(question)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: str) -> str:
        ask("one?")
        ask("two?")
        return "done"

    asked = run.invoke(flow, "go", thread("1"))["__interrupt__"]

    assert ["one?", "two?"] == [question.value for question in asked]
    assert "done" == run.invoke(flow, Command(resume={question.id: 1 for question in asked}), thread("1"))


def test_a_thread_that_waits_for_a_call_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from pregel.engine import pool

    @task
    def count(n: int) -> int:
        return 0 if n == 0 else count(n - 1).result() + 1

    @entrypoint()
    def flow(n: int) -> int:
        return count(n).result()

    monkeypatch.setattr(pool, "_shared", pool.Pool(1))

    assert 30 == flow.invoke(30)


def test_tasks_run_side_by_side(run: Runner) -> None:
    both = threading.Barrier(2, timeout=60)

    @task
    def meet(_: int) -> int:
        return both.wait()

    @entrypoint()
    def flow(_: int) -> int:
        return sum(one.result() for one in [meet(1), meet(2)])

    assert 1 == run.invoke(flow, 1)


def test_max_concurrency_holds_for_tasks_and_their_waiting_caller_needs_no_room(run: Runner) -> None:
    now, most = [0], [0]
    lock = threading.Lock()

    @task
    def work(_: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0)  # lets the others run
        with lock:
            now[0] -= 1
        return 1

    @entrypoint()
    def flow(n: int) -> int:
        return sum(one.result() for one in [work(i) for i in range(n)])

    assert 20 == run.invoke(flow, 20, {"max_concurrency": 1})
    assert most[0] <= 2  # the caller lends a hand while it waits


def test_coroutine_tasks_are_awaited(thread: Thread) -> None:
    @task
    async def add(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    @task
    def plain(n: int) -> int:
        return n

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(n: int) -> Any:
        found = await asyncio.gather(add(n, 1), add(n, 2), plain(n))
        return [*found, await add(n, 3)]

    assert [2, 3, 1, 4] == asyncio.run(flow.ainvoke(1, thread("1")))


def test_a_blocked_event_loop_is_refused_instead_of_a_hang(thread: Thread) -> None:
    @task
    def work() -> int:
        return 1

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(_: int) -> int:
        return work().result()

    with pytest.raises(UsageError, match="would block the event loop"):
        asyncio.run(flow.ainvoke(1, thread("1")))


def test_a_coroutine_task_in_a_run_that_blocks_is_refused(thread: Thread) -> None:
    @task
    async def work() -> int:
        return 1

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: int) -> Any:
        return work().result()

    with pytest.raises(AsyncOnlyError, match="work"):
        flow.invoke(1, thread("1"))


def test_a_cancelled_run_keeps_what_ended_and_goes_on_later(thread: Thread) -> None:
    calls, gate = list[str](), asyncio.Event()

    @task
    async def work(name: str) -> str:
        calls.append(name)
        if name == "slow":
            gate.set()
            await asyncio.Event().wait() if calls.count("slow") == 1 else None
        return name

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(_: int) -> Any:
        return [await work("fast"), await work("slow")]

    async def main() -> Any:
        first = asyncio.create_task(flow.ainvoke(1, thread("1")))
        await gate.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        return await flow.ainvoke(None, thread("1"))

    assert ["fast", "slow"] == asyncio.run(main())
    assert ["fast", "slow", "slow"] == calls


def test_a_caller_that_fails_cancels_its_calls(thread: Thread) -> None:
    @task
    async def endless() -> None:
        await asyncio.Event().wait()

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(_: int) -> None:
        endless()
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(asyncio.wait_for(flow.ainvoke(1, thread("1")), 60))


def test_a_consumer_that_leaves_loses_no_result(thread: Thread) -> None:
    calls = list[int]()

    @task
    def work(n: int) -> int:
        calls.append(n)
        return n

    @entrypoint(checkpointer=InMemorySaver())
    def flow(n: int) -> int:
        return work(n).result() + work(n + 1).result()

    stream: Any = flow.stream(1, thread("1"), stream_mode=["updates", "custom"])
    assert ("updates", {"work": 1}) == next(stream)
    stream.close()

    assert 3 == flow.invoke(None, thread("1"))
    assert [1, 2] == sorted(set(calls))
    assert 1 == calls.count(1)


@pytest.mark.parametrize("modes", ["values", ["custom", "values"]])
def test_a_task_that_nobody_waits_for_runs_in_every_stream_mode(run: Runner, thread: Thread, modes: Any) -> None:
    ran: list[int] = []

    @task
    def audit(n: int) -> None:
        ran.append(n)

    async def awaiting(n: int) -> str:
        audit(n)
        return "done"

    def blocking(n: int) -> str:
        audit(n)
        return "done"

    flow = entrypoint(checkpointer=InMemorySaver())(awaiting if run.name == "async" else blocking)
    run.stream(flow, 1, thread("1"), stream_mode=modes)

    assert [1] == ran


def test_a_coroutine_pauses_on_a_question_that_nobody_waits_for_too(run: Runner, thread: Thread) -> None:
    @task
    def ask(n: int) -> Any:
        return interrupt(n)

    async def awaiting(n: int) -> str:
        ask(n)
        return "done"

    def blocking(n: int) -> str:
        ask(n)
        return "done"

    flow = entrypoint(checkpointer=InMemorySaver())(awaiting if run.name == "async" else blocking)

    assert [1] == [question.value for question in run.invoke(flow, 1, thread("1"))["__interrupt__"]]


def test_a_call_that_nobody_waits_for_is_not_lost_before_a_parallel_step() -> None:
    ran: list[int] = []

    @task
    def audit(n: int) -> None:
        ran.append(n)

    async def first(state: State) -> State:
        audit(1)
        await asyncio.sleep(0)
        return {"a": ["first"]}

    async def other(state: State) -> State:
        await asyncio.sleep(0)
        return {"a": ["other"]}

    graph = StateGraph(State).add_node("first", first).add_node("p", other).add_node("q", other)
    app = graph.add_edge(START, "first").add_edge("first", "p").add_edge("first", "q").compile()

    assert [["first", "other", "other"]] * 20 == [asyncio.run(app.ainvoke({"a": []}))["a"] for _ in range(20)]
    assert [1] * 20 == ran
