"""Savers as others write them for the reference: five verbs, dicts in, tuples out."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pregel.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from pregel.config import RunnableConfig

Key = tuple[str, str, str]  # thread, namespace, checkpoint


class FiveVerbs(BaseCheckpointSaver[int]):
    """Everything in two dicts, as bytes."""

    indexes: Mapping[str, int] = WRITES_IDX_MAP

    def __init__(self) -> None:
        super().__init__()
        self.checkpoints: dict[Key, tuple[Any, Any, str | None]] = {}
        self.writes: dict[Key, dict[tuple[str, int], tuple[str, str, Any]]] = {}

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        key = self._key(config)
        if not key[2]:
            key = max((one for one in self.checkpoints if one[:2] == key[:2]), default=key)
        return self._tuple(key) if key in self.checkpoints else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        place = {} if config is None else config["configurable"]
        keys = sorted(self.checkpoints, key=lambda key: key[2], reverse=True)
        for key in keys:
            wanted = (place.get("thread_id"), place.get("checkpoint_ns"), place.get("checkpoint_id"))
            if any(want is not None and want != have for want, have in zip(wanted, key, strict=True)):
                continue
            if before is not None and key[2] >= str(get_checkpoint_id(before)):
                continue
            found = self._tuple(key)
            if any(found.metadata.get(name) != value for name, value in (filter or {}).items()):
                continue
            if limit is not None:
                if limit <= 0:
                    return
                limit -= 1
            yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread, ns, parent = self._key(config)
        stored = self.serde.dumps_typed(checkpoint), self.serde.dumps_typed(get_checkpoint_metadata(config, metadata))
        self.checkpoints[thread, ns, checkpoint["id"]] = (*stored, parent or None)
        return self._config((thread, ns, checkpoint["id"]))

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        rows = self.writes.setdefault(self._key(config), {})
        for position, (channel, value) in enumerate(writes):
            where = task_id, self.indexes.get(channel, position)
            if where[1] < 0 or where not in rows:
                rows[where] = task_path, channel, self.serde.dumps_typed(value)

    def delete_thread(self, thread_id: str) -> None:
        for table in (self.checkpoints, self.writes):
            for key in [key for key in table if key[0] == thread_id]:
                del table[key]

    def _tuple(self, key: Key) -> CheckpointTuple:
        checkpoint, metadata, parent = self.checkpoints[key]
        rows = sorted(self.writes.get(key, {}).items(), key=lambda row: (row[1][0], row[0]))
        return CheckpointTuple(
            self._config(key),
            self.serde.loads_typed(checkpoint),
            self.serde.loads_typed(metadata),
            self._config((*key[:2], parent)) if parent else None,
            [(task, channel, self.serde.loads_typed(value)) for (task, _), (_, channel, value) in rows],
        )

    @staticmethod
    def _key(config: RunnableConfig) -> Key:
        place = config["configurable"]
        return str(place["thread_id"]), place.get("checkpoint_ns", ""), get_checkpoint_id(config) or ""

    @staticmethod
    def _config(key: Key) -> RunnableConfig:
        return {"configurable": dict(zip(("thread_id", "checkpoint_ns", "checkpoint_id"), key, strict=True))}


class OnlyTheirs(FiveVerbs):
    """Knows the control channels of the reference and no other."""

    indexes = MappingProxyType({"__error__": -1, "__scheduled__": -2, "__interrupt__": -3, "__resume__": -4})


class TextVersions(FiveVerbs):
    """Versions as the reference's bundled savers make them: a counter and chance."""

    def get_next_version(self, current: Any, channel: None = None) -> Any:
        counter = 0 if current is None else int(str(current).split(".")[0])
        return f"{counter + 1:032}.{random.random():016}"


class ByVersion(TextVersions):
    """Values apart from their checkpoint, each stored once under its version; unknown keys are dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.blobs: dict[tuple[str, str, str, Any], Any] = {}

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread, ns, _ = self._key(config)
        values = checkpoint["channel_values"]
        for channel, version in new_versions.items():
            blob = self.serde.dumps_typed(values[channel]) if channel in values else ("empty", b"")
            self.blobs.setdefault((thread, ns, channel, version), blob)
        known: Any = {key: value for key, value in checkpoint.items() if key in Checkpoint.__annotations__}
        known["channel_values"] = {}
        return super().put(config, known, metadata, new_versions)

    def _tuple(self, key: Key) -> CheckpointTuple:
        found = super()._tuple(key)
        for channel, version in found.checkpoint["channel_versions"].items():
            blob = self.blobs.get((*key[:2], channel, version), ("empty", b""))
            if blob[0] != "empty":
                found.checkpoint["channel_values"][channel] = self.serde.loads_typed(blob)
        return found


class _AsTheyAre:
    """A serialiser that stores nothing but the object itself."""

    def dumps_typed(self, value: Any) -> Any:
        return value

    def loads_typed(self, value: Any) -> Any:
        return value


class Aliasing(FiveVerbs):
    """Keeps the caller's objects, and hands them out again."""

    def __init__(self) -> None:
        super().__init__()
        self.serde = _AsTheyAre()


class AsyncOnly(BaseCheckpointSaver[int]):
    """The five verbs, awaited."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = FiveVerbs()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return self.inner.get_tuple(config)

    async def alist(self, config: RunnableConfig | None, **options: Any) -> AsyncIterator[CheckpointTuple]:
        for found in self.inner.list(config, **options):
            yield found

    async def aput(self, *args: Any) -> RunnableConfig:
        return self.inner.put(*args)

    async def aput_writes(self, *args: Any) -> None:
        self.inner.put_writes(*args)

    async def adelete_thread(self, thread_id: str) -> None:
        self.inner.delete_thread(thread_id)
