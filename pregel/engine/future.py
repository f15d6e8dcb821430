"""The future of a call: what a node holds while a task or a graph that it called runs.

1. It is settled exactly once, whatever happens: by the run, in the step in which the result is stored, or with
   `CallWithdrawn` when the run is over.
2. Nobody waits with a free hand: a thread that waits for a call runs the call itself, or what the called graph runs,
   unless somebody else does already. So calls in calls need no more threads than there are.
3. A call is not taken back by the one who waits for it: `cancel` says no.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextvars import copy_context
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeVar

from pregel.errors import CallWithdrawn, UsageError

if TYPE_CHECKING:
    from pregel.engine.pool import Job
    from pregel.engine.task import Task

T = TypeVar("T")


class CallFuture(Future[T]):
    """`result()` blocks until the call is over and raises what it raised; under an event loop, await it instead."""

    def __init__(self, caller: Task) -> None:
        super().__init__()
        self.caller = caller
        self.set_running_or_notify_cancel()
        self.context = copy_context()  # the caller's: what runs for the call sees its variables
        self.hands: SimpleQueue[Job | None] = SimpleQueue()  # what a waiting thread may run; None: nothing any more
        self.loop = caller.frame.run.loop  # of the run, which must not be blocked
        self.taken = False  # whether somebody has asked how the call ended
        self.wait: Callable[[], None] | None = None  # in the place of waiting, where threads are not what waits

    def result(self, timeout: float | None = None) -> T:
        """What the call returned; `timeout` in seconds."""
        self._lend_a_hand(timeout)
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the call raised, None when it returned; `timeout` in seconds."""
        self._lend_a_hand(timeout)
        return super().exception(timeout)

    def __await__(self) -> Generator[object, None, T]:
        import asyncio

        self.taken = True
        if self.done():
            return super().result()
        return (yield from asyncio.wrap_future(self).__await__())

    def _lend_a_hand(self, timeout: float | None) -> None:
        self.taken = True
        if self.done():
            return
        if self.loop is not None and _runs_here(self.loop):
            raise UsageError(
                "result() of a call that is not over yet would block the event loop that it runs on.",
                fix="Await the call: `value = await my_task(...)`.",
            )
        if self.wait is not None:
            self.wait()
        elif timeout is None:
            self.lend()

    def lend(self) -> None:
        """Run what runs for this call, on the calling thread, until the call is over."""
        while (job := self.hands.get()) is not None:
            if job.claim():
                job.run()
        self.hands.put(None)  # for whoever else waits

    def settle(self, value: T, error: BaseException | None = None) -> None:
        """Say how the call ended; nothing when that was said already."""
        if self.done():
            return
        if isinstance(error, StopIteration):  # which a coroutine cannot raise
            stop, error = error, RuntimeError("A task raised StopIteration.").with_traceback(error.__traceback__)
            error.__cause__ = stop
        if error is None:
            self.set_result(value)
        else:
            self.set_exception(error)
        self.hands.put(None)

    def withdraw(self) -> None:
        """The call will not end any more."""
        self.settle(None, CallWithdrawn())  # type: ignore[arg-type]  # there is no value


def _runs_here(loop: object) -> bool:
    import asyncio  # who has a loop has loaded it; who has none need not: it costs as much as this package

    return asyncio._get_running_loop() is loop
