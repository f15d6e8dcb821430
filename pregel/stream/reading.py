"""What one consumer has yet to take of a projection, and how it takes it, blocking or awaiting.

1. A consumer that finds nothing moves the run, through the pump, until there is something or the end.
2. A queue that holds `CROWD` items, or its channel's `maxlen`, holds the run back until its consumer takes some.
3. A reader that is dropped or closed listens no more: nothing waits for it.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from typing import Self

    from pregel.stream.pump import Pump

T = TypeVar("T")
CROWD = 1024  # items that may wait for one consumer before the run waits for it


class Want(Protocol):
    """Something that a consumer waits for."""

    @property
    def ready(self) -> bool: ...


class Queue:
    """The items of one or more channels that a consumer has not taken yet, in the order in which they came."""

    __slots__ = ("error", "items", "limit", "open", "pump", "who")

    def __init__(self, pump: Pump, limit: int, channels: int = 1) -> None:
        self.pump = pump
        self.limit = limit
        self.open = channels  # those that have not ended
        self.items: deque[Any] = deque()
        self.error: BaseException | None = None
        self.who: Any = None  # whoever reads it, once it does

    @property
    def ready(self) -> bool:
        return bool(self.items) or not self.open

    def put(self, item: Any) -> None:
        self.items.append(item)
        if len(self.items) >= self.limit:
            self.pump.crowded.add(self)

    def take(self) -> Any:
        item = self.items.popleft()
        if len(self.items) == self.limit - 1:
            self.pump.relieved(self)
        return item

    def end(self, error: BaseException | None) -> None:
        self.open -= 1
        self.error = self.error or error


class Reader(Generic[T]):
    """Takes what a queue holds. `leave` takes the queue off its channels."""

    __slots__ = ("__weakref__", "_leave", "_queue")

    def __init__(self, queue: Queue, leave: Callable[[Queue], None]) -> None:
        self._queue = queue
        self._leave: Callable[[Queue], None] | None = leave

    def close(self) -> None:
        """Listen no more."""
        if self._leave is not None:
            leave, self._leave = self._leave, None
            leave(self._queue)
            self._queue.open = 0
            self._queue.items.clear()
            self._queue.pump.relieved(self._queue)

    def __del__(self) -> None:
        self.close()

    def _next(self) -> T:
        """The next item; StopIteration at the end, or the error that ended the run."""
        if self._queue.items:
            item: T = self._queue.take()
            return item
        if self._queue.error is not None:
            raise self._queue.error
        raise StopIteration


class BlockingReader(Reader[T]):
    """An iterator over a projection of a blocking run."""

    __slots__ = ()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        queue = self._queue
        queue.who = threading.get_ident()
        if not queue.ready:
            queue.pump.pull(queue)
        return self._next()


class AwaitingReader(Reader[T]):
    """An iterator over a projection of an awaited run."""

    __slots__ = ()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        queue = self._queue
        queue.who = _current_task()
        if not queue.ready:
            await queue.pump.apull(queue)
        try:
            return self._next()
        except StopIteration:
            raise StopAsyncIteration from None


def _current_task() -> Any:
    return sys.modules["asyncio"].current_task()  # whoever awaits has loaded it
