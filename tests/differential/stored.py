"""What a saver holds of a thread, without ids, clocks and random parts: the traces of the specification, section 13.

Left out, as pregel stores it otherwise on purpose: versions seen by ``__interrupt__`` (one counter for all channels);
the plain answer beside the task that it was bound to; tuples, which the reference gives back as lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.differential.play import plain

NULL_TASK = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class Stored:
    """A checkpoint in a saver: versions by their counters, pending writes by task in the order of their channels."""

    source: str
    step: int
    values: dict[str, Any]
    versions: dict[str, int]
    seen: dict[str, dict[str, int]]
    updated: Any
    writes: tuple[Any, ...]


def stored(saver: Any, thread_id: str = "t") -> list[Stored]:
    """All checkpoints of a thread, newest first."""
    return [entry(kept) for kept in saver.list({"configurable": {"thread_id": thread_id}})]


def entry(kept: Any) -> Stored:
    """One checkpoint tuple."""
    checkpoint = kept.checkpoint
    tasks: dict[str, list[Any]] = {}
    for task, channel, value in kept.pending_writes or ():
        if (task, channel) == (NULL_TASK, "__resume__"):
            continue
        tasks.setdefault(task, []).append((channel, plain(value)))
    return Stored(
        source=kept.metadata["source"],
        step=kept.metadata["step"],
        values={name: listed(value) for name, value in plain(checkpoint["channel_values"]).items()},
        versions={channel: counter(version) for channel, version in checkpoint["channel_versions"].items()},
        seen={
            node: {channel: counter(version) for channel, version in versions.items()}
            for node, versions in checkpoint["versions_seen"].items()
            if node != "__interrupt__"
        },
        updated=sorted(checkpoint.get("updated_channels") or ()),
        writes=tuple(sorted((sorted(writes, key=repr) for writes in tasks.values()), key=repr)),
    )


def listed(value: Any) -> Any:
    """A tuple as the list that the reference reads back."""
    return list(value) if isinstance(value, tuple) else value


def counter(version: Any) -> int:
    """The integer part of a version."""
    return int(str(version).split(".")[0])
