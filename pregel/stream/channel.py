"""A projection of a run: what a transformer pushes into it, its one subscriber reads.

1. Nothing is kept for a subscriber before there is one; `tee` makes several at once.
2. Those of a graph inside of a run, whose run object somebody may be just about to get, hold what comes until they are
   read, but not more than may wait for a subscriber: then reading them is an error, and nothing is held.
3. What has been pushed is read before the end, and before the error that a failed run ends with.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pregel.errors import InvalidInputError, StreamUseError
from pregel.stream.reading import CROWD, AwaitingReader, BlockingReader, Queue

if TYPE_CHECKING:
    from pregel.stream.pump import Pump

T = TypeVar("T")


class StreamChannel(Generic[T]):
    """A projection that is read by iterating, with ``for`` or ``async for`` as its run was started.

    What is pushed into one with a `name` also shows among the run's events, as ``custom:name``. `maxlen`: how many
    items may wait for the subscriber before the run waits for it, 1,024 by default.
    """

    __slots__ = ("_error", "_forward", "_held", "_is_over", "_missed", "_pump", "_queues", "_taken", "maxlen", "name")

    def __init__(self, name: str | None = None, *, maxlen: int | None = None) -> None:
        if maxlen is not None and maxlen < 1:
            raise InvalidInputError("StreamChannel maxlen must be a positive int or None.", fix="Leave it out.")
        self.name = name
        self.maxlen = maxlen
        self._pump: Pump | None = None
        self._forward: Callable[[T], None] | None = None
        self._queues: list[tuple[Queue, str | None]] = []
        self._taken = False
        self._held: list[T] | None = None  # for the first subscriber
        self._missed = False  # it was too much to be held
        self._is_over = False
        self._error: BaseException | None = None

    def bind(self, pump: Pump, forward: Callable[[T], None] | None = None) -> None:
        """Make this a projection of the run that `pump` moves. `forward` is given each item as well."""
        self._pump, self._forward = pump, forward

    def hold(self) -> None:
        """Keep what is pushed until somebody listens."""
        self._held = []

    @property
    def is_read(self) -> bool:
        """Whether somebody listens, or may be about to."""
        return bool(self._queues) or self._held is not None

    def push(self, item: T) -> None:
        """Show an item to whoever listens."""
        if self._is_over:
            raise StreamUseError(f"{self._named} has ended and takes nothing more.", fix="Push before the run ends.")
        if self._forward is not None:
            self._forward(item)
        for queue, label in self._queues:
            queue.put(item if label is None else (label, item))
        if self._held is not None:
            self._hold(item)
        if self._pump is not None:
            self._pump.stirred()

    def _hold(self, item: T) -> None:
        assert self._held is not None
        self._held.append(item)
        if len(self._held) > (self.maxlen or CROWD):
            self._held, self._missed = None, True

    def close(self) -> None:
        """End it: its subscriber stops when it has taken what there is."""
        self._end(None)

    def fail(self, err: BaseException) -> None:
        """End it with an error, which its subscriber gets after what there is."""
        self._end(err)

    def _end(self, error: BaseException | None) -> None:
        if self._is_over:
            return
        self._is_over, self._error = True, error
        for queue, _ in self._queues:
            queue.end(error)
        self._queues.clear()
        if self._pump is not None:
            self._pump.stirred()

    # -- reading -----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[T]:
        return BlockingReader(self._subscribed(1, awaits=False)[0], self.leave)

    def __aiter__(self) -> AsyncIterator[T]:
        return AwaitingReader(self._subscribed(1, awaits=True)[0], self.leave)

    def tee(self, n: int = 2) -> tuple[Iterator[T], ...]:
        """Several iterators, each of which gets every item. Read them together: see `maxlen`."""
        return tuple(BlockingReader[T](queue, self.leave) for queue in self._subscribed(n, awaits=False))

    def atee(self, n: int = 2) -> tuple[AsyncIterator[T], ...]:
        """The same for an awaited run."""
        return tuple(AwaitingReader[T](queue, self.leave) for queue in self._subscribed(n, awaits=True))

    def _subscribed(self, n: int, *, awaits: bool) -> list[Queue]:
        pump = self.subscribable(awaits=awaits)
        queues = [Queue(pump, self.maxlen or CROWD) for _ in range(n)]
        self.subscribe(*queues)
        return queues

    def subscribable(self, *, awaits: bool) -> Pump:
        """The pump of its run; a named error where it cannot be read, or not in this way."""
        if self._pump is None:
            raise StreamUseError(
                f"{self._named} belongs to no run yet.", fix="Return it from the init() of a StreamTransformer."
            )
        if self._pump.awaits is not awaits:
            loop = "async for" if self._pump.awaits else "for"
            raise StreamUseError(f"{self._named} was opened the other way.", fix=f"Read it with `{loop}`.")
        if self._taken:
            raise StreamUseError(f"{self._named} already has a subscriber.", fix="Use tee(n), or atee(n), for more.")
        if self._missed:
            raise StreamUseError(
                f"{self._named} has shown more than is held for a graph whose projections nobody reads.",
                fix="Read graphs that run side by side in threads, or tasks, of their own.",
            )
        return self._pump

    def subscribe(self, *queues: Queue, label: str | None = None) -> None:
        """Put what is held, and what comes, into queues, as ``(label, item)`` when there is a label."""
        self._taken = True
        held, self._held = self._held or [], None
        for queue in queues:
            for item in held:
                queue.put(item if label is None else (label, item))
            if self._is_over:
                queue.end(self._error)
            else:
                self._queues.append((queue, label))

    def leave(self, queue: Queue) -> None:
        """Put nothing more into a queue."""
        self._queues = [one for one in self._queues if one[0] is not queue]

    @property
    def _named(self) -> str:
        return f"Projection {self.name!r}" if self.name else "This StreamChannel"


def together(channels: Sequence[tuple[str, StreamChannel[Any]]], pump: Pump) -> tuple[Queue, Callable[[Queue], None]]:
    """One queue for several projections: what each of them shows, with its name, as it comes."""
    for _, channel in channels:
        channel.subscribable(awaits=pump.awaits)
    queue = Queue(pump, max(channel.maxlen or CROWD for _, channel in channels), len(channels))
    for name, channel in channels:
        channel.subscribe(queue, label=name)

    def leave(queue: Queue) -> None:
        for _, channel in channels:
            channel.leave(queue)

    return queue, leave
