"""What a test may wait for: that a driver was told of every node that ran on a worker thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.engine.pool import shared_pool
from pregel.testing.scripted import WatchedSaver
from pregel.types import StreamWriter

from .conftest import Runner
from .marks import Node, Saver


def all_news_is_posted() -> None:
    """Wait until no worker thread has anything in hand; what it had is posted then."""
    pool, until = shared_pool(), time.monotonic() + 60
    while not pool.is_idle:
        assert time.monotonic() < until, "a node does not end"
        threading.Event().wait(0.0002)  # a pool tells nobody


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
