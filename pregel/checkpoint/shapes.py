"""A `Saved` in the shape of the first tier: texts for versions, dicts for checkpoints, tuples for writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, cast

from pregel.channels.batches import Unfolded
from pregel.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
)
from pregel.checkpoint.keys import version_text
from pregel.checkpoint.records import RESUME, Saved, Write
from pregel.config import RunnableConfig

VERSION = 4  # of the checkpoint format, as the engine writes it

_INTERRUPT_ID = re.compile("[0-9a-f]{32}").fullmatch


def coordinates(thread: str, ns: str, checkpoint: str) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ns, "checkpoint_id": checkpoint}}


def tuple_of(thread: str, saved: Saved) -> CheckpointTuple:
    """The checkpoint as `get_tuple` and `list` give it."""
    return CheckpointTuple(
        coordinates(thread, saved.ns, saved.id),
        checkpoint_of(saved),
        cast(CheckpointMetadata, saved.metadata),
        None if saved.parent is None else coordinates(thread, saved.ns, saved.parent),
        [_pending(write) for write in saved.writes],
    )


def checkpoint_of(saved: Saved) -> Checkpoint:
    """The checkpoint alone. What a foreign engine put comes back word for word."""
    if saved.foreign is not None:
        return cast(Checkpoint, {**saved.foreign, "channel_values": plain_values(saved)})
    return Checkpoint(
        v=VERSION,
        id=saved.id,
        ts=saved.created_at,
        channel_values=plain_values(saved),
        channel_versions=versions_of(saved),
        versions_seen={node: _seen(saved, seen) for node, seen in saved.seen.items()},
        updated_channels=None if saved.updated is None else sorted(saved.updated),
    )


def plain_values(saved: Saved) -> dict[str, Any]:
    """The values that need no reducer to be read; `get_delta_channel_history` has the others."""
    if any(type(value) is Unfolded for value in saved.values.values()):
        return {name: value for name, value in saved.values.items() if type(value) is not Unfolded}
    return saved.values


def history_in(saved: Saved | None, channels: Sequence[str]) -> tuple[dict[str, DeltaChannelHistory], list[str]]:
    """What a checkpoint of ours says of how channels came about, and the channels that have to be looked for above it.

    The log has it whatever the ancestors' other children did. It does not know which task made a write.
    """
    found: dict[str, DeltaChannelHistory] = {}
    rest: list[str] = []
    for channel in channels:
        if saved is None or saved.foreign is not None or channel not in saved.counters:
            rest.append(channel)
        elif channel not in saved.values:
            found[channel] = DeltaChannelHistory(writes=[])
        elif type(value := saved.values[channel]) is Unfolded:
            writes: list[PendingWrite] = [("", channel, write) for batch in value.batches for write in batch]
            found[channel] = DeltaChannelHistory(writes=writes, seed=value.root)
        else:
            found[channel] = DeltaChannelHistory(writes=[], seed=value)
    return found, rest


def versions_of(saved: Saved) -> ChannelVersions:
    """Channel versions as texts."""
    return {channel: version_text(counter, saved.ats[channel]) for channel, counter in saved.counters.items()}


def _seen(saved: Saved, seen: dict[str, int]) -> ChannelVersions:
    """An older counter than the channel's own has no `at` any more; it still compares as older."""
    if seen.keys() == {""}:
        upto = seen[""]
        seen = {channel: min(counter, upto) for channel, counter in saved.counters.items()}
    return {
        channel: version_text(counter, saved.ats[channel] if saved.counters.get(channel) == counter else 0)
        for channel, counter in seen.items()
    }


def _pending(write: Write) -> PendingWrite:
    value: Any = write.value
    if write.channel == RESUME and write.name and isinstance(value, dict) and all(map(_INTERRUPT_ID, value)):
        value = list(value.values())
    return write.task, write.channel, value
