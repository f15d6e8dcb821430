"""The saver contract, first tier: what any saver offers, and the shapes it gives and takes."""

from __future__ import annotations

import copy
import time
import uuid
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Generic, Literal, NamedTuple, TypeVar, cast

from typing_extensions import TypedDict

from pregel.checkpoint.records import CONTROL
from pregel.checkpoint.serde.base import SerializerProtocol, UntypedSerializerProtocol, maybe_add_typed_methods
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.serde.types import ChannelProtocol
from pregel.config import RunnableConfig
from pregel.errors import EmptyChannelError, NotBuiltError

V = TypeVar("V", int, float, str)
ChannelVersions = dict[str, str | int | float]
PendingWrite = tuple[str, str, Any]
LATEST_VERSION = 2

WRITES_IDX_MAP = {"__scheduled__": -2, **CONTROL}
"""Row index of the control channels: the four of the reference, and those that only this engine writes."""

EXCLUDED_METADATA_KEYS = {
    "checkpoint_id",
    "checkpoint_map",
    "checkpoint_ns",
    "langgraph_checkpoint_ns",
    "langgraph_node",
    "langgraph_path",
    "langgraph_step",
    "langgraph_triggers",
    "thread_id",
}

__all__ = [
    "BaseCheckpointSaver",
    "Checkpoint",
    "CheckpointMetadata",
    "CheckpointTuple",
    "DeltaChannelHistory",
    "EmptyChannelError",
    "V",
    "copy_checkpoint",
    "create_checkpoint",
    "empty_checkpoint",
    "get_checkpoint_id",
    "get_checkpoint_metadata",
    "get_serializable_checkpoint_metadata",
    "writes_sort_key",
]


class CheckpointMetadata(TypedDict, total=False):
    """Where a checkpoint comes from, and what the caller added."""

    source: Literal["input", "loop", "update", "fork"]
    step: int
    parents: dict[str, str]
    run_id: str
    counters_since_delta_snapshot: dict[str, tuple[int, int]]


class Checkpoint(TypedDict):
    """The state of one namespace of a thread at one point."""

    v: int
    id: str
    ts: str
    channel_values: dict[str, Any]
    channel_versions: ChannelVersions
    versions_seen: dict[str, ChannelVersions]
    updated_channels: list[str] | None


class CheckpointTuple(NamedTuple):
    """A checkpoint with its coordinates, its parent's, and the writes that wait on it."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    parent_config: RunnableConfig | None = None
    pending_writes: list[PendingWrite] | None = None


class DeltaChannelHistory(TypedDict, total=False):
    """The writes to a channel since the nearest stored value, oldest first, and that value."""

    writes: list[PendingWrite]
    seed: Any


class BaseCheckpointSaver(Generic[V]):
    """What every saver offers. A saver of your own overrides the methods that raise here.

    Anything with these methods works with the engine; savers that also have `append` (see `JournalSaver`) keep two
    runs from mixing in one thread and store one transaction per superstep.
    """

    serde: SerializerProtocol

    def __init__(self, *, serde: SerializerProtocol | UntypedSerializerProtocol | None = None) -> None:
        self.serde = JsonPlusSerializer() if serde is None else maybe_add_typed_methods(serde)

    @property
    def config_specs(self) -> list[Any]:
        """Config keys this saver reads beyond the coordinates."""
        return []

    def get(self, config: RunnableConfig) -> Checkpoint | None:
        """The checkpoint that `config` names, or the newest."""
        found = self.get_tuple(config)
        return None if found is None else found.checkpoint

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The same with metadata, parent and pending writes."""
        raise _not_built(self, "get_tuple")

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first: of all threads without a config, of all namespaces without checkpoint_ns."""
        raise _not_built(self, "list")

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint as child of the one that `config` names. The config of the new one comes back."""
        raise _not_built(self, "put")

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote, under the checkpoint it started from. The same write again changes nothing."""
        raise _not_built(self, "put_writes")

    def delete_thread(self, thread_id: str) -> None:
        """Remove a thread with everything in it."""
        raise _not_built(self, "delete_thread")

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Remove the checkpoints that these runs made."""
        raise _not_built(self, "delete_for_runs")

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with its history."""
        raise _not_built(self, "copy_thread")

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drop history: all but the newest checkpoints, or everything (``delete``)."""
        raise _not_built(self, "prune")

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """For each channel the writes since the nearest ancestor that holds its value, and that value."""
        walk = _HistoryWalk(channels)
        at = self.get_tuple(config)
        while (parent := walk.parent_of(at)) is not None:
            at = self.get_tuple(parent)
            walk.visit(at)
        return walk.found()

    async def aget(self, config: RunnableConfig) -> Checkpoint | None:
        """Async twin of `get`."""
        found = await self.aget_tuple(config)
        return None if found is None else found.checkpoint

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Async twin of `get_tuple`."""
        raise _not_built(self, "aget_tuple")

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Async twin of `list`."""
        raise _not_built(self, "alist")
        yield  # makes this an async generator

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Async twin of `put`."""
        raise _not_built(self, "aput")

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Async twin of `put_writes`."""
        raise _not_built(self, "aput_writes")

    async def adelete_thread(self, thread_id: str) -> None:
        """Async twin of `delete_thread`."""
        raise _not_built(self, "adelete_thread")

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Async twin of `delete_for_runs`."""
        raise _not_built(self, "adelete_for_runs")

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Async twin of `copy_thread`."""
        raise _not_built(self, "acopy_thread")

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Async twin of `prune`."""
        raise _not_built(self, "aprune")

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Async twin of `get_delta_channel_history`."""
        walk = _HistoryWalk(channels)
        at = await self.aget_tuple(config)
        while (parent := walk.parent_of(at)) is not None:
            at = await self.aget_tuple(parent)
            walk.visit(at)
        return walk.found()

    def get_next_version(self, current: V | None, channel: None = None) -> V:
        """The version after `current`; integers from 1 by default."""
        if isinstance(current, str):
            raise NotBuiltError(f"{type(self).__name__} has text versions but no get_next_version.")
        return cast(Any, 1 if current is None else current + 1)  # type: ignore[no-any-return]

    def with_allowlist(self, extra_allowlist: Collection[Any]) -> BaseCheckpointSaver[V]:
        """A saver on the same storage that also loads these types; itself when nothing changes."""
        widen = getattr(self.serde, "with_allowlist", None)
        if widen is None:
            return self
        serde = widen(extra_allowlist)
        if serde is self.serde:
            return self
        clone = copy.copy(self)
        clone.serde = serde
        return clone


class _HistoryWalk:
    """Collects channel writes over ancestors, from the nearest to the farthest."""

    def __init__(self, channels: Sequence[str]) -> None:
        self.open = set(channels)
        self.writes: dict[str, list[PendingWrite]] = {channel: [] for channel in channels}
        self.seeds: dict[str, Any] = {}
        self.met: set[str | None] = set()

    def parent_of(self, at: CheckpointTuple | None) -> RunnableConfig | None:
        """Where the walk goes on; None at its end, also where ancestors that were put by hand come round again."""
        if at is None or not self.open or at.parent_config is None:
            return None
        parent = get_checkpoint_id(at.parent_config)
        if parent in self.met:
            return None
        self.met.add(parent)
        return at.parent_config

    def visit(self, at: CheckpointTuple | None) -> None:
        if at is None:
            return
        for channel in list(self.open):
            self.writes[channel][:0] = [write for write in at.pending_writes or () if write[1] == channel]
            if channel in at.checkpoint["channel_values"]:
                self.seeds[channel] = at.checkpoint["channel_values"][channel]
                self.open.discard(channel)

    def found(self) -> dict[str, DeltaChannelHistory]:
        return {
            channel: DeltaChannelHistory(writes=writes, seed=self.seeds[channel])
            if channel in self.seeds
            else DeltaChannelHistory(writes=writes)
            for channel, writes in self.writes.items()
        }


# -- which tier --------------------------------------------------------------------------------------------------------

_RUN_ON = ("put", "put_writes", "get_tuple", "list", "get_next_version")


@lru_cache(256)
def is_journal(kind: type[object]) -> bool:
    """Whether a class of savers takes appends, and none of the verbs that they stand for was overridden after that."""
    append = depth_of(kind, "append")
    if append is None:
        return False
    depths = [depth_of(kind, verb) for name in _RUN_ON for verb in (name, f"a{name}")]
    return all(depth is None or depth >= append for depth in depths)


def depth_of(kind: type[object], name: str) -> int | None:
    """How far up the line of classes a method is defined; None when only the contract declares it."""
    for depth, cls in enumerate(kind.__mro__):
        if name in vars(cls):
            return None if cls is BaseCheckpointSaver else depth
    return None


def _not_built(saver: object, verb: str) -> NotBuiltError:
    return NotBuiltError(f"{type(saver).__name__} has no {verb}.", fix="Use another saver, or define the method.")


# -- helpers of the contract -------------------------------------------------------------------------------------------


def get_checkpoint_id(config: RunnableConfig) -> str | None:
    """The checkpoint id that a config names, if any; an empty one names none."""
    return cast("str | None", config["configurable"].get("checkpoint_id") or None)


def new_id(step: int, now: int | None = None) -> str:
    """A uuid6 with the step as its clock sequence. `now`: unix time in 100 ns ticks."""
    ticks = (time.time_ns() // 100 if now is None else now) + 0x01B21DD213814000
    high = ticks >> 12
    return str(
        uuid.UUID(
            fields=(
                high >> 16 & 0xFFFFFFFF,
                high & 0xFFFF,
                0x6000 | ticks & 0xFFF,
                0x80 | step >> 8 & 0x3F,
                step & 0xFF,
                uuid.getnode(),
            )
        )
    )


def empty_checkpoint() -> Checkpoint:
    """A checkpoint with nothing in it."""
    return Checkpoint(
        v=LATEST_VERSION,
        id=new_id(-2),
        ts=datetime.now(UTC).isoformat(),
        channel_values={},
        channel_versions={},
        versions_seen={},
        updated_channels=None,
    )


def copy_checkpoint(checkpoint: Checkpoint) -> Checkpoint:
    """A copy whose dicts can be changed; values are shared."""
    return {
        **checkpoint,
        "channel_values": checkpoint["channel_values"].copy(),
        "channel_versions": checkpoint["channel_versions"].copy(),
        "versions_seen": {node: seen.copy() for node, seen in checkpoint["versions_seen"].items()},
    }


def create_checkpoint(
    checkpoint: Checkpoint, channels: Mapping[str, ChannelProtocol] | None, step: int, *, id: str | None = None
) -> Checkpoint:
    """The next checkpoint: new id and time, the values of `channels` (those of `checkpoint` when None)."""
    values = checkpoint["channel_values"]
    if channels is not None:
        values = {}
        for name in checkpoint["channel_versions"].keys() & channels.keys():
            try:
                values[name] = channels[name].checkpoint()
            except EmptyChannelError:
                continue
    return Checkpoint(
        v=LATEST_VERSION,
        id=id or new_id(step),
        ts=datetime.now(UTC).isoformat(),
        channel_values=values,
        channel_versions=checkpoint["channel_versions"],
        versions_seen=checkpoint["versions_seen"],
        updated_channels=None,
    )


def get_checkpoint_metadata(config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
    """The metadata with the plain values of the config's metadata and configurable added, without NUL characters."""
    merged: dict[str, Any] = {
        key: value.replace("\0", "") if isinstance(value, str) else value for key, value in metadata.items()
    }
    for source in (config.get("metadata", {}), config.get("configurable", {})):
        for key, value in source.items():
            if key in merged or key in EXCLUDED_METADATA_KEYS or key.startswith("__"):
                continue
            if isinstance(value, str):
                merged[key] = value.replace("\0", "")
            elif isinstance(value, (int, bool, float)):
                merged[key] = value
    return cast(CheckpointMetadata, merged)


def get_serializable_checkpoint_metadata(config: RunnableConfig, metadata: CheckpointMetadata) -> CheckpointMetadata:
    """The same without ``writes``."""
    merged = get_checkpoint_metadata(config, metadata)
    merged.pop("writes", None)  # type: ignore[typeddict-item]
    return merged


def writes_sort_key(task_path: str, task_id: str = "", idx: int = 0) -> tuple[str, str, int]:
    """What pending writes are ordered by."""
    return task_path, task_id, idx
