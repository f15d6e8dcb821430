"""The saver contract, second tier: whole appends under authority, loads in one snapshot, history in pages.

1. `append` is the only way in for a run. It lands whole or not at all; refused is an answer, anything else raises.
2. Reads change nothing and need no authority.
3. The first-tier verbs are made from these, so both tiers show the same data. A first-tier `put` on a thread that a
   live run holds is refused: it would break that run's chain.
4. A verb is one hop to another thread for an async caller, never one per statement.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pregel import flow as runner
from pregel.checkpoint import flows, items, verbs
from pregel.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from pregel.checkpoint.chunks import ChunkPage, ChunkTail, chunks_flow, tail_flow
from pregel.checkpoint.decode import Decoder, Prototypes, filters
from pregel.checkpoint.keys import Names, counter_of, version_text
from pregel.checkpoint.lease import LEASE
from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.news import AsyncNews, AsyncPauses, News, Pauses
from pregel.checkpoint.pages import Pages, asked_page
from pregel.checkpoint.recent import RecentLists
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
from pregel.checkpoint.shapes import tuple_of
from pregel.checkpoint.verify import Finding
from pregel.checkpoint.waits import due_flow, events_flow, send_flow, unread_flow
from pregel.config import RunnableConfig
from pregel.errors import InvalidInputError
from pregel.flow import Flow

if TYPE_CHECKING:
    from pregel.checkpoint.appender import Appender

T = TypeVar("T")


class JournalSaver(BaseCheckpointSaver[str]):
    """A saver with authority. A store defines `read`, `write` and `append`; all verbs are built on them."""

    blocking: ClassVar[bool] = True
    """Whether a verb may take long, so that async callers must not run it on the event loop's thread."""
    in_pages: ClassVar[bool] = True
    """Whether a history is read in parts, each before the last id of the one before."""

    def __init__(
        self, *, serde: SerializerProtocol | UntypedSerializerProtocol | None = None, lease: float = LEASE
    ) -> None:
        super().__init__(serde=serde)
        self.lease = checked_lease(lease)
        """Seconds after which a run that was not heard of may be taken over."""
        self.names = Names()
        self._interned: Iterable[str] = ()
        self._decodes: Decoder | None = None
        self.recent = RecentLists()
        """The lists that were read last; ``recent.largest`` says how many bytes of them are kept."""

    # -- what a store defines ----------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, flow: Flow[T]) -> T:
        """Run a flow of reading statements in one snapshot."""

    @abstractmethod
    def write(self, flow: Flow[T]) -> T:
        """Run a flow in one transaction that holds the write lock from its start; roll back when it raises."""

    @abstractmethod
    def append(self, append: Append) -> Receipt:
        """Store a run's records if the thread's row is still as the append expects."""

    # -- for the engine ----------------------------------------------------------------------------------------------

    def ledger(self) -> Ledger:
        """A translator for one run."""
        return Ledger(self.serde, self.names)

    def appender(self, thread: str, hold: Hold, ledger: Ledger) -> Appender | None:
        """A short way for the usual supersteps of the run that holds a thread; None where `append` is the only way."""
        return None

    def at_once(self) -> bool:
        """Whether what a run awaits of this store is there at once, so that nothing can come between."""
        return False

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        """The thread's row and these checkpoints, as of one moment. Interns `names` first when some are unknown."""
        self._introduce(names)
        return self.read(flows.load_flow(self._decoder(), thread, loads))

    def _introduce(self, names: Iterable[str]) -> None:
        """Intern the names of a graph, which gives the same object each time, and may have thousands."""
        if names and names is not self._interned:
            self.intern(names)
            self._interned = names

    def look(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        """A checkpoint (without an id the newest of the namespace) for somebody who only looks; None without one."""
        return self.read(flows.look_flow(self._decoder(), thread, ns, checkpoint))

    def page(self, thread: str | None, page: Page) -> list[tuple[str, Saved]]:
        """(thread, checkpoint) newest first, of all threads when `thread` is None; `before` the last id gives more."""
        return self.read(flows.page_flow(self._decoder(), thread, page))

    def intern(self, texts: Iterable[str]) -> None:
        """Give names a number, once per store; `self.names` then knows them."""
        if unknown := sorted(set(texts) - self.names.ids.keys()):
            self.write(flows.intern_flow(self.names, unknown))

    def renew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        """Renew leases (or let them lapse now): run -> what is asked of it, for the runs that hold their threads."""
        return self.write(flows.renew_flow(holds, keep))

    def ask(self, hold: Hold, asked: str) -> bool:
        """Ask something of the run that holds a thread; it hears of it with its next append or renewal."""
        return self.write(flows.ask_flow(hold, asked))

    def threads(self, *, status: Status | None = None, limit: int | None = None) -> list[ThreadRow]:
        """The threads, the last written first."""
        return self.read(flows.threads_flow(status, limit))

    def pending(self, after: tuple[float, int] = (0.0, 0), limit: int = 100) -> list[ThreadRow]:
        """Threads that were started and nobody has run, the longest untouched first; those behind (updated_at, tno)."""
        return self.read(flows.pending_flow(after, limit))

    def chunks(self, thread: str, offset: int, seen: int | None = None) -> ChunkPage:
        """A thread's row, and its chunks from an offset on; none while the row's seq is the one that was `seen`."""
        return self.read(chunks_flow(thread, offset, seen))

    def chunk_tail(self, thread: str) -> ChunkTail:
        """Where a thread's chunks end, and which of them are pending."""
        return self.read(tail_flow(thread))

    def send(self, thread: str, event: EventRow) -> Sent:
        """Put an event into a thread's mailbox; it needs no authority, and does no harm twice."""
        return self.write(send_flow(thread, event))

    def events(self, thread: str, limit: int | None = None) -> list[EventRow]:
        """The events of a thread that nobody has taken yet, in the order in which they were sent."""
        return self.read(events_flow(thread, limit))

    def due(self, now: float, limit: int | None = None) -> list[tuple[str, str]]:
        """(thread, its graph) of the threads that rest for a time that has come by now, or an event that is there."""
        return self.read(due_flow(now, limit))

    def unread(self, name: str, limit: int | None = None) -> list[tuple[str, str]]:
        """(thread, its graph) of the threads that have ended, with an event of this name that nobody has taken."""
        return self.read(unread_flow(name, limit))

    def backlog(self, now: float) -> list[Backlog]:
        """How many items of each name and version wait for a worker, and how many are worked on."""
        return self.read(items.backlog_flow(now))

    def take_item(self, asked: items.Asked) -> OpenItem | None:
        """Take the oldest item that is asked for; None when there is none."""
        return self.write(items.take_flow(asked))

    def renew_items(self, holds: Sequence[ItemHold], expires: float) -> list[bytes]:
        """Hold items until then; the tokens of those that are held still."""
        return self.write(items.renew_flow(holds, expires))

    def hand_back(self, hold: ItemHold, back: items.Back) -> bool:
        """Give an item back to the queue; False when it is held no more."""
        return self.write(items.hand_back_flow(hold, back))

    def end_item(self, hold: ItemHold, event: EventRow) -> bool:
        """End an item and send its thread what came of it; False, and nothing done, when it is held no more."""
        return self.write(items.end_flow(hold, event))

    def listen(self) -> AbstractContextManager[News]:
        """What wakes those who follow a thread, for as long as they do."""
        return nullcontext(Pauses())

    def alisten(self) -> AbstractAsyncContextManager[AsyncNews]:
        """Async twin of `listen`."""
        return nullcontext(AsyncPauses())

    def _decoder(self) -> Decoder:
        decoder = self._decodes
        if decoder is None or decoder.serde is not self.serde or decoder.names is not self.names:
            decoder = self._decodes = Decoder(self.serde, self.names, self.recent)
        return decoder

    # -- first tier --------------------------------------------------------------------------------------------------

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self._done(verbs.get_tuple(config))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel the writes since its nearest whole value, and that value, as the channel's log has them."""
        found, rest = self._done(verbs.history(config, channels))
        return found | dict(super().get_delta_channel_history(config=config, channels=rest)) if rest else found

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        listing = Listing(config, filter, before, limit)
        if listing.only is not None and config is not None:
            yield from listing.named(self.get_tuple(config))
        while (page := listing.next()) is not None:
            yield from listing.take(page, self.page(listing.thread, page))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return self._done(verbs.put(self.serde, self.names, config, checkpoint, metadata, new_versions))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        self._done(verbs.put_writes(self.serde, self.names, config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        self._done(verbs.delete_thread(thread_id))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        self._done(verbs.delete_for_runs(run_ids))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        self._done(verbs.copy_thread(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        self._done(verbs.prune(thread_ids, strategy))

    def sweep(self, idle_for: float, *, strategy: str = "delete") -> Sequence[str]:
        """Prune the threads that were last written more than `idle_for` seconds ago and that no live run holds.

        Their ids come back. Meant for a timer: what a run took up meanwhile is left alone.
        """
        return self._done(verbs.sweep(idle_for, strategy))

    def verify(self, thread_id: str, *, channels: Prototypes | None = None) -> Sequence[Finding]:
        """What is wrong with a thread: each record of it is read. Empty when it is whole.

        `channels` are those of a graph (``app.channels``): with them the values of its DeltaChannels are folded too.
        """
        return self._done(verbs.verify(self._decoder(), thread_id, channels))

    def get_next_version(self, current: str | None, channel: None = None) -> str:
        return version_text(1 if current is None else counter_of(current) + 1)

    def _done(self, verb: Flow[T]) -> T:
        """Perform a verb by the blocking verbs that it asks for."""
        return runner.run(verb, lambda ask: getattr(self, ask.verb)(*ask.args))

    # -- async twins -------------------------------------------------------------------------------------------------

    async def _awaited(self, blocking: Callable[[], T], verb: Flow[T]) -> T:
        """Do a verb: here by its blocking twin, on another thread; a store that awaits performs the flow instead."""
        return await self._hop(blocking)

    async def _hop(self, verb: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        if self.blocking:
            return await runner.on_thread(verb, *args, **kwargs)
        return verb(*args, **kwargs)

    async def aload(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        """Async twin of `load`."""
        return await self._hop(self.load, thread, loads, names)

    async def alook(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        """Async twin of `look`."""
        return await self._hop(self.look, thread, ns, checkpoint)

    async def apage(self, thread: str | None, page: Page) -> Sequence[tuple[str, Saved]]:
        """Async twin of `page`."""
        return await self._hop(self.page, thread, page)

    async def aappend(self, append: Append) -> Receipt:
        """Async twin of `append`. The append itself is never cut short by a cancellation."""
        return await self._hop(self.append, append)

    async def aintern(self, texts: Iterable[str]) -> None:
        """Async twin of `intern`."""
        await self._hop(self.intern, texts)

    async def arenew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        """Async twin of `renew`."""
        return await self._hop(self.renew, holds, keep=keep)

    async def aask(self, hold: Hold, asked: str) -> bool:
        """Async twin of `ask`."""
        return await self._hop(self.ask, hold, asked)

    async def achunks(self, thread: str, offset: int, seen: int | None = None) -> ChunkPage:
        """Async twin of `chunks`."""
        return await self._hop(self.chunks, thread, offset, seen)

    async def achunk_tail(self, thread: str) -> ChunkTail:
        """Async twin of `chunk_tail`."""
        return await self._hop(self.chunk_tail, thread)

    async def asend(self, thread: str, event: EventRow) -> Sent:
        """Async twin of `send`."""
        return await self._hop(self.send, thread, event)

    async def aevents(self, thread: str, limit: int | None = None) -> Sequence[EventRow]:
        """Async twin of `events`."""
        return await self._hop(self.events, thread, limit)

    async def adue(self, now: float, limit: int | None = None) -> Sequence[tuple[str, str]]:
        """Async twin of `due`."""
        return await self._hop(self.due, now, limit)

    async def aunread(self, name: str, limit: int | None = None) -> Sequence[tuple[str, str]]:
        """Async twin of `unread`."""
        return await self._hop(self.unread, name, limit)

    async def apending(self, after: tuple[float, int] = (0.0, 0), limit: int = 100) -> Sequence[ThreadRow]:
        """Async twin of `pending`."""
        return await self._hop(self.pending, after, limit)

    async def abacklog(self, now: float) -> Sequence[Backlog]:
        """Async twin of `backlog`."""
        return await self._hop(self.backlog, now)

    async def atake_item(self, asked: items.Asked) -> OpenItem | None:
        """Async twin of `take_item`."""
        return await self._hop(self.take_item, asked)

    async def arenew_items(self, holds: Sequence[ItemHold], expires: float) -> Sequence[bytes]:
        """Async twin of `renew_items`."""
        return await self._hop(self.renew_items, holds, expires)

    async def ahand_back(self, hold: ItemHold, back: items.Back) -> bool:
        """Async twin of `hand_back`."""
        return await self._hop(self.hand_back, hold, back)

    async def aend_item(self, hold: ItemHold, event: EventRow) -> bool:
        """Async twin of `end_item`."""
        return await self._hop(self.end_item, hold, event)

    async def athreads(self, *, status: Status | None = None, limit: int | None = None) -> Sequence[ThreadRow]:
        """Async twin of `threads`."""
        return await self._hop(self.threads, status=status, limit=limit)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self._awaited(partial(self.get_tuple, config), verbs.get_tuple(config))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self._hop(self.get_delta_channel_history, config=config, channels=channels)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        listing = Listing(config, filter, before, limit)
        if listing.only is not None and config is not None:
            for named in listing.named(await self.aget_tuple(config)):
                yield named
        while (page := listing.next()) is not None:
            for found in listing.take(page, await self.apage(listing.thread, page)):
                yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await self._awaited(
            partial(self.put, config, checkpoint, metadata, new_versions),
            verbs.put(self.serde, self.names, config, checkpoint, metadata, new_versions),
        )

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self._awaited(
            partial(self.put_writes, config, writes, task_id, task_path),
            verbs.put_writes(self.serde, self.names, config, writes, task_id, task_path),
        )

    async def adelete_thread(self, thread_id: str) -> None:
        await self._awaited(partial(self.delete_thread, thread_id), verbs.delete_thread(thread_id))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self._awaited(partial(self.delete_for_runs, run_ids), verbs.delete_for_runs(run_ids))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self._awaited(
            partial(self.copy_thread, source_thread_id, target_thread_id),
            verbs.copy_thread(source_thread_id, target_thread_id),
        )

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self._awaited(partial(self.prune, thread_ids, strategy=strategy), verbs.prune(thread_ids, strategy))

    async def averify(self, thread_id: str, *, channels: Prototypes | None = None) -> Sequence[Finding]:
        """Async twin of `verify`."""
        return await self._awaited(
            partial(self.verify, thread_id, channels=channels), verbs.verify(self._decoder(), thread_id, channels)
        )

    async def asweep(self, idle_for: float, *, strategy: str = "delete") -> Sequence[str]:
        """Async twin of `sweep`."""
        return await self._awaited(partial(self.sweep, idle_for, strategy=strategy), verbs.sweep(idle_for, strategy))


class Listing:
    """Where a `list` call stands. The checkpoint that its config names is all that it gives, wherever that is."""

    def __init__(
        self,
        config: RunnableConfig | None,
        filter: dict[str, Any] | None,
        before: RunnableConfig | None,
        limit: int | None,
    ) -> None:
        self.thread: str | None = None
        ns: str | None = None
        if config is not None:
            self.thread, _ = verbs.address(config)
            ns = config["configurable"].get("checkpoint_ns")
        self.only = None if config is None else get_checkpoint_id(config)
        self.asked = asked_page(ns, filter, before, limit)
        if self.only is not None and self.asked.limit:
            self.asked = replace(self.asked, limit=None)
        self.pages = Pages(self.asked, at_once=self.thread is None)

    def next(self) -> Page | None:
        """The page to read now; None when all was given."""
        return self.pages.next()

    def named(self, found: CheckpointTuple | None) -> Sequence[CheckpointTuple]:
        """What was read where the config points, if it is asked for; a config without a namespace may mean another."""
        if found is None and self.asked.ns is None:
            return ()
        wanted = self.pages.next() is not None
        self.pages.last(None)
        if found is None or not wanted or not filters(found.metadata, self.asked.filter):
            return ()
        return [found] if self.asked.before is None or found.checkpoint["id"] < self.asked.before else ()

    def take(self, part: Page, found: Sequence[tuple[str, Saved]]) -> list[CheckpointTuple]:
        """The part's checkpoints as tuples."""
        self.pages.took(part, found)
        if self.only is not None:
            found = [(thread, saved) for thread, saved in found if saved.id == self.only]
            if found:
                self.pages.last(None)
        return [tuple_of(thread, saved) for thread, saved in found]


def checked_lease(lease: float) -> float:
    """The seconds of a lease; a named error when it cannot be one."""
    if not lease > 0:
        raise InvalidInputError(f"lease is {lease!r}.", fix="Give the seconds after which a silent run is given up.")
    return lease
