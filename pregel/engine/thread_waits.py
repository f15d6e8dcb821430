"""`app.threads` for threads that wait: events are sent to them, and those whose time has come are woken.

A thread is woken by a run without input. It is the claim of that run that decides what came of a wait, so a thread may
be woken at any time, by anybody, also by several at once: one that waits still is left as it is.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.checkpoint.base import is_journal
from pregel.checkpoint.keys import thread_text
from pregel.checkpoint.pages import checked_limit
from pregel.checkpoint.records import Backlog, EventRow, Sent
from pregel.engine.anew import astart_anew, start_anew
from pregel.engine.call import clock
from pregel.engine.ids import TICKS
from pregel.errors import (
    AuthorityLost,
    EventMismatchError,
    InvalidInputError,
    NotBuiltError,
    ThreadBusy,
    ThreadDeleted,
    ThreadNotFoundError,
)
from pregel.text import checked_text

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel

ELSEWHERE = (ThreadBusy, AuthorityLost, ThreadDeleted, ThreadNotFoundError)  # somebody else has woken it, or ended it


class SentEvent(NamedTuple):
    """What became of an event. `repeated`: one with this id was sent before, and this one dropped.

    `awaited`: the thread rests for it now, and can be woken; else it is kept until the thread waits for it.
    """

    id: str
    repeated: bool
    awaited: bool


class Woken(NamedTuple):
    """A thread that was woken: the output of its run, as `invoke` gives it, or the error that it ended in."""

    thread_id: str
    output: Any = None
    error: Exception | None = None


class Wakes:
    """The verbs of `app.threads` about waits and events."""

    _graph: Pregel
    _saver: Any

    def send_event(
        self, thread_id: str, name: str, value: Any = None, *, key: str | None = None, id: str | None = None
    ) -> SentEvent:
        """Send an event to a thread, which takes it when a node comes to `wait_for_event(name)`, now or later.

        An event whose `id` was sent to the thread before is dropped. EventMismatchError, and nothing is stored, when
        the thread rests for events of this name, and for none with this `key`. It wakes nobody: see `due`.
        """
        event = self._event(name, value, key, id)
        return _told(thread_text(thread_id), event, self._mailbox().send(thread_text(thread_id), event))

    def due(self, *, limit: int | None = None) -> Sequence[str]:
        """The threads of this graph that rest for a time that has come, or for an event that is there."""
        most = checked_limit(limit)
        return self._ours(self._mailbox().due(self._now()))[:most]

    def wake(self, thread_id: str, **arguments: Any) -> Any:
        """Go on with a thread that waits, as `invoke(None)` does; one that waits still is left as it is.

        The output is that of `invoke`, with what is waited for under ``__interrupt__``. `arguments` are those of
        `invoke`. ThreadBusy when somebody runs it, CannotResumeError when there is nothing to go on with.
        """
        return self.resume(thread_id, **arguments)  # type: ignore[attr-defined]  # a verb of `Threads`

    def wake_due(self, *, limit: int | None = None, **arguments: Any) -> Sequence[Woken]:
        """Wake the threads that are `due`, one after the other; what a node raises is in its `Woken`.

        A thread that somebody else takes up at the same time is left to them.
        """
        woken = []
        for thread in self.due(limit=limit):
            try:
                woken.append(Woken(thread, self.wake(thread, **arguments)))
            except ELSEWHERE:
                continue
            except Exception as error:
                woken.append(Woken(thread, error=error))
        return woken

    def unread(self, name: str, *, limit: int | None = None) -> Sequence[str]:
        """The threads of this graph that have ended, and have an event of this name that no run of theirs took."""
        most = checked_limit(limit)
        return self._ours(self._mailbox().unread(name))[:most]

    def start_unread(self, name: str, input: Any, *, limit: int | None = None) -> Sequence[str]:
        """Start the threads that are `unread` once more, with this input, as `app.start` does; which those were.

        A worker runs them (see `Worker(unread=)`). Of several that do this at once one starts a thread.
        """
        return [thread for thread in self.unread(name, limit=limit) if start_anew(self._graph, thread, name, input)]

    def backlog(self) -> Sequence[Backlog]:
        """The work of the whole store that nodes have done `elsewhere`, by name and version.

        How many items wait for a worker, how many are worked on, since when (unix seconds) the first has waited.
        """
        return self._mailbox().backlog(self._now())  # type: ignore[no-any-return]  # a saver of any kind

    async def abacklog(self) -> Sequence[Backlog]:
        """Async twin of `backlog`."""
        return await self._mailbox().abacklog(self._now())  # type: ignore[no-any-return]

    async def asend_event(
        self, thread_id: str, name: str, value: Any = None, *, key: str | None = None, id: str | None = None
    ) -> SentEvent:
        """Async twin of `send_event`."""
        event = self._event(name, value, key, id)
        return _told(thread_text(thread_id), event, await self._mailbox().asend(thread_text(thread_id), event))

    async def adue(self, *, limit: int | None = None) -> Sequence[str]:
        """Async twin of `due`."""
        most = checked_limit(limit)
        return self._ours(await self._mailbox().adue(self._now()))[:most]

    async def awake(self, thread_id: str, **arguments: Any) -> Any:
        """Async twin of `wake`."""
        return await self.aresume(thread_id, **arguments)  # type: ignore[attr-defined]  # a verb of `Threads`

    async def awake_due(self, *, limit: int | None = None, **arguments: Any) -> Sequence[Woken]:
        """Async twin of `wake_due`."""
        woken = []
        for thread in await self.adue(limit=limit):
            try:
                woken.append(Woken(thread, await self.awake(thread, **arguments)))
            except ELSEWHERE:
                continue
            except Exception as error:
                woken.append(Woken(thread, error=error))
        return woken

    async def aunread(self, name: str, *, limit: int | None = None) -> Sequence[str]:
        """Async twin of `unread`."""
        most = checked_limit(limit)
        return self._ours(await self._mailbox().aunread(name))[:most]

    async def astart_unread(self, name: str, input: Any, *, limit: int | None = None) -> Sequence[str]:
        """Async twin of `start_unread`."""
        found = await self.aunread(name, limit=limit)
        return [thread for thread in found if await astart_anew(self._graph, thread, name, input)]

    # -- below -------------------------------------------------------------------------------------------------------

    def _mailbox(self) -> Any:
        if not is_journal(type(self._saver)):  # type: ignore[arg-type]  # a class has a hash
            raise NotBuiltError(
                f"{type(self._saver).__name__} keeps no waits and no events: it has only the verbs of the reference.",
                fix="Use InMemorySaver, SqliteSaver or PostgresSaver.",
            )
        return self._saver

    def _event(self, name: str, value: Any, key: str | None, id: str | None) -> EventRow:
        if not name or not isinstance(name, str):
            raise InvalidInputError(f"An event needs a name, not {name!r}.", fix="Give the one that a node waits for.")
        kind, blob = self._mailbox().serde.dumps_typed(value)
        id = uuid.uuid4().hex if id is None else checked_text(str(id), "The id of an event")
        about = None if key is None else checked_text(str(key), "The key of an event")
        return EventRow(id, checked_text(name, "The name of an event"), about, self._now(), kind, blob)

    def _now(self) -> float:
        return (self._graph.clock or clock)() / TICKS

    def _ours(self, found: Sequence[tuple[str, str]]) -> list[str]:
        """Those of this graph; a limit comes after it, or the threads of others would hide them."""
        own = self._graph.label
        return [thread for thread, graph in found if not graph or graph == own]


def _told(thread: str, event: EventRow, sent: Sent) -> SentEvent:
    if not sent.found:
        raise ThreadNotFoundError(
            f"There is no thread {thread!r}.", fix="Start it first; then what is sent to it is kept.", thread=thread
        )
    if sent.keys:
        awaited = ", ".join(repr(key) for key in sent.keys)
        raise EventMismatchError(
            f"Thread {thread!r} waits for event {event.name!r} with key {awaited}, not {event.key!r}.",
            fix="Send it with the key of what it is about; the wait goes on.",
            thread=thread,
        )
    return SentEvent(event.id, sent.repeated, sent.awaited)
