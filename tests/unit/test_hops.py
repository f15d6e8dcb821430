"""Blocking calls on threads, awaited: in the caller's context, side by side, and each with its own outcome."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import wraps
from typing import Any

import pytest

from pregel.flow import on_thread
from pregel.hops import AT_ONCE


def on_a_loop(test: Callable[[], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """A test that is played on an event loop of its own."""
    return wraps(test)(lambda: asyncio.run(test()))


WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


@on_a_loop
async def test_a_call_sees_its_callers_context_on_another_thread() -> None:
    WHO.set("me")

    def call() -> tuple[str, bool]:
        seen = WHO.get()
        WHO.set("it")
        return seen, threading.current_thread() is threading.main_thread()

    assert await on_thread(call) == ("me", False)
    assert WHO.get() == "me"


@on_a_loop
async def test_a_crowd_gets_its_own_answers_and_errors() -> None:
    def call(number: int) -> int:
        if number % 7 == 0:
            raise ValueError(str(number))
        return number

    told = await asyncio.gather(*(on_thread(call, number) for number in range(500)), return_exceptions=True)

    assert [str(one) for one in told] == [str(number) for number in range(500)]
    assert all(isinstance(told[number], ValueError) == (number % 7 == 0) for number in range(500))


@on_a_loop
async def test_calls_that_wait_for_each_other_run_side_by_side() -> None:
    together = threading.Barrier(3, timeout=60)
    await asyncio.gather(*(on_thread(together.wait) for _ in range(3)))


@on_a_loop
async def test_a_call_that_blocks_holds_up_no_other() -> None:
    go = threading.Event()
    held = asyncio.ensure_future(on_thread(go.wait))
    assert [await on_thread(lambda: 1) for _ in range(3)] == [1, 1, 1]
    go.set()
    assert await held


@on_a_loop
async def test_a_call_that_is_cancelled_before_it_began_is_never_made() -> None:
    made: list[int] = []
    waiting = asyncio.ensure_future(on_thread(lambda: made.append(1)))  # it stands in the queue; nobody has taken it
    waiting.cancel()
    await on_thread(lambda: None)
    assert (waiting.cancelled(), made) == (True, [])


@on_a_loop
async def test_an_answer_that_nobody_waits_for_any_more_is_dropped() -> None:
    begun, go = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        go.wait()

    waiting = asyncio.ensure_future(on_thread(call))
    await on_thread(begun.wait)
    waiting.cancel()
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await on_thread(lambda: 2) == 2


@on_a_loop
async def test_a_stop_iteration_is_an_error_and_not_a_wait_for_ever() -> None:
    def call() -> None:
        raise StopIteration

    with pytest.raises(RuntimeError, match="call raised StopIteration"):
        await on_thread(call)


@on_a_loop
async def test_calls_of_a_loop_whose_executor_is_gone_are_refused() -> None:
    await asyncio.get_running_loop().shutdown_default_executor()
    told = await asyncio.gather(*(on_thread(lambda: 1) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in told] == [RuntimeError] * 3


@on_a_loop
async def test_a_crowd_that_never_ends_leaves_the_executor_to_others_too() -> None:
    going = True

    async def keep_calling() -> None:
        while going:
            await on_thread(threading.Event().wait, 0.001)

    crowd = [asyncio.ensure_future(keep_calling()) for _ in range(AT_ONCE * 3)]
    await on_thread(lambda: None)
    try:
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "mine"), 60) == "mine"
    finally:
        going = False
        await asyncio.gather(*crowd)


@on_a_loop
async def test_calls_whose_executor_drops_them_are_cancelled_and_not_awaited_for_ever() -> None:
    go, goes = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(1)
    loop.set_default_executor(executor)

    def hold() -> None:
        loop.call_soon_threadsafe(goes.set)
        go.wait()

    held = asyncio.ensure_future(asyncio.to_thread(hold))
    await goes.wait()
    waiting = [asyncio.ensure_future(on_thread(lambda: 1)) for _ in range(AT_ONCE + 3)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    executor.shutdown(wait=False, cancel_futures=True)
    go.set()
    await held
    told = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 60)
    assert [type(one) for one in told] == [asyncio.CancelledError] * (AT_ONCE + 3)


def test_more_calls_than_may_go_on_at_once_all_come_back() -> None:
    async def all_of_them() -> int:
        return sum(await asyncio.gather(*(on_thread(lambda: 1) for _ in range(AT_ONCE * 3))))

    assert asyncio.run(all_of_them()) == AT_ONCE * 3


def test_a_loop_that_was_closed_is_not_kept() -> None:
    def closed() -> weakref.ref[Any]:
        async def play() -> weakref.ref[Any]:
            await on_thread(lambda: None)
            return weakref.ref(asyncio.get_running_loop())

        return asyncio.run(play())

    loop = closed()
    gc.collect()
    assert loop() is None
