"""The state of a graph's threads: read, walked back and changed from outside, by blocking and by awaiting."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from pregel.config import RunnableConfig
from pregel.engine.admin import update_flow
from pregel.engine.authority import ClaimMissed
from pregel.engine.call import Call, require_saver
from pregel.engine.check import checked_updates
from pregel.engine.journal import BlockingJournal
from pregel.engine.look import Look
from pregel.engine.tries import adriven, awaiting_journal, driven, let_go
from pregel.types import StateSnapshot, StateUpdate


class States:
    """The verbs that read and change the state of a thread."""

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """The state of a thread, or of one of its checkpoints when the config has a ``checkpoint_id``.

        An unknown thread has an empty state. NoCheckpointerError without a saver.
        """
        return Look(self, config).state(config, subgraphs=subgraphs)  # type: ignore[arg-type]  # it is a Pregel

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Like `get_state`, awaited."""
        return await Look(self, config).astate(config, subgraphs=subgraphs)  # type: ignore[arg-type]

    def get_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[StateSnapshot]:
        """The checkpoints of a thread, newest first, over all branches; just the one that the config addresses, if any.

        `filter` compares metadata, `before` is a config whose checkpoint comes after those returned.
        """
        look = Look(self, config)  # type: ignore[arg-type]
        pages = look.history(filter, before, limit)
        while (part := pages.next()) is not None:
            for saved in look.entries(pages, part):
                yield look.shown(saved)

    async def aget_state_history(
        self,
        config: RunnableConfig,
        *,
        filter: Mapping[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[StateSnapshot]:
        """Like `get_state_history`, awaited."""
        look = Look(self, config)  # type: ignore[arg-type]
        pages = look.history(filter, before, limit)
        while (part := pages.next()) is not None:
            for saved in await look.aentries(pages, part):
                yield look.shown(saved)

    def update_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """The config of a new checkpoint, made as if `as_node` (inferred when it is clear) had returned `values`."""
        return self.bulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    async def aupdate_state(
        self, config: RunnableConfig, values: Any, as_node: str | None = None, task_id: str | None = None
    ) -> RunnableConfig:
        """Like `update_state`, awaited."""
        return await self.abulk_update_state(config, [[StateUpdate(values, as_node, task_id)]])

    def bulk_update_state(self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]) -> RunnableConfig:
        """The config of the last of several supersteps of updates, one checkpoint each, stored together."""
        checked = checked_updates(supersteps)
        call = self._addressed(config)
        while True:
            frame = call.reading(BlockingJournal, changes=True)
            try:
                result = driven(update_flow(frame, call.checkpoint, checked), frame)
            except ClaimMissed as error:
                call.contend(error, frame.run.journal)
                continue
            if result.error is not None:
                raise let_go(result)
            config_of_last: RunnableConfig = result.values
            return config_of_last

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Like `bulk_update_state`, awaited."""
        checked = checked_updates(supersteps)
        call = self._addressed(config)
        while True:
            frame = call.reading(awaiting_journal(), changes=True)
            try:
                result = await adriven(update_flow(frame, call.checkpoint, checked), frame)
            except ClaimMissed as error:
                await call.acontend(error, frame.run.journal)
                continue
            if result.error is not None:
                raise let_go(result)
            config_of_last: RunnableConfig = result.values
            return config_of_last

    def _addressed(self, config: RunnableConfig) -> Call:
        """A call about a thread, which runs no node."""
        require_saver(self)  # type: ignore[arg-type]  # it is a Pregel
        call = Call(self, None, config)  # type: ignore[arg-type]
        call.nested = None
        return call
