"""The snapshots of a thread together with those of the subgraphs that ran in it."""

from __future__ import annotations

from typing import Any, Protocol

from pregel.config import RunnableConfig
from pregel.flow import Flow, arun, run
from pregel.types import StateSnapshot


class Kept(Protocol):
    """A compiled graph with a saver."""

    def get_state_history(self, config: RunnableConfig) -> Any: ...

    def aget_state_history(self, config: RunnableConfig) -> Any: ...


def whole_history(app: Kept, config: RunnableConfig) -> list[StateSnapshot]:
    """The history of a thread, then those of the subgraphs that ran in it: `run=` of a drawing with ``xray=True``.

    Each subgraph's run is a read of its own.
    """
    return run(_history_flow(config), lambda place: list(app.get_state_history(place)))


async def awhole_history(app: Kept, config: RunnableConfig) -> list[StateSnapshot]:
    """Like `whole_history`, awaited."""

    async def read(place: RunnableConfig) -> list[StateSnapshot]:
        return [entry async for entry in app.aget_state_history(place)]

    return await arun(_history_flow(config), read)


def _history_flow(config: RunnableConfig) -> Flow[list[StateSnapshot]]:
    entries: list[StateSnapshot] = list((yield config))
    tasks = [task for entry in entries for task in entry.tasks if isinstance(task.state, dict)]
    for place in {task.state["configurable"]["checkpoint_ns"]: task.state for task in tasks}.values():
        entries += yield from _history_flow(place)
    return entries
