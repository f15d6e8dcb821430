"""What moves a run for those who read its projections.

1. The run moves only while somebody waits for something of it, one event at a time.
2. While a consumer has as many items waiting as it may, the run stands. Where the one who waits and the one who is
   behind are the same, nobody could go on: that is an error at once.
3. However the run ends, every projection hears of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from pregel.errors import InternalError, StreamUseError, told
from pregel.flow import Flow

if TYPE_CHECKING:
    from pregel.stream.encoder import Encoder
    from pregel.stream.lives import Life
    from pregel.stream.mux import Mux
    from pregel.stream.reading import Queue, Want


PATIENCE = 1.0  # seconds for an iterator that is there to be read for the first time


class Pump:
    """Moves one run."""

    awaits = False
    handle: Callable[[Mux, Life], Any]  # makes the run object of a graph inside of the run

    def __init__(self) -> None:
        self.crowded: set[Queue] = set()  # those whose consumers are behind

    def pull(self, want: Want) -> None:
        """Return when there is what a consumer wants."""
        raise StreamUseError("This run is awaited.", fix="Read it with `async for`, or `await`.")

    async def apull(self, want: Want) -> None:
        """The same, awaited."""
        raise StreamUseError("This run blocks.", fix="Read it with `for`, or start it with astream_events().")

    def relieved(self, queue: Queue) -> None:
        """A consumer has taken something of a full queue, or left."""
        self.crowded.discard(queue)

    def stirred(self) -> None:
        """Something was pushed."""


class BlockingPump(Pump):
    """Moves a run on the threads of those who wait for it, one at a time."""

    mux: Mux
    parts: Generator[Any, None, None]

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.stopping = False
        self._turn = threading.RLock()  # reentrant: a reader may be collected while its thread moves the run
        self._room = threading.Condition(self._turn)
        self._mover = 0  # the thread that moves the run now
        self._waiting = 0  # threads that wait for room

    def pull(self, want: Want) -> None:
        me = threading.get_ident()
        if self._mover == me:
            raise reentered()
        while not want.ready:
            with self._turn:
                if self.crowded:
                    self._wait_for_room(me, want)
                if want.ready:  # another thread has moved the run meanwhile
                    return
                self._mover = me
                try:
                    self._step()
                finally:
                    self._mover = 0

    def relieved(self, queue: Queue) -> None:
        super().relieved(queue)
        if self._waiting:
            with self._turn:
                self._room.notify_all()

    def close(self) -> None:
        """Wind the run down, at once or after the event that this thread is in the middle of."""
        if self._mover == threading.get_ident():
            self.stopping = True
            return
        with self._turn:
            failure = self._stop(None)
        if failure is not None:
            raise failure

    def _stop(self, error: BaseException | None) -> BaseException | None:
        """Wind the run down, and end with an error; what was met on the way."""
        failure = None
        try:
            self.parts.close()
        except BaseException as met:
            failure = met
        self._finish(one_of(error, failure))
        return failure

    def _step(self) -> None:
        try:
            part = next(self.parts, None)
        except BaseException as error:
            self._finish(error)
            return
        try:
            for event in self.encoder.rest() if part is None else self.encoder.events(part):
                if not self.mux.took(event):
                    _played(self.mux.feed(event))
            if part is None:
                _played(self.mux.finish())
        except Exception as error:  # of a transformer
            self._stop(error)
        else:
            if self.stopping and not self.mux.is_over:
                self._stop(None)

    def _finish(self, error: BaseException | None) -> None:
        _played(self.mux.finish(error))

    def _wait_for_room(self, me: int, want: Want) -> None:
        self._waiting += 1
        give_up = time.monotonic() + PATIENCE
        try:
            while not want.ready and self._full():
                alive = {thread.ident for thread in threading.enumerate()}
                readers = [queue.who for queue in list(self.crowded)]
                if any(who == me or who not in alive for who in readers if who is not None):
                    raise behind()
                if None in readers and time.monotonic() >= give_up:
                    raise behind()
                self._room.wait(timeout=PATIENCE)  # a thread may die meanwhile
        finally:
            self._waiting -= 1

    def _full(self) -> set[Queue]:
        """The queues that are full: a consumer may have taken something while it was put among them."""
        for queue in list(self.crowded):
            if len(queue.items) < queue.limit:
                self.crowded.discard(queue)
        return self.crowded


def _played(flow: Flow[None]) -> None:
    for _ in flow:
        raise InternalError("A transformer awaits in a blocking run.")


def one_of(error: BaseException | None, failure: BaseException | None) -> BaseException | None:
    """The error that ends a run, which knows of what its winding down met."""
    if error is not None and failure is not None:
        error.add_note(f"Winding the run down failed as well: {told(failure)}")
    return error or failure


def reentered() -> StreamUseError:
    """Whoever is told of an event asks for the next one."""
    return StreamUseError(
        "A transformer reads the run that it is a part of.", fix="Work with the event that `process` is given."
    )


def behind() -> StreamUseError:
    """A consumer that is full and one that waits are the same."""
    return StreamUseError(
        "Another projection of this run, which nobody reads now, holds as many items as it may.",
        fix="Read them together, with interleave() or in threads or tasks of their own, or close its iterator.",
    )
