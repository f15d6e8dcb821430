"""The verbs of a graph that follow what the runs of a thread journaled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from pregel.config import RunnableConfig
from pregel.types import FollowedChunk


class Followable:
    """The verbs of a graph that follow a thread."""

    if TYPE_CHECKING:  # a Pregel has it

        @property
        def saver(self) -> Any:
            """The saver of the graph."""

    def follow(self, config: RunnableConfig, *, offset: int = 0, wait: float | None = None) -> Iterator[FollowedChunk]:
        """What the runs of a thread journaled (`journal_stream`), from an offset on, and what they go on to show.

        It ends when the thread has come to rest, or when nothing was new for `wait` seconds (None: never), with a
        chunk of mode ``status``. It reads only: from any process, before, during and after the run. InvalidInputError
        for an offset behind the end of the thread's chunks, ThreadNotFoundError for a thread that is not there.
        """
        from pregel.engine.follow import follow  # few programs follow, and it is loaded with what reads chunks

        return follow(self.saver, config, offset=offset, wait=wait)

    def afollow(
        self, config: RunnableConfig, *, offset: int = 0, wait: float | None = None
    ) -> AsyncIterator[FollowedChunk]:
        """Like `follow`, awaited."""
        from pregel.engine.follow import afollow

        return afollow(self.saver, config, offset=offset, wait=wait)
