"""First-tier calls, as a foreign engine makes them."""

from __future__ import annotations

from typing import Any

from pregel.checkpoint.base import BaseCheckpointSaver, CheckpointMetadata, empty_checkpoint
from pregel.config import RunnableConfig
from tests.behaviour.journals import fresh_id

_METADATA: CheckpointMetadata = {"source": "loop", "step": 1}


def config(thread: str = "t", **coordinates: Any) -> RunnableConfig:
    """The config of a thread, a namespace or a checkpoint."""
    return {"configurable": {"thread_id": thread, **coordinates}}


def put(
    saver: BaseCheckpointSaver[Any],
    values: dict[str, Any],
    where: RunnableConfig | None = None,
    *,
    versions: dict[str, Any] | None = None,
    new: dict[str, Any] | None = None,
    metadata: Any = None,
    **fields: Any,
) -> RunnableConfig:
    """`put` as a foreign engine does it."""
    versions = versions or {channel: saver.get_next_version(None, None) for channel in values}
    checkpoint: Any = {
        **empty_checkpoint(),
        "id": fresh_id(),
        "channel_values": values,
        "channel_versions": versions,
        **fields,
    }
    where = where or {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    return saver.put(where, checkpoint, _METADATA if metadata is None else metadata, versions if new is None else new)
