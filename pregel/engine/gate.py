"""What holds nodes back that show more than the consumer takes.

1. Only chunks wait here, never the news of how a task ended, and never on the thread that drives the run: that is the
   one that makes room.
2. A node on a thread waits where it writes. An async node cannot: it waits at its next ``await`` instead, so what it
   writes between two of them is not bounded.
3. A gate that was closed lets nobody wait and nothing through.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")
CROWD = 1024  # chunks that may wait for the consumer before nodes do


class Gate:
    """Waits while `crowd` says that too many chunks are there. Made on the thread that drives the run."""

    __slots__ = ("_room", "closed", "crowd", "driving", "pausing", "waiting")

    def __init__(self, crowd: Callable[[], int]) -> None:
        self.crowd = crowd
        self.driving = threading.get_ident()
        self.closed = False
        self.waiting = 0
        self.pausing: list[Any] = []  # futures of async nodes that wait
        self._room = threading.Condition()

    def enter(self) -> bool:
        """Whether a chunk may go in, once there is room for it."""
        if self.crowd() >= CROWD and not self.closed and threading.get_ident() != self.driving:
            with self._room:
                self.waiting += 1
                while self.crowd() >= CROWD and not self.closed:
                    self._room.wait()
                self.waiting -= 1
        return not self.closed

    def emptied(self) -> None:
        """The consumer has taken all that was there: whoever waits looks again."""
        if self.waiting:
            with self._room:
                self._room.notify_all()
        if self.pausing:
            self._resume()

    def close(self) -> None:
        """Nobody listens any more."""
        self.closed = True
        self.emptied()

    def _resume(self) -> None:
        pausing, self.pausing = self.pausing, []
        for future in pausing:
            if not future.done():
                future.set_result(None)

    @property
    def crowded(self) -> bool:
        """Whether an async node is to wait."""
        return not self.closed and self.crowd() >= CROWD


class Paced(Generator[Any, Any, T]):
    """An async node's coroutine, which goes on after an ``await`` only when there is room.

    It hands everything through: values, exceptions and cancellations, and adds a wait of its own in between.
    """

    def __init__(self, coroutine: Coroutine[Any, Any, T], gate: Gate) -> None:
        self.coroutine = coroutine
        self.gate = gate
        self.held: Any = None

    def __await__(self) -> Paced[T]:
        return self

    def send(self, value: Any) -> Any:
        if self.gate.crowded:
            return self._hold()
        self.held = None
        return self.coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        self.held = None
        return self.coroutine.throw(*error)

    def close(self) -> None:
        self.coroutine.close()

    def _hold(self) -> Any:
        from asyncio import get_running_loop  # loaded: this runs on its loop

        self.held = get_running_loop().create_future()
        self.gate.pausing.append(self.held)
        return next(iter(self.held.__await__()))
