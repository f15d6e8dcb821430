"""The ledger over a saver that has only the reference's verbs: what the engine says, and what such a saver shows.

It keeps the records of an append, whole checkpoints with versions of the saver's own kind, until the append is sent.
A control row that the reference does not know gets a task id of its own: such a saver numbers it among its task's
writes, where it would take the place of one, and keeps the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, cast

from pregel.channels import MISSING
from pregel.channels.base import copy_container
from pregel.channels.batches import Batched
from pregel.channels.growth import Log
from pregel.checkpoint.base import Checkpoint, CheckpointTuple
from pregel.checkpoint.decode import iso
from pregel.checkpoint.keys import counter_of, hash16, id_text, task_text, version_text
from pregel.checkpoint.records import (
    ATTEMPT,
    CONTROL,
    ERROR,
    ERROR_SOURCE,
    INTERRUPT,
    REJECTED,
    RESUME,
    Append,
    Opened,
    Save,
    Saved,
    TaskWrites,
    Write,
)
from pregel.errors import InvalidInputError, told

Version = Any  # of the saver's kind: int, float or str

VERSION = 4  # of the checkpoint format, as the engine writes it
EXTRA = "pregel"  # key of a checkpoint for what the reference does not have
OURS = frozenset((ATTEMPT, ERROR_SOURCE, REJECTED))
SHOWN = "__shown__"  # leads writes that an update left for display; its value is the checkpoint that holds them
STEPS = 1000  # of a saver's versions that one superstep of ours may be away


@dataclass(slots=True)
class Branch:
    """The checkpoint that a run stands on in one namespace, in the saver's words."""

    values: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)
    seen: dict[str, dict[str, Version]] = field(default_factory=dict)
    controls: dict[tuple[str, str], int] = field(default_factory=dict)  # rows of ours by task and channel


@dataclass(slots=True)
class TaskRecord:
    ns: str
    checkpoint: str
    task: str
    path: str
    writes: list[tuple[str, Any]]


@dataclass(slots=True)
class PutRecord:
    ns: str
    parent: str | None
    checkpoint: Checkpoint
    metadata: Any
    new_versions: dict[str, Version]


class Apart(NamedTuple):
    """A control row of ours: whose it is, which of several, what it says. The last one counts."""

    task: str
    number: int
    value: Any

    @property
    def told(self) -> dict[str, Any]:
        """As it is stored."""
        return self._asdict()


class Book:
    """A run's ledger over such a saver: it keeps records until their append is sent. See `checkpoint.ledger`."""

    takes_lone: ClassVar[bool] = False

    def __init__(self, next_version: Callable[[Version | None], Version]) -> None:
        self._next_version = next_version
        self._branches: dict[str, Branch] = {}
        self._written: dict[tuple[str, str], list[tuple[str, Any]]] = {}  # of a task under a checkpoint, since a load
        self._controls: dict[tuple[str, str, str], int] = {}  # how many rows of ours, by checkpoint, task, channel
        self._waiting: dict[bytes, tuple[list[TaskRecord], list[PutRecord]]] = {}

    def open(self, opened: Opened) -> None:
        """Go on from what was loaded."""
        for saved in opened.saved:
            if saved is not None:
                self._branches[saved.ns] = saved.manifest
                self._controls.update(((saved.id, *key), count) for key, count in saved.manifest.controls.items())
                for task in {write.task for write in saved.writes}:
                    self._written[saved.id, task] = [
                        (write.channel, write.value) for write in saved.writes if write.task == task and write.idx >= 0
                    ]

    def missing(self, writes: Iterable[TaskWrites] = (), saves: Iterable[Save] = ()) -> set[str]:
        """No names: they are texts here."""
        return set()

    def take(self, mark: bytes) -> tuple[list[TaskRecord], list[PutRecord]]:
        """The records of an append."""
        return self._waiting.pop(mark, ([], []))

    def add_writes(self, record: TaskWrites, append: Append) -> None:
        """Add what one task wrote."""
        task = task_text(record.task)
        news: list[tuple[str, Any]] = [
            (channel, told(value) if channel == ERROR and isinstance(value, BaseException) else copy_container(value))
            for channel, value in record.writes
        ]
        writes, _ = self._waiting.setdefault(append.mark, ([], []))
        if any(channel in OURS for channel, _ in news):
            writes += [self._apart(record, task, *write) for write in news if write[0] in OURS]
            news = [write for write in news if write[0] not in OURS]
            if not news:
                return
        if record.child is not None:
            if self._written.get((record.checkpoint, task)):
                return  # what the task itself wrote stays
            news.insert(0, (SHOWN, record.child))
        if record.first:  # a saver numbers the writes of a call from zero, so it is given the earlier ones again
            earlier = self._written.setdefault((record.checkpoint, task), [])
            earlier += news
            news = list(earlier)
        writes.append(TaskRecord(record.ns, record.checkpoint, task, record.path, news))

    def _apart(self, record: TaskWrites, task: str, channel: str, value: Any) -> TaskRecord:
        place = record.checkpoint, task, channel
        number = self._controls[place] = self._controls.get(place, 0) + 1
        row = id_text(hash16((*place[1:], str(number))))
        return TaskRecord(record.ns, record.checkpoint, row, record.path, [(channel, Apart(task, number, value).told)])

    def add_save(self, save: Save, append: Append, at: int, now: float | None = None) -> None:
        """Add a checkpoint, whole."""
        before = self._branches.get(save.ns) or Branch()
        branch = Branch(dict(before.values), dict(before.versions), dict(before.seen))
        fresh = self._versions(before.versions, {counter for counter, _ in save.changed.values()})
        new: dict[str, Version] = {}
        for channel, (counter, value) in save.changed.items():
            new[channel] = branch.versions[channel] = fresh[counter]
            branch.values.pop(channel, None)
            if value is not MISSING:
                branch.values[channel] = value.value if type(value) in (Log, Batched) else value
        for node, counters in save.seen.items():
            branch.seen[node] = _seen_texts(node, counters, before, branch)
        self._branches[save.ns] = branch
        checkpoint: dict[str, Any] = {
            "v": VERSION,
            "id": save.id,
            "ts": iso(time.time() if now is None else now),
            "channel_values": dict(branch.values),
            "channel_versions": dict(branch.versions),
            "versions_seen": {node: dict(seen) for node, seen in branch.seen.items()},
            "updated_channels": None if save.updated is None else sorted(save.updated),
            EXTRA: {"lineage": bytes(save.lineage).hex(), "applied": list(save.applied)},
        }
        metadata = {"source": save.source, "step": save.step, "parents": {}, **save.metadata}
        _, puts = self._waiting.setdefault(append.mark, ([], []))
        puts.append(PutRecord(save.ns, save.parent, cast(Checkpoint, checkpoint), metadata, new))

    def _versions(self, versions: Mapping[str, Version], counters: set[int]) -> dict[int, Version]:
        """A version of the saver's own kind for each new counter, the earliest one first."""
        version = max(versions.values(), key=_order, default=None)
        found: dict[int, Version] = {}
        for counter in sorted(counters):
            for _ in range(STEPS):
                version = self._next_version(version)
                if counter_of(version) >= counter:
                    break
            else:
                raise InvalidInputError(
                    f"get_next_version gave {version!r}, which does not count up to {counter}.",
                    fix="Count in the integer part of a version: 1, 2, 3, ...",
                )
            found[counter] = version
        return found


def _order(version: Version) -> tuple[int, Version]:
    return counter_of(version), version


def _seen_texts(node: str, counters: Mapping[str, int], before: Branch, after: Branch) -> dict[str, Version]:
    """What a node has seen, in versions: of the channel as it was or is, or as this node had seen it."""
    if node == INTERRUPT and counters.keys() == {""}:
        upto = counters[""]
        counters = {channel: min(counter_of(version), upto) for channel, version in after.versions.items()}
    known = after.seen.get(node, {})
    texts: dict[str, Version] = {}
    for channel, counter in counters.items():
        for version in (before.versions.get(channel), after.versions.get(channel), known.get(channel)):
            if version is not None and counter_of(version) == counter:
                texts[channel] = version
                break
        else:
            sample = next(iter(after.versions.values()), counter)
            texts[channel] = version_text(counter) if isinstance(sample, str) else type(sample)(counter)
    return texts


def saved_of(found: CheckpointTuple) -> Saved:
    """A checkpoint of such a saver as the engine knows it."""
    checkpoint = cast("dict[str, Any]", found.checkpoint)
    metadata: dict[str, Any] = {**(found.metadata or {})}
    versions, values = checkpoint["channel_versions"], checkpoint["channel_values"]
    seen = {node: dict(of_node) for node, of_node in checkpoint["versions_seen"].items()}
    extra = checkpoint.get(EXTRA) or {}
    parent = (found.parent_config or {}).get("configurable", {}).get("checkpoint_id")
    return Saved(
        ns=str(found.config["configurable"].get("checkpoint_ns") or ""),
        id=checkpoint["id"],
        parent=parent or None,
        step=int(metadata.get("step", -1)),
        source=metadata.get("source", "loop"),
        metadata=metadata,
        created_at=checkpoint.get("ts", ""),
        lineage=bytes.fromhex(extra["lineage"]) if "lineage" in extra else bytes(16),
        values=dict(values),
        counters={channel: counter_of(version) for channel, version in versions.items()},
        ats=dict.fromkeys(versions, 0),
        seen={node: {c: counter_of(version) for c, version in of_node.items()} for node, of_node in seen.items()},
        updated=checkpoint.get("updated_channels"),
        applied=list(extra.get("applied", ())),
        writes=_writes_of(found),
        manifest=Branch(
            dict(values),
            dict(versions),
            seen,
            {key: row.number for key, row in _rows_apart(found.pending_writes).items()},
        ),
    )


def _rows_apart(pending: Iterable[Any] | None) -> dict[tuple[str, str], Apart]:
    """The control rows of ours that count, by task and channel."""
    rows: dict[tuple[str, str], Apart] = {}
    for _, channel, value in pending or ():
        if channel in OURS and isinstance(value, dict):
            row = Apart(**value)
            key = row.task, channel
            rows[key] = max(rows.get(key, row), row, key=lambda one: one.number)
    return rows


def _writes_of(found: CheckpointTuple) -> list[Write]:
    pending = found.pending_writes or ()
    shown = {task: str(value) for task, channel, value in pending if channel == SHOWN}
    counts: dict[str, int] = {}
    writes = [Write(task, CONTROL[of], of, row.value, "", "") for (task, of), row in _rows_apart(pending).items()]
    for task, channel, value in pending:
        if channel == SHOWN or (channel in OURS and isinstance(value, dict)):
            continue
        index = CONTROL.get(channel)
        if index is None:
            index = counts[task] = counts.get(task, -1) + 1
        if channel == RESUME and not isinstance(value, dict):
            continue  # an answer of the reference's engine, which does not say to which question
        writes.append(Write(task, index, channel, value, "", "", shown.get(task)))
    return writes
