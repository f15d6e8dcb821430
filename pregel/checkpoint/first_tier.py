"""A saver that has only the reference's verbs, as the engine sees it: an append becomes `put_writes` and `put` calls.

1. What a task wrote is stored before the checkpoint that contains it. Each call stands alone: after a crash between two
   of them a finished task is known and its step is open, never the other way round.
2. Nothing guards the thread. Runs of this process are kept apart by a table here; two processes are not, which is
   warned about once. No status is kept, and nothing can be sent again when an answer got lost.
3. What a task wrote is handed over as a copy one level deep, since a node may go on with its own container. State needs
   none: a value that was read from a channel, or given to one, never changes later (rule 1 of `channels.base`).
4. Versions are the saver's own, made by its `get_next_version`; the counters in them are the engine's.
5. What the reference's shapes have no room for stands in the checkpoint under `EXTRA`. A saver that drops unknown keys
   loses stable idempotency keys over a crash, and nothing else.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary, WeakValueDictionary

from pregel import flow as runner
from pregel.channels import MISSING
from pregel.channels.base import copy_container
from pregel.channels.growth import Log
from pregel.checkpoint.base import Checkpoint, CheckpointTuple, depth_of
from pregel.checkpoint.decode import iso
from pregel.checkpoint.keys import counter_of, task_text, version_text
from pregel.checkpoint.records import (
    CONTROL,
    ERROR,
    INTERRUPT,
    RESUME,
    Append,
    Load,
    Opened,
    Owner,
    Page,
    Receipt,
    Save,
    Saved,
    TaskWrites,
    ThreadRow,
    Write,
)
from pregel.config import RunnableConfig
from pregel.errors import AsyncOnlyError, InvalidInputError, NotBuiltError, SerializationError, told
from pregel.flow import Flow
from pregel.warnings import warn_caller

T = TypeVar("T")
Version = Any  # of the saver's kind: int, float or str

VERSION = 4  # of the checkpoint format, as the engine writes it
EXTRA = "pregel"  # key of a checkpoint for what the reference does not have
SHOWN = "__shown__"  # leads writes that an update left for display; its value is the checkpoint that holds them
STEPS = 1000  # of a saver's versions that one superstep of ours may be away


class FirstTier:
    """One run's view of such a saver; it has what the engine asks of a `JournalSaver`."""

    def __init__(self, saver: Any, configurable: Mapping[str, Any]) -> None:
        self.saver = saver
        self.kind: type[object] = type(saver)
        self.place = {key: value for key, value in configurable.items() if not key.startswith(("__", "langgraph_"))}
        self._held = _threads_of(saver)
        self._book = Book(self._next_version)
        self._torn: set[str] = set()  # checkpoints on which a value was refused, and those that hang on them
        self._refused: SerializationError | None = None

    def ledger(self) -> Book:
        """The translator of this run."""
        return self._book

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        """The thread's row and these checkpoints."""
        return runner.run(self._loading(thread, loads), self._perform)

    async def aload(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        """Async twin of `load`."""
        return await runner.arun(self._loading(thread, loads), self._aperform)

    def page(self, thread: str | None, page: Page) -> list[tuple[str, Saved]]:
        """(thread, checkpoint) newest first."""
        return runner.run(self._paging(thread, page), self._perform)

    async def apage(self, thread: str | None, page: Page) -> list[tuple[str, Saved]]:
        """Async twin of `page`."""
        return await runner.arun(self._paging(thread, page), self._aperform)

    def intern(self, texts: Iterable[str]) -> None:
        """Nothing: names are texts here."""

    async def aintern(self, texts: Iterable[str]) -> None:
        """Nothing: names are texts here."""

    def append(self, append: Append) -> Receipt:
        """Store what the book holds for this append, call by call."""
        return runner.run(self._appending(append), self._perform)

    async def aappend(self, append: Append) -> Receipt:
        """Async twin of `append`."""
        return await runner.arun(self._appending(append), self._aperform)

    # -- flows -------------------------------------------------------------------------------------------------------

    def _loading(self, thread: str, loads: Sequence[Load]) -> Flow[Opened]:
        row = self._held.row(thread)
        opened = Opened(row, [], {})
        for load in loads:
            newest = yield _Call("get_tuple", (self._config(thread, load.ns),))
            if newest is not None:
                opened.heads[load.ns] = newest.checkpoint["id"]
                row.last_id = max(row.last_id, newest.checkpoint["id"])
            found = newest
            if load.checkpoint is not None:
                found = yield _Call("get_tuple", (self._config(thread, load.ns, load.checkpoint),))
            elif load.before is not None:
                before = self._config(thread, load.ns, load.before)
                older = yield _Call("list", (self._config(thread, load.ns),), {"before": before, "limit": 1})
                found = older[0] if older else None
            opened.saved.append(None if found is None else saved_of(found))
        return opened

    def _paging(self, thread: str | None, page: Page) -> Flow[list[tuple[str, Saved]]]:
        config = None if thread is None else self._config(thread, page.ns)
        options: dict[str, Any] = {"limit": page.limit, "filter": dict(page.filter) if page.filter else None}
        if page.before is not None:
            options["before"] = self._config(thread or "", page.ns, page.before)
        found = yield _Call("list", (config,), options)
        return [(str(entry.config["configurable"]["thread_id"]), saved_of(entry)) for entry in found]

    def _appending(self, append: Append) -> Flow[Receipt]:
        held = self._held.enter(append)
        if held is None:
            return Receipt(False, self._held.row(append.thread))
        writes, puts = self._book.take(append.mark)
        coming = {put.checkpoint["id"] for put in puts}
        yield from self._put_all(append.thread, [one for one in writes if one.checkpoint not in coming])
        for put in puts:
            if put.parent in self._torn:
                self._torn.add(put.checkpoint["id"])
                continue
            config = self._config(append.thread, put.ns, put.parent)
            yield _Call("put", (config, put.checkpoint, put.metadata, put.new_versions))
            yield from self._put_all(append.thread, [one for one in writes if one.checkpoint == put.checkpoint["id"]])
        row = self._held.leave(held, append)
        if self._refused is not None:
            refused, self._refused = self._refused, None
            raise refused
        return Receipt(True, row)

    def _put_all(self, thread: str, records: Sequence[_Writes]) -> Flow[None]:
        """Store writes. One whose value is refused costs the others nothing, but no checkpoint will apply them."""
        for record in records:
            try:
                yield self._put_writes(thread, record)
            except SerializationError as error:
                self._refused = self._refused or error
                self._torn.add(record.checkpoint)

    def _put_writes(self, thread: str, record: _Writes) -> _Call:
        config = self._config(thread, record.ns, record.checkpoint)
        return _Call("put_writes", (config, record.writes, record.task, record.path))

    def _config(self, thread: str, ns: str | None, checkpoint: str | None = None) -> RunnableConfig:
        """The caller's configurable, with these coordinates."""
        place = {k: v for k, v in self.place.items() if k not in ("checkpoint_ns", "checkpoint_id", "checkpoint_map")}
        place["thread_id"] = thread
        if ns is not None:
            place["checkpoint_ns"] = ns
        if checkpoint is not None:
            place["checkpoint_id"] = checkpoint
        return {"configurable": place}

    # -- calls -------------------------------------------------------------------------------------------------------

    def _next_version(self, current: Version | None) -> Version:
        return self.saver.get_next_version(current, None)

    def _perform(self, call: _Call) -> Any:
        verb = call.verb
        if not self._blocks(verb):
            if depth_of(self.kind, f"a{verb}") is not None:
                raise AsyncOnlyError(
                    f"{type(self.saver).__name__} has {verb} for async callers only.",
                    fix="Use ainvoke, astream, aget_state, ...",
                )
            raise _lacking(self.saver, verb)
        found = getattr(self.saver, verb)(*_fitting(self.kind, verb, call.args), **call.options)
        return list(found) if verb == "list" else found

    async def _aperform(self, call: _Call) -> Any:
        verb = f"a{call.verb}"
        if self._blocks(call.verb, first=True):
            return await asyncio.to_thread(self._perform, call)
        if depth_of(self.kind, verb) is None:
            raise _lacking(self.saver, call.verb)
        found = getattr(self.saver, verb)(*_fitting(self.kind, verb, call.args), **call.options)
        return [entry async for entry in found] if verb == "alist" else await found

    def _blocks(self, verb: str, *, first: bool = False) -> bool:
        """Whether the blocking form of a verb is the one to call: the newer definition wins over the other form.

        Of two that are equally new the form of the caller is taken; `first`: the caller awaits.
        """
        blocking, awaiting = depth_of(self.kind, verb), depth_of(self.kind, f"a{verb}")
        if blocking is None or awaiting is None:
            return blocking is not None
        return blocking < awaiting if first else blocking <= awaiting


@dataclass(slots=True)
class _Call:
    """One verb of the saver; the reply is what it gives."""

    verb: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)


def _fitting(kind: type[object], verb: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments without the task path, for a saver that was written before there was one."""
    return args[:3] if verb.endswith("put_writes") and not _takes_path(kind, verb) else args  # type: ignore[arg-type]  # a class has a hash


@lru_cache(64)
def _takes_path(kind: type[object], verb: str) -> bool:
    parameters = inspect.signature(getattr(kind, verb)).parameters
    return "task_path" in parameters or any(one.kind is one.VAR_POSITIONAL for one in parameters.values())


def _lacking(saver: object, verb: str) -> NotBuiltError:
    return NotBuiltError(f"{type(saver).__name__} has no {verb}.", fix="Define the method, or use another saver.")


# -- translating -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Branch:
    """The checkpoint that a run stands on in one namespace, in the saver's words."""

    values: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, Version] = field(default_factory=dict)
    seen: dict[str, dict[str, Version]] = field(default_factory=dict)


@dataclass(slots=True)
class _Writes:
    ns: str
    checkpoint: str
    task: str
    path: str
    writes: list[tuple[str, Any]]


@dataclass(slots=True)
class _Put:
    ns: str
    parent: str | None
    checkpoint: Checkpoint
    metadata: Any
    new_versions: dict[str, Version]


class Book:
    """A run's ledger over such a saver: it keeps records until their append is sent. See `checkpoint.ledger`."""

    def __init__(self, next_version: Callable[[Version | None], Version]) -> None:
        self._next_version = next_version
        self._branches: dict[str, _Branch] = {}
        self._written: dict[tuple[str, str], list[tuple[str, Any]]] = {}  # of a task under a checkpoint, since a load
        self._waiting: dict[bytes, tuple[list[_Writes], list[_Put]]] = {}

    def open(self, opened: Opened) -> None:
        """Go on from what was loaded."""
        for saved in opened.saved:
            if saved is not None:
                self._branches[saved.ns] = saved.manifest
                for task in {write.task for write in saved.writes}:
                    self._written[saved.id, task] = [
                        (write.channel, write.value) for write in saved.writes if write.task == task and write.idx >= 0
                    ]

    def missing(self, writes: Iterable[TaskWrites] = (), saves: Iterable[Save] = ()) -> set[str]:
        """No names: they are texts here."""
        return set()

    def take(self, mark: bytes) -> tuple[list[_Writes], list[_Put]]:
        """The records of an append."""
        return self._waiting.pop(mark, ([], []))

    def add_writes(self, record: TaskWrites, append: Append) -> None:
        """Add what one task wrote."""
        task = task_text(record.task)
        news: list[tuple[str, Any]] = [
            (channel, told(value) if channel == ERROR and isinstance(value, BaseException) else copy_container(value))
            for channel, value in record.writes
        ]
        if record.child is not None:
            if self._written.get((record.checkpoint, task)):
                return  # what the task itself wrote stays
            news.insert(0, (SHOWN, record.child))
        if record.first:  # a saver numbers the writes of a call from zero, so it is given the earlier ones again
            earlier = self._written.setdefault((record.checkpoint, task), [])
            earlier += news
            news = list(earlier)
        writes, _ = self._waiting.setdefault(append.mark, ([], []))
        writes.append(_Writes(record.ns, record.checkpoint, task, record.path, news))

    def add_save(self, save: Save, append: Append, at: int, now: float | None = None) -> None:
        """Add a checkpoint, whole."""
        before = self._branches.get(save.ns) or _Branch()
        branch = _Branch(dict(before.values), dict(before.versions), dict(before.seen))
        fresh = self._versions(before.versions, {counter for counter, _ in save.changed.values()})
        new: dict[str, Version] = {}
        for channel, (counter, value) in save.changed.items():
            new[channel] = branch.versions[channel] = fresh[counter]
            branch.values.pop(channel, None)
            if value is not MISSING:
                branch.values[channel] = value.value if value.__class__ is Log else value
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
        puts.append(_Put(save.ns, save.parent, cast(Checkpoint, checkpoint), metadata, new))

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


def _seen_texts(node: str, counters: Mapping[str, int], before: _Branch, after: _Branch) -> dict[str, Version]:
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
        manifest=_Branch(dict(values), dict(versions), seen),
    )


def _writes_of(found: CheckpointTuple) -> list[Write]:
    pending = found.pending_writes or ()
    shown = {task: str(value) for task, channel, value in pending if channel == SHOWN}
    counts: dict[str, int] = {}
    writes: list[Write] = []
    for task, channel, value in pending:
        if channel == SHOWN:
            continue
        index = CONTROL.get(channel)
        if index is None:
            index = counts[task] = counts.get(task, -1) + 1
        if channel == RESUME and not isinstance(value, dict):
            continue  # an answer of the reference's engine, which does not say to which question
        writes.append(Write(task, index, channel, value, "", "", shown.get(task)))
    return writes


# -- who runs what, in this process ------------------------------------------------------------------------------------


class _Held:
    """A thread that runs of this process know, for as long as one of them does."""

    __slots__ = ("__weakref__", "epoch", "owner", "run", "seq")

    def __init__(self) -> None:
        self.epoch = self.seq = 0
        self.run: bytes | None = None
        self.owner: Owner | None = None


@dataclass(slots=True)
class _HeldRow(ThreadRow):
    """A thread's row that keeps its place in the table alive."""

    held: _Held | None = None


class _Threads:
    """The threads of one saver that runs of this process hold or have looked at."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: WeakValueDictionary[str, _Held] = WeakValueDictionary()

    def row(self, thread: str) -> _HeldRow:
        with self._lock:
            held = self._held.get(thread)
            if held is None:
                held = self._held[thread] = _Held()
            return self._row(thread, held)

    def enter(self, append: Append) -> _Held | None:
        """The thread when the append may go in; a claim takes it."""
        with self._lock:
            held, claim = self._held.get(append.thread), append.claim
            if held is None or held.seq != append.seq:
                return None
            if claim is None:
                return held if (held.run, held.epoch) == (append.run, append.epoch) else None
            if held.epoch != claim.epoch or not (held.run is None or claim.dead):
                return None
            held.epoch, held.run = max(held.epoch + 1, int(time.time() * 1000)), append.run
            held.owner = claim.owner
            return held

    def leave(self, held: _Held, append: Append) -> ThreadRow:
        """The row after an append has landed."""
        with self._lock:
            held.seq += append.k
            if append.release is not None:
                held.run = held.owner = None
            row = self._row(append.thread, held)
            return row if append.release is None else replace(row, status=append.release.status)

    @staticmethod
    def _row(thread: str, held: _Held) -> _HeldRow:
        return _HeldRow(thread, tno=1, epoch=held.epoch, run=held.run, seq=held.seq, owner=held.owner, held=held)


_by_saver: WeakKeyDictionary[Any, _Threads] = WeakKeyDictionary()
_making = threading.Lock()


def _threads_of(saver: Any) -> _Threads:
    """The table of a saver, made when it is first used, which is when it is warned about."""
    with _making:
        threads = _by_saver.get(saver)
        if threads is None:
            threads = _by_saver[saver] = _Threads()
        else:
            return threads
    warn_caller(
        f"{type(saver).__name__} has no guarded append: two processes that run one thread overwrite each other's work. "
        "InMemorySaver, SqliteSaver and PostgresSaver as they are keep them apart."
    )
    return threads
