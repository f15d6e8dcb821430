"""The journal of the awaiting driver: what `engine.journal` does, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pregel.checkpoint import lease
from pregel.checkpoint.records import Append, Load, Lone, Mail, Page, Save, TaskWrites
from pregel.engine import moments
from pregel.engine.effects import Loaded, Step
from pregel.engine.journal import Journal
from pregel.errors import SerializationError

if TYPE_CHECKING:
    from pregel.checkpoint.journal_saver import JournalSaver

T = TypeVar("T")
Outcome = tuple[T | None, BaseException | None]


class AwaitingJournal(Journal):
    """The journal of the awaiting driver."""

    flight: asyncio.Task[Outcome[None]] | None = None

    def __init__(self, saver: JournalSaver, *args: Any, **kwargs: Any) -> None:
        super().__init__(saver, *args, **kwargs)
        self.at_once = saver.at_once()  # then nothing that is awaited here waits, and nobody can be cancelled in it

    @staticmethod
    def here() -> object:
        """What drives the run: an asyncio task, by its number, since a reference would make a cycle."""
        return id(asyncio.current_task())

    async def load(self, requests: Sequence[Load | Page | Mail]) -> Loaded:
        """Answer a step's loads in one round trip."""
        await self.flush()
        loads = [request for request in requests if isinstance(request, Load)]
        opened = await self.saver.aload(self.thread, loads, self.names) if loads else None
        pages: list[Any] = [
            await self.saver.apage(self.thread, request) for request in requests if isinstance(request, Page)
        ]
        if isinstance(requests[0], Mail):
            pages = [await self.saver.aevents(self.thread, requests[0].limit)]
        return self.took(requests, opened, pages)

    def store(self, step: Step) -> Awaitable[None] | None:
        """Store a step's records as the durability says; what is to be awaited for it, `whole`: half of it is a gap."""
        writes, saves = self.records_of(step)
        missing = self.ledger.missing(writes, saves)
        return self._intern_first(missing, step) if missing else self._store(step, writes, saves)

    async def _intern_first(self, missing: set[str], step: Step) -> None:
        await self.saver.aintern(missing)
        if (sending := self._store(step, *self.records_of(step))) is not None:
            await sending

    def _store(self, step: Step, writes: list[TaskWrites], saves: Sequence[Save | Lone]) -> Awaitable[None] | None:
        failed = self.failure
        append = self.encode(step, writes, saves)
        if append is None:
            return self.on_time() if self.is_late else None
        straight = not step.at_once and self.may_wait(append)
        if self.holds_back and straight and self.held is None and self.flight is None:
            self.held = append
            moments.watch(self._moment_passed, append)
            return self.on_time() if self.is_late else None
        return self._send_on(append, failed)

    async def _send_on(self, append: Append, failed: SerializationError | None) -> None:
        if (held := await self._take()) is not None:
            append = held.followed_by(append)
        await self._send(append)
        if self.failure is not failed:
            raise self.failure  # type: ignore[misc]  # it is set now

    async def on_time(self) -> None:
        """Return once this run is known to hold its thread; AuthorityLost when it does not."""
        if self.is_late:
            await self.flush()
            if (hold := self.hold) is not None:
                at = lease.uptime()
                self.checked(await self.saver.arenew([hold]), at)

    async def flush(self) -> None:
        """Send what is held back, and wait for what is in flight."""
        if (held := await self._take()) is not None:
            await self._send(held)

    async def _take(self) -> Append | None:
        """What is held back; None once what was in flight has landed."""
        held, self.held = self.held, None
        flight, self.flight = self.flight, None
        if flight is not None:
            await whole_task(flight)
        return held

    def _moment_passed(self, append: Append) -> None:
        """Send this append, unless the run has taken it along meanwhile."""
        if self.held is append:
            self.held = None
            self.flight = asyncio.create_task(outcome(lambda: self._send(append)))

    def keep(self) -> None:
        lease.closed[self.token] = asyncio.get_running_loop().is_closed
        super().keep()

    def abandon(self) -> None:
        super().abandon()
        lease.closed.pop(self.token, None)

    async def _send(self, append: Append) -> None:
        append.epoch = self.epoch
        self.settle(append, await self.saver.aappend(append))


async def outcome(work: Callable[[], Awaitable[T]]) -> Outcome[T]:
    """What came of something, as a value: an exit that leaves a task of its own stops the loop before anybody hears."""
    try:
        return await work(), None
    except (asyncio.CancelledError, GeneratorExit):
        raise
    except BaseException as error:
        return None, error


async def whole(work: Callable[[], Awaitable[T]]) -> T:
    """Do something to its end, then deliver the cancellations that came meanwhile."""
    begun = cancelled = False

    async def begin() -> T:
        nonlocal begun
        begun = True
        return await work()

    while not begun:
        task = asyncio.create_task(outcome(begin))
        try:
            result = await whole_task(task)
        except asyncio.CancelledError:
            if begun:
                raise
            cancelled = True  # the end of a loop cancels every task, also one that has not begun: it begins anew
    if cancelled:
        raise asyncio.CancelledError
    return result


async def whole_task(task: asyncio.Task[Outcome[T]]) -> T:
    """The same for what is under way already."""
    cancelled = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            cancelled = True
    result, error = task.result()
    if error is not None:  # a failure is heard before a cancellation
        try:
            raise error
        finally:
            del error, task
    if cancelled:
        raise asyncio.CancelledError
    return result  # type: ignore[return-value]  # None only where that is T
