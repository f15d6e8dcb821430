"""AsyncPostgresSaver: the journal in PostgreSQL for programs that await.

1. It says what `PostgresSaver` says, over awaiting connections.
2. A blocking call goes over connections of its own by the same DSN, so it works from every thread. Only on the thread
   of an event loop that is in the middle of a write transaction of this saver it is an error: it might wait for a row
   that this very transaction holds, for ever.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar, Union

from psycopg import AsyncConnection

from pregel import flow as runner
from pregel.checkpoint import flows
from pregel.checkpoint.async_journal import AsyncJournalSaver
from pregel.checkpoint.chunks import ChunkPage, chunks_flow
from pregel.checkpoint.flows import Row, Sql
from pregel.checkpoint.lease import LEASE
from pregel.checkpoint.news import AsyncNews, News
from pregel.checkpoint.postgres import tables, verbs, wire
from pregel.checkpoint.postgres.connections import Connections, Target
from pregel.checkpoint.postgres.connections_async import AsyncLine, AsyncOwn, AsyncSource, async_source_of
from pregel.checkpoint.postgres.listening import AwaitedListening
from pregel.checkpoint.postgres.saver import (
    PATIENCE,
    POOL_SIZE,
    PostgresSaver,
    Serde,
    Spoken,
    refuse_pipe,
    target_of,
    warn_of,
)
from pregel.checkpoint.records import Append, Hold, Load, Opened, Page, Receipt, Saved, Status, ThreadRow
from pregel.checkpoint.together import Together
from pregel.errors import AsyncOnlyError
from pregel.flow import Flow

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

T = TypeVar("T")
Conn = Union[AsyncConnection[Any], "AsyncConnectionPool[Any]"]


class AsyncPostgresSaver(Spoken, AsyncJournalSaver):
    """Keeps threads in PostgreSQL. Give an awaiting psycopg connection or pool, or use `from_conn_string`."""

    def __init__(self, conn: Conn, pipe: object = None, serde: Serde | None = None, *, lease: float = LEASE) -> None:
        refuse_pipe(pipe)
        source, target = async_source_of(conn, type(self).__name__)
        AsyncJournalSaver.__init__(self, serde=serde, lease=lease)
        self._set_up(source, target, POOL_SIZE, PATIENCE, None)

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str,
        *,
        pipeline: bool = False,
        serde: Serde | None = None,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        prepare: bool = True,
        lease: float = LEASE,
    ) -> AsyncIterator[Self]:
        """A saver on a database for an `async with` block, with `PostgresSaver`'s options."""
        saver = cls.at(conn_string, serde=serde, pool_size=pool_size, patience=patience, prepare=prepare, lease=lease)
        try:
            yield saver
        finally:
            await saver.aclose()

    @classmethod
    def at(
        cls,
        conn_string: str,
        *,
        serde: Serde | None = None,
        pool_size: int = POOL_SIZE,
        patience: float = PATIENCE,
        prepare: bool = True,
        lease: float = LEASE,
    ) -> Self:
        """The same without a block: await `aclose` in the end."""
        target = target_of(conn_string)
        saver = cls.__new__(cls)
        AsyncJournalSaver.__init__(saver, serde=serde, lease=lease)
        saver._set_up(AsyncOwn(target, pool_size), target, pool_size, patience, None if prepare else False)
        return saver

    def _set_up(self, source: AsyncSource, target: Target, size: int, patience: float, prepare: bool | None) -> None:
        self._target = target
        self.connections: Connections[AsyncSource] = Connections(source, lambda: AsyncOwn(target, size), patience)
        self.connections.prepare = prepare
        self.blocking_twin = PostgresSaver.of(target, None, size, patience, prepare, self.lease)
        self._ready = False
        self._appends = Together(self._append_all)
        self._openings = Together(self._open_all)
        self._writing: Counter[asyncio.AbstractEventLoop] = Counter()

    async def setup(self) -> None:
        """Make or migrate the tables now instead of on first use."""
        with wire.explained():
            await self._adrive(tables.migrating())
            rows = await self._adrive(verbs.asking(Sql("settings")))
        warn_of(rows)
        self._ready = True

    async def aclose(self) -> None:
        """Close the connections that this saver made."""
        self.blocking_twin.close()
        await self.connections.current().close()

    # -- the store ---------------------------------------------------------------------------------------------------

    async def aappend(self, append: Append) -> Receipt:
        if verbs.weight(append) > verbs.LIGHT:
            return await self._append_alone(append)
        return await self._appends.ask(append)

    async def _append_alone(self, append: Append) -> Receipt:
        return await self._ado(verbs.appending(append, self.names), append.thread)

    async def _append_all(self, appends: Sequence[Append]) -> list[Receipt | BaseException]:
        """What became of each of several runs' appends. What did not land with the others is sent alone."""
        landed: dict[int, Receipt] = {}
        if len(appends) > 1:
            with suppress(Exception):  # whoever it is about hears of it alone; what landed all the same has its mark
                landed = await self._ado(verbs.appending_all(appends))
        left = [append for place, append in enumerate(appends) if place not in landed]
        if len(left) > 1:
            outcomes = iter(await asyncio.gather(*map(self._outcome, left)))
        else:
            outcomes = iter([await self._outcome(append) for append in left])
        return [landed[place] if place in landed else next(outcomes) for place in range(len(appends))]

    async def _outcome(self, append: Append) -> Receipt | BaseException:
        try:
            return await self._append_alone(append)
        except Exception as error:
            return error

    async def _open_all(self, places: Sequence[tuple[str, str]]) -> list[Row | None]:
        """What one statement tells of each of several threads; None where each is to be asked for alone."""
        if len(places) > 1:
            with suppress(Exception):
                return [*(await self._ado(verbs.openings(places)))]
        return [None] * len(places)

    async def aread(self, flow: Flow[T]) -> T:
        return await self._ado(verbs.reading_once(flow))

    async def awrite(self, flow: Flow[T]) -> T:
        loop = asyncio.get_running_loop()
        self._writing[loop] += 1
        try:
            return await self._ado(verbs.writing(flow))
        finally:
            self._writing[loop] -= 1
            if not self._writing[loop]:
                del self._writing[loop]

    async def aload(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        if names and names is not self._interned:
            await self.aintern(names)
            self._interned = names
        opened = await self._openings.ask((thread, loads[0].ns)) if verbs.is_opening(loads) else None
        flow = verbs.loading(lambda: flows.load_flow(self._decoder(), thread, loads), thread, loads, opened)
        return await self._ado(flow, thread)

    async def alook(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        flow = verbs.looking(lambda: flows.look_flow(self._decoder(), thread, ns, checkpoint))
        return await self._ado(flow, thread)

    async def apage(self, thread: str | None, page: Page) -> Sequence[tuple[str, Saved]]:
        return await self._ado(verbs.reading(lambda: flows.page_flow(self._decoder(), thread, page)), thread)

    async def aintern(self, texts: Iterable[str]) -> None:
        if unknown := sorted(set(texts) - self.names.ids.keys()):
            await self._ado(verbs.interning(self.names, unknown))

    def renew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        return self.blocking_twin.renew(holds, keep=keep)

    async def arenew(self, holds: Sequence[Hold], *, keep: bool = True) -> dict[bytes, str]:
        return await self._ado(verbs.renewing(holds, keep))

    async def aask(self, hold: Hold, asked: str) -> bool:
        return await self._ado(verbs.requesting(hold, asked))

    async def achunks(self, thread: str, offset: int, seen: int | None = None) -> ChunkPage:
        return await self._ado(verbs.reading(lambda: chunks_flow(thread, offset, seen)), thread)

    def listen(self) -> AbstractContextManager[News]:
        return self.blocking_twin.listen()

    def alisten(self) -> AbstractAsyncContextManager[AsyncNews]:
        return AwaitedListening(self._target, self.connections.prepare is False)

    async def athreads(self, *, status: Status | None = None, limit: int | None = None) -> Sequence[ThreadRow]:
        return await self._ado(verbs.reading(lambda: flows.threads_flow(status, limit)))

    # -- doing it ----------------------------------------------------------------------------------------------------

    async def _ado(self, verb: Flow[T], thread: str | None = None) -> T:
        """Perform a verb on tables that are there."""
        if not self._ready:
            await self._make_ready()
        with wire.explained(thread):
            return await self._adrive(verb)

    async def _adrive(self, verb: Flow[T]) -> T:
        line = AsyncLine(self.connections)
        try:
            return await runner.arun(verb, line.perform)
        finally:
            await line.release()

    async def _make_ready(self) -> None:
        with wire.explained():
            missing = await self._adrive(tables.missing_steps())
        if missing:
            await self.setup()
        self._ready = True

    def _do(self, verb: Flow[T], thread: str | None = None) -> T:
        try:
            writing = asyncio.get_running_loop() in self._writing
        except RuntimeError:
            writing = False
        if writing:
            verb.close()
            raise AsyncOnlyError(
                f"{type(self).__name__} was called without await on the thread of its event loop, in the middle of a "
                "write transaction of that loop, for whose rows it might wait for ever.",
                fix="Await the async method (ainvoke, aget_state, aget_tuple, ...).",
                thread=thread,
            )
        return self.blocking_twin.do(verb, thread)
