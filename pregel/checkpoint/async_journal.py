"""The verbs of a journal whose store awaits: what `journal_saver` does, awaited.

1. A store defines `aread`, `awrite` and `aappend`; it belongs to the event loop that it was made on.
2. A blocking verb works from every thread but the loop's own, where waiting would stop the loop: there it is an error.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pregel import flow as runner
from pregel.checkpoint import flows, items, verbs
from pregel.checkpoint.base import BaseCheckpointSaver, DeltaChannelHistory
from pregel.checkpoint.chunks import ChunkPage, ChunkTail, chunks_flow, tail_flow
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.lease import LEASE
from pregel.checkpoint.records import (
    Append,
    Backlog,
    EventRow,
    Hold,
    ItemHold,
    Load,
    Opened,
    OpenItem,
    Page,
    Receipt,
    Saved,
    Sent,
    Status,
    ThreadRow,
)
from pregel.checkpoint.serde.base import SerializerProtocol, UntypedSerializerProtocol
from pregel.checkpoint.waits import due_flow, events_flow, send_flow, unread_flow
from pregel.config import RunnableConfig
from pregel.errors import AsyncOnlyError
from pregel.flow import Flow

T = TypeVar("T")


class AsyncJournalSaver(JournalSaver):
    """A journal whose store awaits. A store defines `aread`, `awrite` and `aappend`."""

    def __init__(
        self, *, serde: SerializerProtocol | UntypedSerializerProtocol | None = None, lease: float = LEASE
    ) -> None:
        super().__init__(serde=serde, lease=lease)
        try:
            self.loop = asyncio.get_running_loop()
        except RuntimeError:
            raise AsyncOnlyError(
                f"{type(self).__name__} is made inside a running event loop.", fix="Make it in an async function."
            ) from None

    # -- what a store defines ----------------------------------------------------------------------------------------

    @abstractmethod
    async def aread(self, flow: Flow[T]) -> T:
        """Run a flow of reading statements in one snapshot."""

    @abstractmethod
    async def awrite(self, flow: Flow[T]) -> T:
        """Run a flow in one transaction that holds the write lock from its start; roll back when it raises."""

    @abstractmethod
    async def aappend(self, append: Append) -> Receipt:
        """Store a run's records if the thread's row is still as the append expects."""

    # -- from other threads ------------------------------------------------------------------------------------------

    def read(self, flow: Flow[T]) -> T:
        return self._from_outside(self.aread(flow))

    def write(self, flow: Flow[T]) -> T:
        return self._from_outside(self.awrite(flow))

    def append(self, append: Append) -> Receipt:
        return self._from_outside(self.aappend(append))

    def _from_outside(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self.loop or not self.loop.is_running():
            work.close()
            name = type(self).__name__
            if running is self.loop:
                raise AsyncOnlyError(
                    f"{name} was called without await on the thread of its event loop, which would stop the loop.",
                    fix="Await the async method (ainvoke, aget_state, aget_tuple, ...).",
                )
            raise AsyncOnlyError(
                f"The event loop of {name} does not run any more.", fix="Use the saver inside the loop it was made on."
            )
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    # -- for the engine ----------------------------------------------------------------------------------------------

    async def aload(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        if names and names is not self._interned:
            await self.aintern(names)
            self._interned = names
        return await self.aread(flows.load_flow(self._decoder(), thread, loads))

    async def alook(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        return await self.aread(flows.look_flow(self._decoder(), thread, ns, checkpoint))

    async def apage(self, thread: str | None, page: Page) -> Sequence[tuple[str, Saved]]:
        return await self.aread(flows.page_flow(self._decoder(), thread, page))

    async def aintern(self, texts: Iterable[str]) -> None:
        if unknown := sorted(set(texts) - self.names.ids.keys()):
            await self.awrite(flows.intern_flow(self.names, unknown))

    async def aask(self, hold: Hold, asked: str) -> bool:
        return await self.awrite(flows.ask_flow(hold, asked))

    async def arenew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        return await self.awrite(flows.renew_flow(holds, keep))

    async def achunks(self, thread: str, offset: int, seen: int | None = None) -> ChunkPage:
        return await self.aread(chunks_flow(thread, offset, seen))

    async def achunk_tail(self, thread: str) -> ChunkTail:
        return await self.aread(tail_flow(thread))

    async def asend(self, thread: str, event: EventRow) -> Sent:
        return await self.awrite(send_flow(thread, event))

    async def aevents(self, thread: str, limit: int | None = None) -> Sequence[EventRow]:
        return await self.aread(events_flow(thread, limit))

    async def adue(self, now: float, limit: int | None = None) -> Sequence[tuple[str, str]]:
        return await self.aread(due_flow(now, limit))

    async def aunread(self, name: str, limit: int | None = None) -> Sequence[tuple[str, str]]:
        return await self.aread(unread_flow(name, limit))

    async def apending(self, after: tuple[float, int] = (0.0, 0), limit: int = 100) -> Sequence[ThreadRow]:
        return await self.aread(flows.pending_flow(after, limit))

    async def abacklog(self, now: float) -> Sequence[Backlog]:
        return await self.aread(items.backlog_flow(now))

    async def atake_item(self, asked: items.Asked) -> OpenItem | None:
        return await self.awrite(items.take_flow(asked))

    async def arenew_items(self, holds: Sequence[ItemHold], expires: float) -> Sequence[bytes]:
        return await self.awrite(items.renew_flow(holds, expires))

    async def ahand_back(self, hold: ItemHold, back: items.Back) -> bool:
        return await self.awrite(items.hand_back_flow(hold, back))

    async def aend_item(self, hold: ItemHold, event: EventRow) -> bool:
        return await self.awrite(items.end_flow(hold, event))

    async def athreads(self, *, status: Status | None = None, limit: int | None = None) -> Sequence[ThreadRow]:
        return await self.aread(flows.threads_flow(status, limit))

    # -- first tier --------------------------------------------------------------------------------------------------

    async def _awaited(self, blocking: Callable[[], T], verb: Flow[T]) -> T:
        return await self._adone(verb)

    async def _adone(self, verb: Flow[T]) -> T:
        """Perform a verb by the awaited verbs that it asks for."""
        return await runner.arun(verb, lambda ask: getattr(self, f"a{ask.verb}")(*ask.args))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        found, rest = await self._adone(verbs.history(config, channels))
        if rest:
            found |= await BaseCheckpointSaver.aget_delta_channel_history(self, config=config, channels=rest)
        return found
