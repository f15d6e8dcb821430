"""The threads that run task bodies: how many there are, and when none has anything in hand."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

from pregel.engine.pool import Job, Pool


class Call(Job):
    """A job that makes a call and has no task."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call, self.context, self.ticket = call, copy_context(), [None]

    def run(self) -> None:
        self.call()


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        threading.Event().wait(0.0005)  # a pool tells nobody


def test_a_pool_with_more_jobs_than_threads_is_idle_when_all_are_done() -> None:
    pool, go, done = Pool(1), threading.Event(), list[bool]()

    def call() -> None:
        done.append(go.wait(60))

    assert pool.is_idle
    for _ in range(3):
        pool.submit(Call(call))
    assert not pool.is_idle
    go.set()
    until(lambda: pool.is_idle)

    assert [True] * 3 == done


def test_jobs_that_had_to_wait_take_no_thread_from_later_ones() -> None:
    pool, go = Pool(2), threading.Event()
    for _ in range(5):
        pool.submit(Call(lambda: go.wait(60)))
    go.set()
    until(lambda: pool.is_idle)
    both = threading.Barrier(3, timeout=60)

    for _ in range(2):
        pool.submit(Call(both.wait))
    both.wait()
    until(lambda: pool.is_idle)

    pool.size, holds, ran = 3, threading.Event(), threading.Event()
    for _ in range(2):
        pool.submit(Call(lambda: holds.wait(60)))
    pool.submit(Call(ran.set))
    try:
        assert ran.wait(60), "the pool may start a third thread"
    finally:
        holds.set()
