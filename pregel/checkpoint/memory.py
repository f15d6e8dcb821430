"""InMemorySaver: the journal in dicts, the reference for every other saver.

1. It keeps the rows that a database would, values serialised, so nothing it holds is shared with a caller.
2. One lock; a verb holds it from start to end, which is its snapshot and its transaction.
3. Reads change nothing, not even for a thread that does not exist.
4. A run's appends become rows when the thread is first read: a run costs what it says, whoever reads pays for reading.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from heapq import nsmallest
from typing import Any, ClassVar, Self, TypeVar

from pregel import flow as runner
from pregel.checkpoint.appender import Appender
from pregel.checkpoint.chunks import LANDED as LANDED_CHUNK
from pregel.checkpoint.chunks import PENDING
from pregel.checkpoint.flows import Many, Row, Sql
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.keys import id_bytes, thread_digest
from pregel.checkpoint.late import LateLedger
from pregel.checkpoint.lease import LEASE
from pregel.checkpoint.ledger import Ledger
from pregel.checkpoint.memory_items import ItemStatements
from pregel.checkpoint.memory_rows import Branch, Thread
from pregel.checkpoint.records import (
    Append,
    CheckpointRow,
    EventRow,
    Hold,
    Load,
    Opened,
    Receipt,
    Saved,
    ThreadRow,
    ValueRow,
    WriteRow,
)
from pregel.checkpoint.serde.base import SerializerProtocol, UntypedSerializerProtocol
from pregel.errors import NotBuiltError
from pregel.flow import Flow

T = TypeVar("T")

LANDED = Receipt(True)
"""The receipt of an append after which the thread is as the append said."""


class InMemorySaver(ItemStatements, JournalSaver):
    """Keeps threads in this process's memory. For tests, and for graphs whose state may die with the process."""

    blocking: ClassVar[bool] = False

    def __init__(
        self,
        *,
        serde: SerializerProtocol | UntypedSerializerProtocol | None = None,
        factory: object = None,
        lease: float = LEASE,
    ) -> None:
        if factory is not None:
            raise NotBuiltError("InMemorySaver keeps its rows in dicts of its own.", fix="Use SqliteSaver for a file.")
        super().__init__(serde=serde, lease=lease)
        self._lock = threading.RLock()
        self._threads: dict[str, Thread] = {}
        self._numbers: dict[int, Thread] = {}
        self._last_tno = 0
        self._tombstones: dict[bytes, tuple[int, float]] = {}  # epoch, deleted at
        self._name_numbers: dict[str, int] = {}
        self._statements: dict[str, Callable[..., Any]] = {
            name.removeprefix("_do_"): getattr(self, name) for name in dir(self) if name.startswith("_do_")
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    def ledger(self) -> Ledger:
        return LateLedger(self.serde, self.names, self.intern)

    def appender(self, thread: str, hold: Hold, ledger: Ledger) -> Appender | None:
        if not isinstance(ledger, LateLedger) or _overridden(self):
            return None
        return Appender(self._lock, self._threads, thread, hold, ledger)

    def at_once(self) -> bool:
        return all(getattr(getattr(self, verb), "__func__", None) is twin for verb, twin in _AWAITED.items())

    # -- appends -----------------------------------------------------------------------------------------------------

    def append(self, append: Append) -> Receipt:
        with self._lock:
            thread = self._threads.get(append.thread)
            now = time.time()
            if append.claim is not None:
                if not self._may_claim(thread, append, now):
                    return self._refused(thread, append)
                thread = self._claim(thread, append, now)
            elif (
                thread is None
                or thread.seq != append.seq
                or thread.run != append.run
                or thread.epoch != append.epoch
                or thread.tno != append.tno
            ):
                return self._refused(thread, append)
            thread.take(append, now)
            if append.claim is None and not thread.asked:
                return LANDED
            return Receipt(True, thread.row())

    def _refused(self, thread: Thread | None, append: Append) -> Receipt:
        """Not landed, unless it is the thread's last append, sent again."""
        if thread is None:
            return Receipt(False, ThreadRow(append.thread))
        landed = (thread.seq, thread.mark) == (append.seq + append.k, append.mark)
        return Receipt(landed, replace(thread.row(), lapsed=thread.lapsed(time.time())))

    def _may_claim(self, thread: Thread | None, append: Append, now: float) -> bool:
        claim = append.claim
        assert claim is not None
        if thread is None or append.tno == 0:
            return thread is None and append.tno == 0
        return (
            (thread.tno, thread.epoch, thread.seq, thread.gen) == (append.tno, claim.epoch, append.seq, claim.gen)
        ) and (thread.run is None or claim.dead or thread.lapsed(now))

    def _claim(self, thread: Thread | None, append: Append, now: float) -> Thread:
        claim = append.claim
        assert claim is not None
        if thread is None:
            thread = self._make(append.thread, now)
        else:
            thread.epoch = max(thread.epoch + 1, int(now * 1000))
            thread.crashes += thread.run is not None
        thread.pin = claim.pin
        if not thread.asked.startswith("~") or thread.asked == claim.heard:
            thread.asked = ""
        thread.run, thread.owner, thread.ttl = append.run, claim.owner, claim.ttl
        thread.status, thread.reason = "running", ""
        if claim.rouses or claim.taken:
            thread.rouse(claim.taken)
        thread.graph = claim.graph or thread.graph
        return thread

    def _make(self, name: str, now: float) -> Thread:
        buried, _ = self._tombstones.get(thread_digest(name), (0, 0.0)) if self._tombstones else (0, 0.0)
        self._last_tno = tno = self._last_tno + 1
        thread = self._threads[name] = self._numbers[tno] = Thread(tno, name, max(buried + 1, int(now * 1000)))
        return thread

    # -- flows -------------------------------------------------------------------------------------------------------

    def read(self, flow: Flow[T]) -> T:
        with self._lock:
            return runner.run(flow, self._perform)

    write = read

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        self._introduce(names)
        if len(loads) == 1 and loads[0].checkpoint is None and loads[0].before is None:
            ns = loads[0].ns
            with self._lock:
                found = self._threads.get(thread)
                if found is None:
                    return Opened(ThreadRow(thread), [None], {})
                saved = self._short(found.catch_up(), ns)
                if saved is not None:
                    return Opened(found.loaded(ns), [saved], {ns: saved.id})
        return super().load(thread, loads, names)

    def look(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        with self._lock:
            found = self._threads.get(thread)
            if found is None:
                return None
            saved = self._short(found.catch_up(), ns, checkpoint)
        return super().look(thread, ns, checkpoint) if saved is None else saved

    def _short(self, thread: Thread, ns: str, checkpoint: str | None = None) -> Saved | None:
        """A checkpoint, when there is one and all of it stands in its row and its writes."""
        branch = thread.branches.get(thread.namespaces.get(ns, -1))
        if branch is None:
            return None
        row = branch.newest if checkpoint is None else branch.rows.get(id_bytes(checkpoint))
        if row is None or (row.base is not None and row.base not in branch.rows):
            return None
        base = None if row.base is None else (row.base, branch.rows[row.base].manifest)
        writes = thread.writes.get((row.ns, row.id))
        return self._decoder().short(ns, row, base, [*writes.values()] if writes else ())

    def _perform(self, request: Sql | Many) -> Any:
        if request.__class__ is Sql:
            return self._statements[request.name](*request.args)
        statement = self._statements[request.name]
        for row in request.rows:  # type: ignore[union-attr]
            statement(*row)
        return None

    # Statements, named as in sql/: each gives rows.

    def _do_thread(self, name: str) -> list[Row]:
        thread = self._threads.get(name)
        return [] if thread is None else [thread.catch_up().columns()]

    def _holder(self, tno: int, epoch: int, run: bytes) -> Thread | None:
        thread = self._numbers.get(tno)
        return thread if thread is not None and (thread.epoch, thread.run) == (epoch, run) else None

    def _do_renew(self, tno: int, epoch: int, run: bytes, keep: float) -> None:
        if (thread := self._holder(tno, epoch, run)) is not None:
            thread.expires = time.time() + thread.ttl * keep

    def _do_held(self, tno: int, epoch: int, run: bytes) -> list[Row]:
        thread = self._holder(tno, epoch, run)
        return [] if thread is None else [(thread.asked,)]

    def _do_ask(self, asked: str, tno: int, epoch: int, run: bytes) -> None:
        thread = self._numbers.get(tno) if asked.startswith("~") else self._holder(tno, epoch, run)
        if thread is not None:
            words = {thread.asked or asked, asked}
            thread.asked = "rollback" if "rollback" in words else min(words)

    def _do_threads(self, status: str | None, limit: int | None) -> list[Row]:
        found = [thread for thread in self._threads.values() if status is None or thread.status == status]
        found.sort(key=lambda thread: (-thread.updated_at, -thread.tno))
        return [thread.catch_up().columns() for thread in found[:limit]]

    def _do_pending(self, updated_at: float, tno: int, limit: int) -> list[Row]:
        found = [one for one in self._threads.values() if one.status == "pending"]
        behind = [one for one in found if (one.updated_at, one.tno) > (updated_at, tno)]
        first = nsmallest(limit, behind, key=lambda thread: (thread.updated_at, thread.tno))
        return [thread.catch_up().columns() for thread in first]

    def _do_namespace(self, tno: int, text: str) -> list[Row]:
        number = self._numbers[tno].namespaces.get(text)
        return [] if number is None else [(number,)]

    def _branch(self, tno: int, ns: int) -> Branch:
        return self._numbers[tno].branches.get(ns) or Branch()

    def _named(self, tno: int, text: str) -> Branch:
        return self._branch(tno, self._numbers[tno].namespaces.get(text, -1))

    def _do_newest(self, tno: int, text: str) -> list[Row]:
        branch = self._named(tno, text)
        return [branch.rows[branch.ids[-1]]] if branch.ids else []

    def _do_newest_id(self, tno: int, text: str) -> list[Row]:
        branch = self._named(tno, text)
        return [(branch.ids[-1],)] if branch.ids else []

    def _do_newest_before(self, tno: int, text: str, before: bytes) -> list[Row]:
        branch = self._named(tno, text)
        i = bisect_left(branch.ids, before)
        return [branch.rows[branch.ids[i - 1]]] if i else []

    def _do_checkpoint(self, tno: int, text: str, checkpoint: bytes) -> list[Row]:
        row = self._named(tno, text).rows.get(checkpoint)
        return [] if row is None else [row]

    def _do_look(self, name: str, text: str, before: bytes) -> list[Row]:
        thread = self._threads.get(name)
        if thread is None:
            return []
        branch = self._named(thread.catch_up().tno, text)
        i = bisect_left(branch.ids, before)
        if not i:
            return []
        row = branch.rows[branch.ids[i - 1]]
        base = branch.rows.get(row.base) if row.base is not None else None
        return [(thread.tno, *row, None if base is None else base.manifest, (row.ns, row.id) in thread.writes)]

    def _do_manifest(self, tno: int, ns: int, checkpoint: bytes) -> list[Row]:
        row = self._branch(tno, ns).rows.get(checkpoint)
        return [] if row is None else [(row.manifest,)]

    def _do_values(self, tno: int, ns: int, spans: list[tuple[int, int, int, int]], anchor: bytes | None) -> list[Row]:
        thread = self._numbers[tno]
        if anchor is not None and anchor not in self._branch(tno, ns).rows:
            return []
        found: list[ValueRow | None] = []
        for channel, first, last, deltas in spans:
            if deltas:
                ats = thread.deltas.get((ns, channel), [])
                ats = ats[bisect_left(ats, first) : bisect_right(ats, last)]
                found += [thread.values[ns, channel, at, "delta"] for at in ats]
            else:
                found += [thread.values.get((ns, channel, first, kind)) for kind in ("value", "cache")]
        return [row[1:] for row in found if row is not None]

    def _do_writes(self, tno: int, ns: int, first: bytes, last: bytes) -> list[Row]:
        thread = self._numbers[tno]
        if first == last:
            return list(thread.writes.get((ns, first), {}).values())
        branch = self._branch(tno, ns)
        ids = branch.ids[bisect_left(branch.ids, first) : bisect_left(branch.ids, last) + 1]
        return [row for id in ids for row in thread.writes.get((ns, id), {}).values()]

    def _do_page_all(self, ns: str | None, before: bytes, size: int) -> list[Row]:
        return self._page(self._threads.values(), ns, before, size)

    def _do_page_thread(self, thread: str, before: bytes, size: int) -> list[Row]:
        return self._do_page_namespace(thread, None, before, size)

    def _do_page_namespace(self, thread: str, ns: str | None, before: bytes, size: int) -> list[Row]:
        one = self._threads.get(thread)
        return [] if one is None else self._page([one], ns, before, size)

    def _page(self, threads: Iterable[Thread], ns: str | None, before: bytes, size: int) -> list[Row]:
        found: list[Row] = []
        for one in threads:
            for text, number in one.catch_up().namespaces.items():
                if ns is None or ns == text:
                    branch = self._branch(one.tno, number)
                    end = bisect_left(branch.ids, before)
                    start = 0 if size < 0 else max(0, end - size)
                    found += [(one.thread, one.tno, text, *branch.rows[id]) for id in branch.ids[start:end]]
        if ns is None or (len(found) > 1 and found[0][1] != found[-1][1]):
            found.sort(key=lambda row: (row[4], -row[1], -row[3]), reverse=True)
        else:  # of one branch: they are in order
            found.reverse()
        return found if size < 0 else found[:size]

    def _do_names(self, last: int, wanted: int) -> list[Row]:
        return [(number, text) for text, number in self._name_numbers.items() if number > last]

    def _do_name(self, text: str) -> list[Row]:
        return [(self._name_numbers[text], text)]

    def _do_intern(self, text: str) -> None:
        self._name_numbers.setdefault(text, len(self._name_numbers) + 1)

    def _do_lock_thread(self, name: str) -> list[Row]:
        thread = self._threads.get(name)
        return [] if thread is None else [(thread.catch_up().tno, thread.epoch)]

    def _do_add_tombstone(self, digest: bytes, epoch: int, now: float) -> None:
        self._tombstones[digest] = epoch, now

    def _do_tombstone(self, digest: bytes) -> list[Row]:
        return [(self._tombstones[digest][0],)] if digest in self._tombstones else []

    def _do_delete_writes(self, tno: int) -> None:
        self._numbers[tno].writes.clear()

    def _do_delete_values(self, tno: int) -> None:
        self._numbers[tno].values.clear()
        self._numbers[tno].deltas.clear()

    def _do_delete_checkpoints(self, tno: int) -> None:
        self._numbers[tno].branches.clear()

    def _do_delete_namespaces(self, tno: int) -> None:
        self._numbers[tno].namespaces.clear()

    def _do_delete_thread(self, tno: int) -> None:
        del self._threads[self._numbers.pop(tno).thread]

    def _do_make_thread(self, name: str, digest: bytes, now: float) -> None:
        self._make(name, now)

    def _do_touch(self, checkpoint: bytes, now: float, tno: int) -> None:
        thread = self._numbers[tno]
        thread.seq += 1
        thread.last_id = max(checkpoint, thread.last_id or b"")
        thread.updated_at = now

    def _do_delete_checkpoint(self, tno: int, ns: int, checkpoint: bytes) -> None:
        branch = self._branch(tno, ns)
        if branch.rows.pop(checkpoint, None) is not None:
            branch.ids.remove(checkpoint)

    def _do_add_namespaces(self, tno: int, ns: int, text: str) -> None:
        thread = self._numbers[tno]
        thread.namespaces[text], thread.next_ns = ns, ns + 1

    def _do_add_checkpoints(self, tno: int, *row: Any) -> None:
        self._numbers[tno].branches.setdefault(row[0], Branch()).add(CheckpointRow(*row))

    def _do_add_values(self, tno: int, *row: Any) -> None:
        self._numbers[tno].add_value(ValueRow(*row))

    def _do_add_writes(self, tno: int, *row: Any) -> None:
        self._numbers[tno].add_write(WriteRow(*row))

    # Events.

    def _do_event(self, tno: int, id: str) -> list[Row]:
        return [(1,)] if id in self._numbers[tno].events else []

    def _do_awaited(self, tno: int, name: str) -> list[Row]:
        return [(wait.key,) for wait in self._numbers[tno].waits if wait.name == name]

    def _do_send_event(self, tno: int, *row: Any) -> None:
        self._numbers[tno].events[row[0]] = EventRow(*row)

    def _do_count_event(self, tno: int) -> None:
        self._numbers[tno].inbox += 1

    def _do_events(self, tno: int, limit: int | None) -> list[Row]:
        found = [event for event in self._numbers[tno].events.values() if event is not None]
        return [*sorted(found, key=lambda event: (event.at, event.id))[:limit]]

    def _do_due(self, now: float, limit: int | None) -> list[Row]:
        return [(one.thread, one.graph) for one in self._threads.values() if one.is_due(now)][:limit]

    def _do_unread(self, name: str, limit: int | None) -> list[Row]:
        return [(one.thread, one.graph) for one in self._threads.values() if one.has_unread(name)][:limit]

    def _do_delete_waits(self, tno: int) -> None:
        self._numbers[tno].waits = ()

    def _do_delete_events(self, tno: int) -> None:
        self._numbers[tno].events.clear()

    def _do_delete_items(self, tno: int) -> None:
        self._numbers[tno].items.clear()

    # Housekeeping.

    def _do_heads(self, tno: int) -> list[Row]:
        found = ((text, self._branch(tno, ns)) for text, ns in self._numbers[tno].namespaces.items())
        return [(text, *branch.rows[branch.ids[-1]]) for text, branch in found if branch.ids]

    def _do_namespaces(self, tno: int) -> list[Row]:
        return [(ns, text) for text, ns in self._numbers[tno].namespaces.items()]

    def _do_value_keys(self, tno: int, ns: int) -> list[Row]:
        return [(*key[1:], row.prev) for key, row in self._numbers[tno].values.items() if key[0] == ns]

    def _do_named_places(self, tno: int, ns: int, kind: str) -> list[Row]:
        under = (rows for (number, _), rows in self._numbers[tno].writes.items() if number == ns)
        return [(row.channel, row.blob) for rows in under for row in rows.values() if row.type == kind]

    def _do_threads_of_run(self, run_id: str) -> list[Row]:
        return [
            (thread.thread,)
            for thread in self._threads.values()
            if any(
                row.run_id == run_id for branch in thread.catch_up().branches.values() for row in branch.rows.values()
            )
        ]

    def _do_stale(self, before: float) -> list[Row]:
        found = sorted((one.updated_at, one.tno, one.thread) for one in self._threads.values())
        return [(thread,) for updated_at, _, thread in found if updated_at < before]

    def _do_set_parent(self, parent: bytes | None, tno: int, ns: int, checkpoint: bytes) -> None:
        rows = self._branch(tno, ns).rows
        rows[checkpoint] = rows[checkpoint]._replace(parent=parent)

    def _do_rewrite_checkpoint(self, manifest: bytes, tno: int, ns: int, checkpoint: bytes) -> None:
        rows = self._branch(tno, ns).rows
        rows[checkpoint] = rows[checkpoint]._replace(base=None, manifest=manifest)

    def _do_bump_gen(self, tno: int) -> None:
        self._numbers[tno].gen += 1

    def _do_prune_checkpoints(self, tno: int, ns: int, before: bytes) -> None:
        branch = self._branch(tno, ns)
        end = bisect_left(branch.ids, before)
        for id in branch.ids[:end]:
            del branch.rows[id]
        del branch.ids[:end]

    def _do_prune_writes(self, tno: int, ns: int, before: bytes) -> None:
        writes = self._numbers[tno].writes
        for key in [key for key in writes if key[0] == ns and key[1] < before]:
            del writes[key]

    def _do_delete_writes_of(self, tno: int, ns: int, checkpoint: bytes) -> None:
        self._numbers[tno].writes.pop((ns, checkpoint), None)

    def _do_delete_value(self, tno: int, ns: int, channel: int, at: int, kind: str) -> None:
        thread = self._numbers[tno]
        if thread.values.pop((ns, channel, at, kind), None) is not None and kind == "delta":
            thread.deltas[ns, channel].remove(at)

    def _do_promote_cache(self, tno: int, ns: int, channel: int, at: int) -> None:
        thread = self._numbers[tno]
        if (row := thread.values.pop((ns, channel, at, "cache"), None)) is not None:
            thread.add_value(row._replace(kind="value", n=None))

    def _do_drop_namespace(self, tno: int, ns: int) -> None:
        thread = self._numbers[tno]
        thread.namespaces = {text: number for text, number in thread.namespaces.items() if number != ns}
        thread.branches.pop(ns, None)

    def _do_copy_thread(self, name: str, digest: bytes, now: float, tno: int) -> None:
        source, copied = self._numbers[tno], self._make(name, now)
        copied.seq, copied.last_id, copied.graph, copied.updated_at = source.seq, source.last_id, source.graph, now
        reasons = {"running": "copied during a run", "pending": "copied before a worker took it up"}
        copied.status = "idle" if source.status in reasons else source.status
        copied.reason = reasons.get(source.status, source.reason)

    def _do_copy_namespaces(self, target: int, tno: int) -> None:
        source, copied = self._numbers[tno], self._numbers[target]
        copied.namespaces, copied.next_ns = dict(source.namespaces), source.next_ns

    def _do_copy_checkpoints(self, target: int, tno: int) -> None:
        for ns, branch in self._numbers[tno].branches.items():
            copied = self._numbers[target].branches[ns] = Branch()
            copied.ids, copied.rows = list(branch.ids), dict(branch.rows)

    def _do_copy_values(self, target: int, tno: int) -> None:
        source, copied = self._numbers[tno], self._numbers[target]
        copied.values = dict(source.values)
        copied.deltas = {place: list(ats) for place, ats in source.deltas.items()}

    def _do_copy_writes(self, target: int, tno: int) -> None:
        self._numbers[target].writes = {key: dict(rows) for key, rows in self._numbers[tno].writes.items()}

    def _do_chunks(self, tno: int, offset: int, size: int) -> list[Row]:
        chunks = self._numbers[tno].chunks
        ends = list(chunks)
        start = bisect_left(ends, offset)
        return [chunks[last] for last in ends[start : start + size]]

    def _do_chunk_end(self, tno: int) -> list[Row]:
        return [(last, row.attempt) for last, row in list(self._numbers[tno].chunks.items())[-1:]]

    def _do_pending_chunks(self, tno: int) -> list[Row]:
        return [(row.last, row.n) for row in self._numbers[tno].chunks.values() if row.state == PENDING]

    def _do_empty_chunks(self, tno: int, run_id: str | None) -> None:
        chunks = self._numbers[tno].chunks
        for last, row in chunks.items():
            if run_id is None or row.run_id == run_id:
                chunks[last] = row._replace(n=0, state=LANDED_CHUNK, node="", blob=b"")

    def _do_drop_chunks(self, tno: int) -> None:
        thread = self._numbers[tno]
        end = next(reversed(thread.chunks), -1)
        thread.chunks = {last: row for last, row in thread.chunks.items() if row.n or last == end}

    def _do_delete_chunks(self, tno: int) -> None:
        self._numbers[tno].chunks.clear()

    def _do_copy_chunks(self, target: int, tno: int) -> None:
        self._numbers[target].chunks = dict(self._numbers[tno].chunks)

    def _do_sweep_tombstones(self, before: float) -> None:
        self._tombstones = {digest: found for digest, found in self._tombstones.items() if found[1] >= before}


def _overridden(saver: InMemorySaver) -> bool:
    """Whether appends are watched by somebody, who is then told of each: a subclass, or a wrapper put over the verb."""
    own = getattr(saver.append, "__func__", None), getattr(saver.aappend, "__func__", None)
    return own != (InMemorySaver.append, JournalSaver.aappend)


_AWAITED = {verb: getattr(JournalSaver, verb) for verb in ("aload", "apage", "aintern", "aappend", "arenew")}

MemorySaver = InMemorySaver
