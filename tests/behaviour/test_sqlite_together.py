"""Appends of many runs in one SQLite transaction: each has an outcome of its own."""

from __future__ import annotations

import asyncio
import operator
import sqlite3
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from pregel import START, StateGraph
from pregel.checkpoint.records import Append, Load, Receipt
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.sqlite.aio import AsyncSqliteSaver
from pregel.checkpoint.together import AT_ONCE, Together, on_executor
from pregel.errors import InternalError, StoreError
from tests.behaviour.journals import Run, next_append, opened, value_of


class State(TypedDict, total=False):
    a: Annotated[list[int], operator.add]


@pytest.mark.acceptance("S0-8")
def test_a_refused_append_does_not_touch_those_beside_it(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(tmp_path / "t.db") as saver:
        first, stale, last = opened(saver, "first", "stale", "last")
        beginning, giving_back = Run(saver, "new"), last.blank()
        claim = beginning.blank(claim=True)
        beginning.add_save(claim, {"a": 7})
        outcomes = saver.append_all(
            [next_append(first), next_append(stale).but(epoch=stale.epoch - 1), next_append(last), claim]
        )

        assert [one.landed for one in outcomes if isinstance(one, Receipt)] == [True, False, True, True]
        assert [value_of(saver, thread) for thread in ("first", "stale", "last", "new")] == [2, 1, 2, 7]
        assert saver.verify("first") == []
        assert not saver.append(giving_back).landed  # it still expects what stood before


def test_an_append_that_breaks_a_rule_fails_alone(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(tmp_path / "t.db") as saver:
        first, broken, last = opened(saver, "first", "broken", "last")
        wrong = next_append(broken)
        wrong.checkpoints.append(wrong.checkpoints[0])  # the same checkpoint twice

        told = saver.append_all([next_append(first), wrong, next_append(last)])

        assert [type(one) for one in told] == [Receipt, InternalError, Receipt]
        assert [value_of(saver, thread) for thread in ("first", "broken", "last")] == [2, 1, 2]


def test_what_is_sent_again_after_an_unclear_answer_is_known(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(tmp_path / "t.db") as saver:
        runs = opened(saver, "a", "b")
        appends = [next_append(run) for run in runs]
        saver.append_all(appends)

        again = saver.append_all(appends)

        assert [one.landed for one in again if isinstance(one, Receipt)] == [True, True]
        assert [saver.load(run.thread, [Load()]).thread.seq for run in runs] == [2, 2]


class Alone(SqliteSaver):
    """Counts the appends that are stored by themselves."""

    alone = 0

    def append(self, append: Append) -> Receipt:
        self.alone += 1
        return super().append(append)


def test_a_file_that_nobody_gets_to_is_an_error_for_each(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with Alone.from_conn_string(path, busy_timeout=0.05) as saver:
        runs = opened(saver, *map(str, range(20)))
        appends = [next_append(run) for run in runs]
        holder = sqlite3.connect(path, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")

        saver.alone = 0
        told = saver.append_all(appends)

        holder.execute("ROLLBACK")
        holder.close()
        assert [type(one) for one in told] == [StoreError] * 20
        assert saver.alone == 0, "they wait together, and not one after the other"
        assert told[0] is not told[1]
        assert [one.landed for one in saver.append_all(appends) if isinstance(one, Receipt)] == [True] * 20


def test_runs_that_go_on_at_once_share_transactions(tmp_path: Path) -> None:
    """The log of the file grows by the pages of each transaction, and most runs touch the same ones."""
    path = tmp_path / "t.db"

    async def node(state: State) -> State:
        return {"a": [1]}

    async def play(at_once: int) -> int:
        async with AsyncSqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
            graph: Any = StateGraph(State).add_node("n", node).add_edge(START, "n").compile(checkpointer=saver)
            await graph.ainvoke({"a": [0]}, {"configurable": {"thread_id": "first"}})
            before = path.with_name("t.db-wal").stat().st_size
            room = asyncio.Semaphore(at_once)

            async def run(number: int) -> Any:
                async with room:
                    config: Any = {"configurable": {"thread_id": f"{at_once} {number}"}}
                    await graph.ainvoke({"a": [0]}, config)
                    return (await graph.aget_state(config)).values["a"]

            assert await asyncio.gather(*(run(number) for number in range(30))) == [[0, 1]] * 30
            return path.with_name("t.db-wal").stat().st_size - before

    assert asyncio.run(play(30)) < asyncio.run(play(1)) / 2


def test_appends_of_one_moment_go_together_and_later_ones_wait() -> None:
    batches: list[list[str]] = []

    def append_all(appends: Sequence[Append]) -> list[Receipt | Exception]:
        batches.append([append.thread for append in appends])
        return [StoreError(append.thread) if append.thread == "bad" else Receipt(True) for append in appends]

    def append(thread: str) -> Append:
        return Append(thread, 1, 1, b"", 1, 1, b"")

    async def play() -> list[Any]:
        together = Together(on_executor(append_all))
        threads = ["a", "bad", *(str(number) for number in range(AT_ONCE))]
        gone = asyncio.ensure_future(together.ask(append("gone")))
        waiting = [asyncio.ensure_future(together.ask(append(thread))) for thread in threads]
        await asyncio.sleep(0)
        gone.cancel()
        return await asyncio.gather(*waiting, return_exceptions=True)

    told = asyncio.run(play())
    assert batches == [
        ["gone", "a", "bad", *map(str, range(AT_ONCE - 3))],
        [str(number) for number in range(AT_ONCE - 3, AT_ONCE)],
    ]
    assert [str(one) for one in told if isinstance(one, Exception)] == ["bad"]


def test_appends_on_a_loop_that_has_no_executor_any_more_are_refused() -> None:
    async def play() -> list[Any]:
        together: Together[Append, Receipt] = Together(on_executor(lambda appends: [Receipt(True) for _ in appends]))
        await asyncio.get_running_loop().shutdown_default_executor()
        return await asyncio.gather(
            *(together.ask(Append("t", 1, 1, b"", 1, 1, b"")) for _ in range(3)), return_exceptions=True
        )

    assert [type(one) for one in asyncio.run(play())] == [RuntimeError] * 3


@pytest.mark.parametrize("how", ["dropped", "closed"])
def test_appends_are_not_held_up_by_a_loop_or_an_executor_that_is_gone(how: str) -> None:
    go = threading.Event()

    def append_all(appends: Sequence[Append]) -> list[Receipt | Exception]:
        go.wait()
        return [Receipt(True) for _ in appends]

    together = Together(on_executor(append_all))
    append = Append("t", 1, 1, b"", 1, 1, b"")

    async def dropped() -> type[Any]:
        loop, holds = asyncio.get_running_loop(), asyncio.Event()
        executor = ThreadPoolExecutor(1)
        loop.set_default_executor(executor)

        def hold() -> None:
            loop.call_soon_threadsafe(holds.set)
            go.wait()

        held = asyncio.ensure_future(asyncio.to_thread(hold))
        await holds.wait()
        waiting = asyncio.ensure_future(together.ask(append))
        for _ in range(3):
            await asyncio.sleep(0)
        executor.shutdown(wait=False, cancel_futures=True)
        go.set()
        await held
        (told,) = await asyncio.wait_for(asyncio.gather(waiting, return_exceptions=True), 60)
        return type(told)

    async def again() -> Receipt:
        return await asyncio.wait_for(together.ask(append), 60)

    loop = asyncio.new_event_loop()
    if how == "dropped":
        assert loop.run_until_complete(dropped()) is asyncio.CancelledError
    else:
        waiting = loop.create_task(again())
        loop.run_until_complete(asyncio.sleep(0))
        waiting.cancel()
        loop.run_until_complete(asyncio.gather(waiting, return_exceptions=True))
    loop.close()
    go.set()
    assert asyncio.run(again()).landed


def test_appends_from_two_loops_at_once_each_get_their_answer() -> None:
    first_is_in, go = threading.Event(), threading.Event()

    def append_all(appends: Sequence[Append]) -> list[Receipt | Exception]:
        if appends[0].thread == "first":
            first_is_in.set()
            go.wait()
        return [Receipt(True) for _ in appends]

    together = Together(on_executor(append_all))

    async def play(thread: str) -> bool:
        return (await asyncio.wait_for(together.ask(Append(thread, 1, 1, b"", 1, 1, b"")), 20)).landed

    with ThreadPoolExecutor(2) as loops:
        first = loops.submit(asyncio.run, play("first"))
        first_is_in.wait()
        second = loops.submit(asyncio.run, play("second"))
        try:
            assert second.result()
        finally:
            go.set()
        assert first.result()
