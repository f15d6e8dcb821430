"""The journal of a run that awaits and keeps what it shows: what `engine.recording` does, awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pregel.engine.journal_async import AwaitingJournal, Outcome, outcome, whole, whole_task
from pregel.engine.recorder import MOMENT
from pregel.engine.recording import Recording
from pregel.hops import tell

if TYPE_CHECKING:
    from pregel.checkpoint.records import Load, Mail, Page
    from pregel.engine.effects import Loaded, Step


class AwaitingRecordingJournal(Recording, AwaitingJournal):
    """The recording journal of the awaiting driver."""

    sending: asyncio.Task[Outcome[None]] | None = None  # of what was shown
    _storing = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.at_once = False  # it waits for its turn
        self.loop = asyncio.get_running_loop()
        self._turn = asyncio.Lock()

    async def load(self, requests: Sequence[Load | Page | Mail]) -> Loaded:
        loaded = await super().load(requests)
        if not self.claimed:
            self.record.starts_from(await self.saver.achunk_tail(self.thread), self.row)
        return loaded

    async def store(self, step: Step) -> None:
        await self._sent()
        async with self._turn:
            self._storing = True
            try:
                if (storing := super().store(step)) is not None:
                    await storing
            finally:
                self._storing = False

    async def flush(self) -> None:
        if self._storing:
            await super().flush()
            return
        await self._sent()
        async with self._turn:
            await super().flush()

    async def _sent(self) -> None:
        """Wait for what is on its way; what it met is raised."""
        if self.sending is not None:
            await whole_task(self.sending)
            self.sending = None

    def remind(self, *, now: bool) -> None:
        tell(self.loop, self._moment_is_over if now else self._moment_begins)

    def _moment_begins(self) -> None:
        self.loop.call_later(MOMENT, self._moment_is_over)

    def _moment_is_over(self) -> None:
        if not (self.claimed and self.record.fresh):
            return
        if self.sending is None:
            self.sending = self.loop.create_task(outcome(lambda: whole(self._send_shown)))
            self.sending.add_done_callback(self._was_sent)
        elif not self.sending.done():
            self._moment_begins()

    def _was_sent(self, sending: asyncio.Task[Outcome[None]]) -> None:
        """What it met is kept for the next append."""
        if sending.cancelled() or sending.result()[1] is not None:
            self.record.gate.close()
        elif self.sending is sending:
            self.sending = None

    async def _send_shown(self) -> None:
        async with self._turn:
            if self.claimed and self.record.fresh:
                held = await self._take()
                append = self.bare()
                await self._send(append if held is None else held.followed_by(append))
