"""Moves an awaited run: one asyncio task, which lives while somebody waits for something.

A consumer that is cancelled leaves the run alone: it stands after the event that it is at, until somebody waits again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from pregel.errors import StreamUseError
from pregel.flow import arun
from pregel.stream.pump import PATIENCE, Pump, behind, one_of, reentered

if TYPE_CHECKING:
    from pregel.stream.encoder import Encoder
    from pregel.stream.mux import Mux
    from pregel.stream.reading import Queue, Want

Waiter = asyncio.Future[None]


class AwaitingPump(Pump):
    """Moves a run for the tasks of one event loop."""

    awaits = True
    mux: Mux
    parts: AsyncGenerator[Any, None]

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.stopping = False
        self._context = copy_context()  # each part is made in the same one
        self._wants: dict[Waiter, tuple[Want, Any]] = {}
        self._mover: asyncio.Task[None] | None = None
        self._room: Waiter | None = None
        self._feeding = False

    async def apull(self, want: Want) -> None:
        me = asyncio.current_task()
        if self._mover is not None and self._mover is me:
            raise reentered()
        while not want.ready:
            waiter = asyncio.get_running_loop().create_future()
            self._wants[waiter] = (want, me)
            self._set_off()
            try:
                await waiter
            finally:
                self._wants.pop(waiter, None)

    def relieved(self, queue: Queue) -> None:
        super().relieved(queue)
        if not self.crowded and self._room is not None and not self._room.done():
            self._room.set_result(None)

    def stirred(self) -> None:
        if not self._feeding:
            self._wake()

    async def aclose(self) -> None:
        """Wind the run down, at once or after the event that its own task is in the middle of."""
        self.stopping = True
        mover = self._mover
        if mover is not None and mover is asyncio.current_task():
            return
        if mover is not None and not mover.done():
            mover.cancel()
            await asyncio.wait({mover})
        failure = await self._stop(None)
        if failure is not None:
            raise failure

    # -- below -------------------------------------------------------------------------------------------------------

    def _set_off(self) -> None:
        if self._room is not None:
            self._refuse_the_stuck()
        if self._mover is None or self._mover.done():
            loop = asyncio.get_running_loop()
            self._mover = loop.create_task(self._move(), context=self._context)

    async def _move(self) -> None:
        try:
            while self._wants and not self.mux.is_over:
                if self.crowded:
                    await self._wait_for_room()
                else:
                    await self._step()
                if self._wake():
                    await asyncio.sleep(0)  # they look at what they got, and want more, before the run goes on
        except asyncio.CancelledError as error:
            await self._finish(None if self.stopping else error)
            raise

    async def _wait_for_room(self) -> None:
        self._refuse_the_stuck()
        if not self._wants:
            return
        self._room = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(PATIENCE if any(queue.who is None for queue in self.crowded) else None):
                await self._room
        except TimeoutError:
            self._refuse_the_stuck(late=True)
        finally:
            self._room = None

    def _refuse_the_stuck(self, *, late: bool = False) -> None:
        """An error for those who wait while they, or nobody, could take what the run waits for."""
        readers = [queue.who for queue in self.crowded]
        gone = any(late if who is None else who.done() for who in readers)
        for waiter, (_, who) in [*self._wants.items()]:
            if (gone or who in readers) and not waiter.done():
                self._wants.pop(waiter)
                waiter.set_exception(behind())
        if self._room is not None and not self._wants and not self._room.done():
            self._room.set_result(None)

    def _wake(self) -> bool:
        """Tell those who have what they wait for; whether there were any."""
        woken = [waiter for waiter, (want, _) in self._wants.items() if want.ready]
        for waiter in woken:
            self._wants.pop(waiter)
            if not waiter.done():
                waiter.set_result(None)
        return bool(woken)

    async def _step(self) -> None:
        if getattr(self.parts, "ag_frame", self) is None:  # it was closed, and not by this
            await self._finish(cut_off())
            return
        try:
            part = await anext(self.parts, None)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # raised by whoever reads: out of this task it would stop the loop
            await self._finish(error)
            return
        self._feeding = True
        try:
            for event in self.encoder.rest() if part is None else self.encoder.events(part):
                if not self.mux.took(event):
                    await arun(self.mux.feed(event), _awaited)
            if part is None:
                await arun(self.mux.finish(), _awaited)
        except Exception as error:  # of a transformer
            await self._stop(error)
        else:
            if self.stopping and not self.mux.is_over:
                await self._stop(None)
        finally:
            self._feeding = False

    async def _stop(self, error: BaseException | None) -> BaseException | None:
        """Wind the run down, and end with an error; what was met on the way."""
        failure = None
        try:
            await self.parts.aclose()
        except Exception as met:
            failure = met
        await self._finish(one_of(error, failure))
        return failure

    async def _finish(self, error: BaseException | None) -> None:
        await arun(self.mux.finish(error), _awaited)
        self._wake()


def cut_off() -> StreamUseError:
    """Why a run object has no end: the event loop closed its run."""
    return StreamUseError(
        "The event loop of this run ended before the run did: it was wound down, and what had finished is kept.",
        fix="Read it to its end in the loop that started it; a run with input None goes on with its thread.",
    )


async def _awaited(request: Any) -> Any:
    return await request
