"""The only translator between what the engine says and what a store keeps.

1. A `Ledger` belongs to one run over one thread. It knows, per namespace, the manifest of the checkpoint that the run
   stands on, so that a `Save` holds changes only.
2. Every name is interned before it is written: ask `missing` first.
3. A value of at most `INLINE` bytes sits in the manifest; a longer one is a `value` row at the seq of its record. Of
   a list that grew (a `Log`) what is new is stored, as `checkpoint.logs` says.
4. Adding is all or nothing: when a value cannot be stored, the append is as it was before.
5. A value is encoded when it is added, so that nothing that changes it later changes the record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

import msgpack  # type: ignore[import-untyped]

from pregel.channels import MISSING
from pregel.channels.batches import Batched
from pregel.channels.growth import Log
from pregel.checkpoint.batches import stored_batches
from pregel.checkpoint.keys import PULL, Names, hash16, id_bytes, pull_text, task_bytes, task_parts
from pregel.checkpoint.logs import FOLD, NAMED, NAMED_WHOLE, Stored, Tip, stored
from pregel.checkpoint.manifest import INLINE, Manifest
from pregel.checkpoint.records import (
    CONTROL,
    ERROR,
    INTERRUPT,
    Append,
    CheckpointRow,
    Lone,
    Opened,
    Save,
    TaskWrites,
    ValueRow,
    WriteRow,
)
from pregel.checkpoint.serde.base import CannotStore, SerializerProtocol, in_clear
from pregel.checkpoint.serde.metadata import metadata_blob
from pregel.errors import SerializationError, told

NOTHING_SHOWN: tuple[Mapping[str, Any], bytes] = {}, b"{}"

LOGGED = frozenset((Log, Batched, Stored))
"""What comes with a way to store it by what is new in it."""

_write_row = partial(tuple.__new__, WriteRow)  # a third of the cost of calling the class
_checkpoint_row = partial(tuple.__new__, CheckpointRow)


class Ledger:
    """Turns task writes and saves of one run into rows."""

    __slots__ = (
        "_append",
        "_encoded",
        "_manifests",
        "_namespaces",
        "_next_ns",
        "_pack",
        "_serde",
        "names",
        "shown",
    )

    takes_lone: ClassVar[bool] = True
    """Whether `add_lone` takes usual supersteps as they are; else they come as two general records."""

    def __init__(self, serde: SerializerProtocol, names: Names) -> None:
        self.names = names
        self._serde = serde
        self._pack: Callable[[Any], bytes] | None = None  # for manifests; a run encodes one at a time
        self._manifests: dict[str, Manifest] = {}
        self._namespaces: dict[str, int] = {}
        self._next_ns = 0
        self._append: Append | None = None
        self.shown = NOTHING_SHOWN  # the last metadata, which a run seldom changes
        self._encoded: dict[int, tuple[Any, tuple[str, bytes]]] = {}  # since the last save of this append, by identity

    def open(self, opened: Opened) -> None:
        """Go on from what was loaded. May be called again for namespaces that are loaded later."""
        self._namespaces.update(opened.thread.namespaces)
        self._next_ns = max(self._next_ns, opened.thread.next_ns)
        for saved in opened.saved:
            if saved is not None:
                self._manifests[saved.ns] = saved.manifest.manifest

    def missing(self, writes: Iterable[TaskWrites] = (), saves: Iterable[Save | Lone] = ()) -> set[str]:
        """Names in these records that the store has not interned."""
        known = self.names.ids
        unknown: set[str] = set()
        for record in writes:
            if record.name not in known:
                unknown.add(record.name)
            for channel, _ in record.writes:
                if channel not in known:
                    unknown.add(channel)
        for save in saves:
            if isinstance(save, Lone):
                if not known.keys() >= (names := save.names()):
                    unknown |= names - known.keys()
                continue
            if not known.keys() >= save.changed.keys():
                unknown |= save.changed.keys() - known.keys()
            for node, seen in save.seen.items():
                if node not in known or not known.keys() >= seen.keys():
                    unknown |= {node, *seen} - known.keys()
            for name in save.updated or ():
                if name not in known:
                    unknown.add(name)
        return unknown

    # -- writes ------------------------------------------------------------------------------------------------------

    def add_writes(self, record: TaskWrites, append: Append) -> None:
        """Add what one task wrote."""
        ns = self._start(append, record.ns)
        child = None if record.child is None else id_bytes(record.child)
        task = id_bytes(record.checkpoint), task_bytes(record.task), record.name, record.path
        append.writes += self._write_rows(ns, *task, record.writes, record.first, child)

    def _write_rows(
        self,
        ns: int,
        checkpoint: bytes,
        task: bytes,
        name: str,
        path: str,
        writes: Iterable[tuple[str, Any]],
        first: int = 0,
        child: bytes | None = None,
    ) -> list[WriteRow]:
        ids, number = self.names.ids, self.names.ids[name]
        rows: list[WriteRow] = []
        channel = ""
        try:
            for position, (channel, value) in enumerate(writes, first):
                index = CONTROL.get(channel, position)
                if index == -1 and isinstance(value, BaseException):
                    value = told(value)
                kind, blob = self._encode(value)
                rows.append(_write_row((ns, checkpoint, task, index, ids[channel], kind, blob, path, number, child)))
        except SerializationError as error:
            raise self._placed(error, channel, name) from None
        return rows

    # -- checkpoints -------------------------------------------------------------------------------------------------

    def add_save(self, save: Save, append: Append, at: int, now: float | None = None) -> None:
        """Add a checkpoint. `at` is the seq of its record; `now` (unix seconds) is when it was made."""
        ids = self.names.ids
        seen = {ids[node]: _seen(node, counters, ids) for node, counters in save.seen.items()}
        updated = None if save.updated is None else [ids[name] for name in save.updated]
        self._add_checkpoint(save, save.changed, seen, (updated, save.applied), append, at, now)

    def add_lone(self, lone: Lone, append: Append, at: int, now: float | None = None) -> None:
        """Add a usual superstep, whole or not at all: the rows that its two general records would make."""
        ns, ids, name = self._start(append, lone.ns), self.names.ids, lone.name
        path = pull_text(name)
        task = hash16(task_parts(lone.parent, lone.ns, lone.step, name, PULL, *lone.triggers))
        rows = self._write_rows(ns, id_bytes(lone.parent), task, name, path, lone.writes)
        counter = lone.counter
        changed = {channel: (counter, value) for channel, value in zip(lone.changed, lone.values, strict=True)}
        seen = {} if lone.seen is None else {ids[name]: {ids[channel]: count for channel, count in lone.seen}}
        tail = [ids[channel] for channel in lone.updated], (path,)
        before = len(append.writes)
        append.writes += rows
        try:
            self._add_checkpoint(lone, changed, seen, tail, append, at, now)
        except SerializationError:
            del append.writes[before:]
            raise

    def _add_checkpoint(
        self,
        save: Save | Lone,
        changed: Mapping[str, tuple[int, Any]],
        seen: Mapping[int, int | dict[int, int]],
        tail: tuple[list[int] | None, Sequence[str]],
        append: Append,
        at: int,
        now: float | None,
    ) -> None:
        """Add the row of a checkpoint and those of its values; `tail` is what was updated and what was applied."""
        ns = self._start(append, save.ns)
        manifest = self._manifests.get(save.ns)
        if manifest is None or begins_anew(save.parent, save.source):
            manifest = self._manifests[save.ns] = Manifest()
        values: list[ValueRow] = []
        tips: dict[int, Tip] = {}
        if (pack := self._pack) is None:
            pack = self._pack = msgpack.Packer(unicode_errors="surrogatepass", buf_size=1024).pack
        channels = self._channels(pack, changed, ns, at, values, manifest.logs, tips)
        marks = {node: pack((node, counters)) for node, counters in seen.items()}
        metadata = save.metadata
        checkpoint = id_bytes(save.id)
        parent = None if save.parent is None else id_bytes(save.parent)
        if metadata is not self.shown[0]:
            self.shown = metadata, metadata_blob(metadata)
        run_id = metadata.get("run_id")
        made = time.time() if now is None else now
        lineage = bytes(save.lineage)
        base, blob = manifest.advance(checkpoint, channels, marks, pack(tail)[1:])
        if tips or manifest.logs:
            for key in channels:
                manifest.logs.pop(key, None)
            manifest.logs.update(tips)
        if values and parent is not None:
            _name_stored(append.writes, values, parent)
        shown = self.shown[1]
        append.checkpoints.append(
            _checkpoint_row((ns, checkpoint, parent, base, lineage, save.step, save.source, run_id, made, shown, blob))
        )
        append.last_id = checkpoint
        append.values += values
        self._encoded.clear()  # the next step's reducers may grow a value in place

    def _channels(
        self,
        pack: Callable[[Any], bytes],
        changed: Mapping[str, tuple[int, Any]],
        ns: int,
        at: int,
        rows: list[ValueRow],
        logs: Mapping[int, Tip],
        tips: dict[int, Tip],
    ) -> dict[int, bytes]:
        """The manifest's pieces for changed channels; long values go into `rows`, where logs stand now into `tips`."""
        pieces: dict[int, bytes] = {}
        ids = self.names.ids
        channel = ""
        try:
            for channel, (counter, value) in changed.items():
                key = ids[channel]
                if value is None:
                    pieces[key] = pack((key, counter, at, b""))
                    continue
                if value is MISSING:
                    pieces[key] = pack((key, counter, at, None))
                    continue
                fold = ""
                if type(value) in LOGGED:
                    before = logs.get(key)
                    news = self._stored(value, before)
                    if news.tip is not None:
                        whole = before is None or news.tail is None or news.whole is not None
                        tips[key] = news.tip.placed(at, at if whole else before.base)  # type: ignore[union-attr]
                    if news.tail is not None:
                        assert before is not None
                        pieces[key] = pack((key, counter, at, None, None, tips[key].base))
                        rows += _delta_rows(ns, key, at, news, before)
                        continue
                    kind, blob = news.whole  # type: ignore[misc]  # without a delta it is whole
                    fold = news.fold
                else:
                    kind, blob = self._encode(value)
                if len(blob) > INLINE:
                    pieces[key] = pack((key, counter, at))
                    rows.append(ValueRow(ns, key, at, "value", kind + FOLD + fold if fold else kind, blob))
                elif kind == "msgpack":
                    pieces[key] = pack((key, counter, at, blob))
                else:
                    pieces[key] = pack((key, counter, at, blob, kind))
        except SerializationError as error:
            raise self._placed(error, channel) from None
        return pieces

    # -- shared ------------------------------------------------------------------------------------------------------

    def _start(self, append: Append, ns: str) -> int:
        """The number of a namespace. Encodings of an earlier append are forgotten: what they show may change."""
        if append is not self._append:
            self._append = append
            self._encoded.clear()
        number = self._namespaces.get(ns)
        if number is None:
            number = self._namespaces[ns] = self._next_ns
            self._next_ns += 1
            append.namespaces.append((number, ns))
        return number

    def _encode(self, value: Any) -> tuple[str, bytes]:
        """The value as (type, bytes); the same object is encoded once an append."""
        known = self._encoded.get(id(value))
        if known is not None:
            return known[1]
        typed = self._serde.dumps_typed(value)
        self._encoded[id(value)] = value, typed  # the value is kept, so that its id stays its own
        return typed

    def _stored(self, value: Log | Batched | Stored, tip: Tip | None) -> Stored:
        """How a value is stored on top of where its log stands."""
        if isinstance(value, Log):
            return stored(value, tip, self._encode)
        assert isinstance(value, Batched)
        clear = in_clear(self._serde)
        compared = None if clear is self._serde else clear.dumps_typed
        return stored_batches(value, tip, self._encode, self._serde.loads_typed, compared)

    @staticmethod
    def _placed(error: SerializationError, channel: str, node: str | None = None) -> SerializationError:
        """The error with the channel (and the node that wrote it) in it."""
        if isinstance(error, CannotStore):
            root = "the error" if channel == ERROR else f"state[{channel!r}]"
            return error.inside(root, channel=channel, node=node)
        return error


def _delta_rows(ns: int, channel: int, at: int, news: Stored, before: Tip) -> list[ValueRow]:
    """A delta and, when it is due, a cache beside it."""
    assert news.tail is not None
    kind, blob = news.tail
    rows = [ValueRow(ns, channel, at, "delta", kind, blob, before.at, before.base, news.layout, news.n)]
    if news.whole is not None:
        kind, blob = news.whole
        rows.append(ValueRow(ns, channel, at, "cache", kind + FOLD + news.fold if news.fold else kind, blob, n=news.n))
    return rows


def begins_anew(parent: str | None, source: str) -> bool:
    """Whether a checkpoint has nothing of those before it: the input of a new execution, and no copy of one."""
    return parent is None and source == "input"


def _name_stored(writes: list[WriteRow], values: list[ValueRow], parent: bytes) -> None:
    """Let the writes under the parent that are just what a delta or a whole value says name it."""
    places: dict[int, list[int]] = {}  # of long writes, by channel
    for place in range(len(writes) - 1, -1, -1):
        row = writes[place]
        if row.checkpoint != parent or row.ns != values[0].ns:
            break
        if row.idx >= 0 and len(row.blob) > INLINE:
            places.setdefault(row.channel, []).append(place)
    for value in values if places else ():
        if value.kind == "cache" or len(value.blob) <= INLINE:
            continue
        for place in places.get(value.channel, ()):
            row = writes[place]
            if row.blob == value.blob and _is_of(row, value):
                name = NAMED if value.kind == "delta" else NAMED_WHOLE
                writes[place] = row._replace(type=name, blob=str(value.at).encode())
                break


def _is_of(row: WriteRow, value: ValueRow) -> bool:
    """Whether a write has the type of a value, whatever reducer that is for."""
    return row.type == value.type or row.type == value.type.partition(FOLD)[0]


def _seen(node: str, counters: Mapping[str, int], ids: Mapping[str, int]) -> int | dict[int, int]:
    if node == INTERRUPT and counters.keys() == {""}:
        return counters[""]
    return {ids[channel]: counter for channel, counter in counters.items()}
