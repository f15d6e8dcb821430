"""Appends of many runs in one transaction: what comes while one is under way goes into the next.

1. One transaction is under way at a time, on a thread; everything else happens on the event loop.
2. Each append has a guard and an outcome of its own: one that is refused, or fails, concerns nobody else.
3. An append that was handed over is stored, whether or not somebody still waits for its answer.
4. Each event loop has a queue of its own, so one that was closed, or runs on another thread, holds up nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from pregel.checkpoint.records import Append, Receipt

AT_ONCE = 256
"""The most appends in a transaction, so that other processes get their turn."""

Outcomes = Sequence[Receipt | Exception]
Waiting = tuple[Append, "asyncio.Future[Receipt]"]


class Together:
    """The appends on their way into one file."""

    def __init__(self, append_all: Callable[[Sequence[Append]], Outcomes]) -> None:
        self._append_all = append_all
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Queue] = WeakKeyDictionary()

    async def append(self, append: Append) -> Receipt:
        """Store an append with those of other runs."""
        loop = asyncio.get_running_loop()
        queue = self._of_loops.get(loop)
        if queue is None:
            queue = self._of_loops[loop] = Queue(self._append_all)
        return await queue.append(append, loop)


class Queue:
    """The appends on their way from one event loop into one file. Once nothing waits it does not hold the loop."""

    def __init__(self, append_all: Callable[[Sequence[Append]], Outcomes]) -> None:
        self._append_all = append_all
        self._waiting: list[Waiting] = []
        self._under_way = False

    def append(self, append: Append, loop: asyncio.AbstractEventLoop) -> asyncio.Future[Receipt]:
        """Put an append in; its answer."""
        answer: asyncio.Future[Receipt] = loop.create_future()
        self._waiting.append((append, answer))
        if not self._under_way:
            self._under_way = True
            loop.call_soon(self._set_off, loop)  # and not at once: whoever else is ready now comes along
        return answer

    def _set_off(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        try:
            work = loop.run_in_executor(None, self._append_all, [append for append, _ in batch])
        except BaseException as error:  # the executor was shut down
            self._landed(loop, batch, error)
            return
        work.add_done_callback(lambda done: self._landed(loop, batch, done))

    def _landed(
        self, loop: asyncio.AbstractEventLoop, batch: list[Waiting], done: asyncio.Future[Outcomes] | BaseException
    ) -> None:
        self._under_way = bool(self._waiting)
        if self._waiting:
            self._set_off(loop)
        outcomes: Outcomes | list[BaseException]
        try:
            outcomes = _given(done)
        except BaseException as error:  # also a cancellation, when the executor was shut down and dropped it
            outcomes = [error] * len(batch)
        for (_, answer), outcome in zip(batch, outcomes, strict=True):
            if answer.done():  # whoever waited was cancelled
                continue
            if isinstance(outcome, BaseException):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)


def _given(done: asyncio.Future[Outcomes] | BaseException) -> Outcomes:
    if isinstance(done, BaseException):
        raise done
    return done.result()
