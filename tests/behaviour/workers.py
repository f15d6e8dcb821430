"""What a test may wait for: that a driver was told of every node that ran on a worker thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.engine.pool import Job, shared_pool
from pregel.testing.scripted import WatchedSaver
from pregel.types import StreamWriter

from .conftest import Runner
from .marks import Node, Saver


class Meeting(Job):
    """A job that ends when every worker has one."""

    def __init__(self, everybody: threading.Barrier) -> None:
        self.everybody = everybody
        self.context = Context()

    def claim(self) -> bool:
        return True

    def run(self) -> None:
        with suppress(threading.BrokenBarrierError):  # the one who waits for all says so
            self.everybody.wait()


def all_news_is_posted() -> None:
    """Wait until every worker thread is rid of what it had in hand; a worker posts its news before its next job."""
    pool = shared_pool()
    everybody = threading.Barrier(pool.size + 1, timeout=60)
    for _ in range(pool.size):
        pool.submit(Meeting(everybody))
    everybody.wait()


class Gate:
    """Holds the nodes of a step until their consumer has its first chunk, then until all of them have ended."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def holds(self, node: Callable[[Any], Any]) -> Node:
        """The node, behind the gate."""

        def held(state: Any) -> Any:
            assert self.opened.wait(60)
            return node(state)

        return held

    def shows(self, node: Callable[[Any], Any]) -> Node:
        """The same; it writes the chunk on its way in."""

        def shown(state: Any, writer: StreamWriter) -> Any:
            writer("here")
            assert self.opened.wait(60)
            return node(state)

        return shown

    def open(self) -> None:
        """Let the nodes end; comes back when the driver, which nobody pulls, has heard of them all."""
        self.opened.set()
        all_news_is_posted()


def all_in_one_batch(run: Runner, app: Any, config: Any, gate: Gate) -> None:
    """Pull one chunk, let everything end, pull on: the driver hears of all the tasks at once."""

    async def follow() -> None:
        chunks = app.astream({"a": []}, config, stream_mode="custom")
        await anext(chunks)
        gate.open()
        async for _ in chunks:
            pass

    if run.name == "async":
        asyncio.run(follow())
        return
    chunks = app.stream({"a": []}, config, stream_mode="custom")
    next(chunks)
    gate.open()
    for _ in chunks:
        pass


def tells_of_appends(saver: Saver, told: threading.Event, since: threading.Event | None = None) -> WatchedSaver:
    """The saver; the event is set after each append that does not claim the thread, `since` another event is set."""
    if not isinstance(saver, JournalSaver):
        pytest.skip("this saver takes no appends")

    def watch(append: Append, send: Callable[[Append], Receipt]) -> Receipt:
        receipt = send(append)
        if append.claim is None and (since is None or since.is_set()):
            told.set()
        return receipt

    return WatchedSaver(saver, watch)
