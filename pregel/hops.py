"""Blocking functions on threads, for those who await them: `asyncio.to_thread` for crowds.

1. What waits for a thread stands in one queue a loop. Whoever carries it takes one after the other until nothing
   waits, so many short calls cost a few hand-overs to the loop's executor and not one each.
2. As many are carried at once as `AT_ONCE`, or as the executor has threads: one that blocks holds up nobody else.
   Who has carried for `TURN` stands at the end of the executor's own queue again, where others wait for a thread too.
3. What is done comes back to the loop in batches, with one wake-up.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")

AT_ONCE = 32
TURN = 0.01  # seconds


def tell(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *args: Any) -> None:
    """Have a loop make a call, from any thread. One that was closed makes none: nobody waits there any more."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call, *args)


class Hop:
    """One call, on its way to a thread and back."""

    __slots__ = ("call", "context", "error", "future", "value")

    def __init__(self, call: Callable[[], Any], context: Context, future: asyncio.Future[Any]) -> None:
        self.call = call
        self.context = context
        self.future = future
        self.value: Any = None
        self.error: BaseException | None = None

    def go(self) -> None:
        """Make the call, on a thread."""
        try:
            self.value = self.context.run(self.call)
        except StopIteration as stop:  # a future refuses this one, and whoever awaits it would wait for ever
            name = getattr(self.call, "func", self.call)
            self.error = RuntimeError(f"{getattr(name, '__qualname__', name)!s} raised StopIteration.")
            self.error.__cause__ = stop
        except BaseException as error:
            self.error = error

    def land(self) -> None:
        """Tell who awaits it, on the loop."""
        future, error, self.error = self.future, self.error, None
        if not future.done():
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(self.value)


class Hops:
    """The hops of one event loop. It does not hold the loop, which holds nothing of this either."""

    def __init__(self) -> None:
        self._waiting: deque[Hop] = deque()
        self._hands: deque[None] = deque([None] * AT_ONCE)  # those that are free to carry
        self._landed: deque[Hop] = deque()
        self._gathering = False  # what waits is about to be carried
        self._waking = False  # a wake-up is on its way to the loop

    def hop(self, loop: asyncio.AbstractEventLoop, call: Callable[[], T]) -> asyncio.Future[T]:
        """Have a function called on a thread, in a copy of this context. Cancelled before it began, it never is."""
        future: asyncio.Future[T] = loop.create_future()
        hop = Hop(call, copy_context(), future)
        self._waiting.append(hop)
        if not self._gathering:
            self._gathering = True
            loop.call_soon(self._set_off, loop)  # and not at once: whoever else is ready now comes along
        return future

    def _set_off(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have what waits carried, on as many threads as are free."""
        self._gathering = False
        for _ in range(len(self._waiting)):
            if not self._takes_hand():  # looked at after what waits was put in, and by a carrier the other way round
                return
            try:
                carrying = loop.run_in_executor(None, self._carry, loop)
            except BaseException as error:  # the executor was shut down
                self._refuse(error)
            else:
                carrying.add_done_callback(self._was_carried)

    def _was_carried(self, carrying: asyncio.Future[None]) -> None:
        if carrying.cancelled():  # the executor was shut down, and dropped what it had not begun
            self._refuse(asyncio.CancelledError())

    def _refuse(self, error: BaseException) -> None:
        """Nobody carries what waits."""
        self._hands.append(None)
        while self._waiting:
            hop = self._waiting.popleft()
            hop.error = error
            hop.land()

    def _takes_hand(self) -> bool:
        try:
            self._hands.pop()
        except IndexError:
            return False
        return True

    def _carry(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = self._waiting
        until = monotonic() + TURN
        while True:
            if monotonic() > until and waiting:
                self._hands.append(None)
                tell(loop, self._set_off, loop)
                return
            try:
                hop = waiting.popleft()
            except IndexError:
                self._hands.append(None)
                if waiting and self._takes_hand():
                    continue
                return
            if not hop.future.cancelled():
                hop.go()
                self._landed.append(hop)
                if not self._waking:  # set, it is read before what was put in above is taken out
                    self._waking = True
                    tell(loop, self._land)
            del hop

    def _land(self) -> None:
        self._waking = False
        landed = self._landed
        while landed:
            landed.popleft().land()


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Hops] = WeakKeyDictionary()


def on_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """What a blocking function gives, on a thread of the running loop's executor."""
    loop = asyncio.get_running_loop()
    hops = _of_loops.get(loop)
    if hops is None:
        hops = _of_loops[loop] = Hops()
    return hops.hop(loop, call)
