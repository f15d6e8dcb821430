"""What many runs ask of one store, in few calls: what comes while a call is under way goes into the next.

1. One call of a kind is under way at a time in an event loop; everything else happens on that loop.
2. Each asker is told an outcome of its own: one that is refused, or fails, concerns nobody else.
3. What was handed over is done, whether or not somebody still waits for its answer.
4. Each event loop has a queue of its own, so one that was closed, or runs on another thread, holds up nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

A = TypeVar("A")
T = TypeVar("T")
DoAll = Callable[[Sequence[A]], Awaitable[Sequence[T | BaseException]]]

AT_ONCE = 256
"""The most askers in a call, so that other processes get their turn."""


class Together(Generic[A, T]):
    """Those who ask one thing of one store."""

    def __init__(self, do_all: DoAll[A, T]) -> None:
        self._do_all = do_all
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Queue[A, T]] = WeakKeyDictionary()

    def ask(self, one: A) -> asyncio.Future[T]:
        """Have something done with what others ask for; its answer."""
        loop = asyncio.get_running_loop()
        queue = self._of_loops.get(loop)
        if queue is None:
            queue = self._of_loops[loop] = Queue(self._do_all)
        return queue.ask(one, loop)


class Queue(Generic[A, T]):
    """Those of one event loop. Once nobody waits it does not hold the loop."""

    def __init__(self, do_all: DoAll[A, T]) -> None:
        self._do_all = do_all
        self._waiting: list[tuple[A, asyncio.Future[T]]] = []
        self._under_way = False
        self._work: asyncio.Future[Sequence[T | BaseException]] | None = None  # a loop holds its tasks weakly

    def ask(self, one: A, loop: asyncio.AbstractEventLoop) -> asyncio.Future[T]:
        """Put something in; its answer."""
        answer: asyncio.Future[T] = loop.create_future()
        self._waiting.append((one, answer))
        if not self._under_way:
            self._under_way = True
            loop.call_soon(self._set_off)  # and not at once: whoever else is ready now comes along
        return answer

    def _set_off(self) -> None:
        batch, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
        answers = [answer for _, answer in batch]
        try:
            self._work = work = self._begun([one for one, _ in batch])
        except BaseException as error:  # the executor was shut down
            self._landed(answers, error)
            return
        work.add_done_callback(lambda done: self._landed(answers, done))

    def _begun(self, batch: Sequence[A]) -> asyncio.Future[Sequence[T | BaseException]]:
        return asyncio.ensure_future(self._do_all(batch))

    def _landed(
        self,
        answers: Sequence[asyncio.Future[T]],
        done: asyncio.Future[Sequence[T | BaseException]] | BaseException,
    ) -> None:
        self._work, self._under_way = None, bool(self._waiting)
        if self._waiting:
            self._set_off()
        outcomes: Sequence[T | BaseException]
        try:
            outcomes = _given(done)
        except BaseException as error:  # also a cancellation: the loop ends, or its executor dropped what it had
            outcomes = [error] * len(answers)
        for answer, outcome in zip(answers, outcomes, strict=True):
            if answer.done():  # whoever waited was cancelled
                continue
            if isinstance(outcome, BaseException):
                answer.set_exception(outcome)
            else:
                answer.set_result(outcome)


def on_executor(do_all: Callable[[Sequence[A]], Sequence[T | BaseException]]) -> DoAll[A, T]:
    """A blocking function of many, on a thread of the running loop's executor."""

    def start(batch: Sequence[A]) -> Awaitable[Sequence[T | BaseException]]:
        return asyncio.get_running_loop().run_in_executor(None, do_all, batch)

    return start


def _given(done: asyncio.Future[Sequence[T | BaseException]] | BaseException) -> Sequence[T | BaseException]:
    if isinstance(done, BaseException):
        raise done
    return done.result()
