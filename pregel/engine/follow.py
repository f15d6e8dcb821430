"""Following a thread: what its runs journaled, from an offset on, and what they go on to show.

1. Everything is told by what is stored: whoever knows the thread and an offset goes on from there, in any process. Each
   chunk comes once, in order, over the death of a worker and the takeover by another.
2. It ends when nobody holds the thread and all is read, as of one moment. A thread whose worker died is not at rest:
   somebody may take it over.
3. Looks are few: none at the chunks while the thread's `seq` stands still, pauses that grow, or the store's word.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from pregel.checkpoint.chunks import LANDED, PENDING, SUPERSEDED, ChunkPage, StoredChunks, unpack_chunks
from pregel.checkpoint.news import SHORTEST
from pregel.checkpoint.records import INTERRUPT, RESUME, Load, Opened
from pregel.config import RunnableConfig
from pregel.engine.call import keeps_none, thread_of
from pregel.engine.chunks import ns_tuple
from pregel.errors import InvalidInputError, JournalDamaged, ThreadDeleted, ThreadNotFoundError
from pregel.types import FollowedChunk, Interrupt


def follow(
    saver: Any, config: RunnableConfig, *, offset: int = 0, wait: float | None = None
) -> Iterator[FollowedChunk]:
    """The chunks of a thread; see `Followable.follow`."""
    return _follow(saver, Follower(saver, config, offset, wait))


def _follow(saver: Any, follower: Follower) -> Iterator[FollowedChunk]:
    with saver.listen() as news:
        while True:
            yield from follower.take(saver.chunks(follower.thread, follower.offset, follower.seen))
            if follower.over:
                opened = saver.load(follower.thread, [Load()])
                yield follower.end(opened)
                return
            if not follower.more:
                news.wait(follower.tno, follower.pause(news.longest))


def afollow(
    saver: Any, config: RunnableConfig, *, offset: int = 0, wait: float | None = None
) -> AsyncIterator[FollowedChunk]:
    """The same, awaited."""
    return _afollow(saver, Follower(saver, config, offset, wait))


async def _afollow(saver: Any, follower: Follower) -> AsyncIterator[FollowedChunk]:
    async with saver.alisten() as news:
        while True:
            for chunk in follower.take(await saver.achunks(follower.thread, follower.offset, follower.seen)):
                yield chunk
            if follower.over:
                opened = await saver.aload(follower.thread, [Load()])
                yield follower.end(opened)
                return
            if not follower.more:
                await news.wait(follower.tno, follower.pause(news.longest))


class Follower:
    """Where somebody who follows a thread stands."""

    def __init__(self, saver: Any, config: RunnableConfig, offset: int, wait: float | None) -> None:
        if not hasattr(saver, "chunks"):
            raise keeps_none(saver)
        if type(offset) is not int or offset < 0:
            raise InvalidInputError(f"offset is {offset!r}.", fix="Give the `next_offset` of the last chunk, or 0.")
        if wait is not None and not (isinstance(wait, int | float) and wait >= 0):
            raise InvalidInputError(f"wait is {wait!r}.", fix="Give seconds, or None to wait as long as it takes.")
        self.saver = saver
        if not isinstance(config, Mapping):
            raise InvalidInputError(
                f"config is {config!r}: it does not name a thread.", fix='Give {"configurable": {"thread_id": ...}}.'
            )
        self.thread = thread_of(config.get("configurable") or {})
        self.offset, self.wait = offset, wait
        self.attempt = 1  # of the chunk read last
        self.tno = 0  # of the thread as it was met first
        self.seen: int | None = None  # the seq at the last look
        self.page: ChunkPage | None = None
        self.more = False  # there may be chunks already that were not read
        self.over = False
        self._news_at = time.monotonic()
        self._pause = SHORTEST

    def take(self, page: ChunkPage) -> Iterator[FollowedChunk]:
        """What a look has found."""
        row = page.thread
        if not row.tno and not self.tno:
            raise ThreadNotFoundError(thread=self.thread)
        if row.tno != (self.tno or row.tno):
            raise ThreadDeleted(thread=self.thread)
        if page.end is not None:
            self._check_end(*page.end)
        self.tno, self.page, self.more = row.tno, page, page.more
        if row.seq != self.seen:
            self._news_at, self._pause = time.monotonic(), SHORTEST
        self.seen = None if page.more else row.seq
        for found in page.rows:
            yield from self._unpacked(found, row.epoch)
        waited = time.monotonic() - self._news_at
        self.over = not page.more and (page.is_at_rest or (self.wait is not None and waited >= self.wait))

    def _check_end(self, last: int, attempt: int) -> None:
        self.attempt = attempt
        if self.offset > last + 1:
            raise InvalidInputError(
                f"offset is {self.offset}, but the chunks of thread {self.thread!r} end before {last + 1}.",
                fix="Give the `next_offset` of a chunk of this thread, or 0 if it was deleted and made anew.",
            )

    def _unpacked(self, row: StoredChunks, epoch: int) -> Iterator[FollowedChunk]:
        state = SUPERSEDED if row.state == PENDING and row.epoch < epoch else row.state
        try:
            chunks = list(unpack_chunks(self.saver.serde.loads_typed, row))
        except ValueError as error:
            raise JournalDamaged(f"The chunks of thread {self.thread!r} are damaged: {error}.") from error
        self.attempt = row.attempt
        for offset, ns, mode, data in chunks:
            if offset >= self.offset:
                self.offset = offset + 1
                yield FollowedChunk(
                    offset,
                    row.attempt,
                    mode,
                    ns_tuple(ns),
                    data,
                    row.node,
                    state == LANDED,
                    state == SUPERSEDED,
                    row.at,
                )

    def pause(self, longest: float) -> float:
        """How long to wait before the next look."""
        pause, self._pause = min(self._pause, longest), self._pause * 1.5
        if self.wait is not None:
            pause = max(0.0, min(pause, self._news_at + self.wait - time.monotonic()))
        return pause

    def end(self, opened: Opened) -> FollowedChunk:
        """The last chunk: how the thread stands, and what it asks."""
        assert self.page is not None
        data: dict[str, Any] = {**self.page.standing, "interrupts": []}
        if data["status"] == "interrupted":
            data["interrupts"] = open_questions(opened)
        attempt = self.attempt if self.page.is_at_rest else self.page.thread.crashes + 1
        return FollowedChunk(self.offset, attempt, "status", (), data, "", True, False, self.page.thread.updated_at)


def open_questions(opened: Opened) -> list[Interrupt]:
    """The questions of a thread's newest checkpoint that have no answer yet."""
    saved = opened.saved[0]
    asked: dict[str, Interrupt] = {}
    answered: set[str] = set()
    for write in saved.writes if saved is not None else ():
        if write.channel == INTERRUPT:
            asked |= {question.id: question for question in write.value}
        elif write.channel == RESUME:
            answered |= write.value.keys()
    return [question for id, question in asked.items() if id not in answered]
