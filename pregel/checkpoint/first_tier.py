"""A saver that has only the reference's verbs, as the engine sees it: an append becomes `put_writes` and `put` calls.

1. What a task wrote is stored before the checkpoint that contains it. Each call stands alone: after a crash between two
   of them a finished task is known and its step is open, never the other way round.
2. Nothing guards the thread. Runs of this process are kept apart by `checkpoint.held`; two processes are not, which is
   warned about once. No status is kept, and nothing can be sent again when an answer got lost.
3. What a task wrote is handed over as a copy one level deep, since a node may go on with its own container. State needs
   none: a value that was read from a channel, or given to one, never changes later (rule 1 of `channels.base`).
4. Versions are the saver's own, made by its `get_next_version`; the counters in them are the engine's.
5. What the reference's shapes have no room for stands in the checkpoint under `book.EXTRA`. A saver that drops unknown
   keys loses stable idempotency keys over a crash, and nothing else.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, TypeVar

from pregel import flow as runner
from pregel.checkpoint.base import CheckpointTuple, depth_of
from pregel.checkpoint.book import Book, TaskRecord, Version, saved_of
from pregel.checkpoint.held import held_threads
from pregel.checkpoint.lease import LEASE
from pregel.checkpoint.records import Append, Hold, Load, Opened, Page, Receipt, Saved
from pregel.checkpoint.serde.base import SerializerProtocol
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.config import RunnableConfig
from pregel.errors import AsyncOnlyError, NotBuiltError, SerializationError
from pregel.flow import Flow

T = TypeVar("T")


class FirstTier:
    """One run's view of such a saver; it has what the engine asks of a `JournalSaver`, without leases."""

    lease = LEASE
    in_pages = False  # what its `before` means is its own business

    def __init__(self, saver: Any, configurable: Mapping[str, Any]) -> None:
        self.saver = saver
        self.kind: type[object] = type(saver)
        self.place = {key: value for key, value in configurable.items() if not key.startswith(("__", "langgraph_"))}
        self._held = held_threads(saver)
        self._book = Book(self._next_version)
        self._torn: set[str] = set()  # checkpoints on which a value was refused, and those that hang on them
        self._refused: SerializationError | None = None

    @cached_property
    def serde(self) -> SerializerProtocol:
        """What compares inputs by their bytes; the saver's own may write one value in two ways."""
        return JsonPlusSerializer()

    def ledger(self) -> Book:
        """The translator of this run."""
        return self._book

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        """The thread's row and these checkpoints."""
        return runner.run(self._loading(thread, loads), self._perform)

    async def aload(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        """Async twin of `load`."""
        return await runner.arun(self._loading(thread, loads), self._aperform)

    def look(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        """A checkpoint, for somebody who only looks."""
        return _seen(self._perform(self._get(thread, ns, checkpoint)))

    async def alook(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        """Async twin of `look`."""
        return _seen(await self._aperform(self._get(thread, ns, checkpoint)))

    def _get(self, thread: str, ns: str, checkpoint: str | None) -> _Call:
        return _Call("get_tuple", (self._config(thread, ns, checkpoint),))

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

    def appender(self, thread: str, hold: Hold, ledger: object) -> None:
        """None: there is no short way."""

    def at_once(self) -> bool:
        """False: what the saver's own verbs wait for is its business."""
        return False

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
            opened.saved.append(_seen(found))
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

    def _put_all(self, thread: str, records: Sequence[TaskRecord]) -> Flow[None]:
        """Store writes. One whose value is refused costs the others nothing, but no checkpoint will apply them."""
        for record in records:
            try:
                if len(record.writes) > 1:
                    self._try_values(record)
                yield self._put_writes(thread, record)
            except SerializationError as error:
                self._refused = self._refused or error
                self._torn.add(record.checkpoint)

    def _try_values(self, record: TaskRecord) -> None:
        """Raise what the saver's serialiser would: a saver may keep what stands before the value that it refuses."""
        dumps = getattr(getattr(self.saver, "serde", None), "dumps_typed", None)
        if dumps is not None:
            for _, value in record.writes:
                dumps(value)

    def _put_writes(self, thread: str, record: TaskRecord) -> _Call:
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
            return await runner.on_thread(self._perform, call)
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


def _seen(found: CheckpointTuple | None) -> Saved | None:
    return None if found is None else saved_of(found)


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
