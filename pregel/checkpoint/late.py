"""A ledger for a store in memory: what a run says is kept as it was said, and becomes rows when somebody reads.

1. A value that nobody can change is kept as it is; any other is encoded at once, so what cannot be stored is refused
   here, before its append, and what changes it later changes no record.
2. The rows are those that a `Ledger` makes: they are made in the order of the appends, under the store's lock, by a
   translator of their own, so that a reader on another thread meets nothing that the run is using.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

from pregel.channels.base import MISSING, Missing
from pregel.channels.batches import Batched
from pregel.channels.growth import Log
from pregel.checkpoint.keys import Names, lineage_after, pull_text
from pregel.checkpoint.ledger import LOGGED, Ledger, begins_anew
from pregel.checkpoint.logs import Stored, Tip
from pregel.checkpoint.records import ERROR, Append, Lone, Opened, Save, TaskWrites
from pregel.checkpoint.serde.base import SerializerProtocol
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.serde.metadata import metadata_blob
from pregel.errors import SerializationError, told

ATOMS = frozenset((type(None), bool, int, float, str, bytes))
"""What is immutable, and what our serialiser never refuses."""

NUMBERS = frozenset((type(None), bool, int, float))
"""Of these a short list is small enough for a manifest, so it never has a log."""

KEPT = ATOMS | {Missing}
"""What a channel may hold beside them."""

NONE = frozenset[type]()
NONE_KEPT = frozenset[type]((Missing,))

FEW = 6
MANY = 32  # writes, which are asked all at once whether they are atoms
VALUE = itemgetter(1)

GONE = ...
"""Stands for an empty channel: `MISSING` is an object that the garbage collector would follow."""

Said = tuple[Any, ...]
"""The fields of a TaskWrites; those of a Save with its seq and when it was made; or those of a Lone with them.

A number stands in the place of metadata and, where a lineage follows from the record before, None in the place of that.
A value is what nobody can change, `GONE`, a tuple (type, bytes) of what is encoded already, a tuple of None and the
items of a short list, or a `Stored`. So what is kept is mostly a plain tuple of plain tuples, which the garbage
collector soon leaves alone: what a run has kept is not looked at again while it goes on."""

WRITES, LONE = len(TaskWrites._fields), len(Lone._fields) + 2


class LateLedger(Ledger):
    """Keeps a run's records in its appends; `translate` makes rows of them."""

    __slots__ = (*("_atoms", "_heads", "_intern", "_kept", "_metadata", "_numbers", "_owner", "_tips", "_translators"),)

    def __init__(self, serde: SerializerProtocol, names: Names, intern: Callable[[set[str]], None]) -> None:
        super().__init__(serde, names)
        self._intern = intern
        self._translators: dict[None, Translator] = {}  # none before there is something to translate
        self._atoms, self._kept = (ATOMS, KEPT) if type(serde) is JsonPlusSerializer else (NONE, NONE_KEPT)
        self._tips: dict[tuple[str, str], Tip] = {}  # where the log of a channel of a namespace stands
        self._heads: dict[str, str] = {}  # the checkpoint that a namespace stands on
        self._metadata: list[tuple[Mapping[str, Any], bytes]] = []  # each with what is stored of it
        self._numbers: dict[int, int] = {}  # where in that list an object is, by its id
        self._owner: object = None  # what the encodings belong to

    def _translator(self) -> Translator:
        """The one translator: two threads that ask at once are given the same."""
        return self._translators.get(None) or self._translators.setdefault(None, Translator(self._serde, self.names))

    def open(self, opened: Opened) -> None:
        if opened.thread.tno:  # of a new thread there is nothing to go on from
            self._translator().open(opened)
        for saved in opened.saved:
            if saved is not None:
                self._heads[saved.ns] = saved.id
                self._tips = {place: tip for place, tip in self._tips.items() if place[0] != saved.ns}
                for key, tip in saved.manifest.logs.items():
                    self._tips[saved.ns, self.names.texts[key]] = tip

    def missing(self, writes: Iterable[TaskWrites] = (), saves: Iterable[Save | Lone] = ()) -> set[str]:
        return set()  # names are interned when the rows are made

    def add_writes(self, record: TaskWrites, append: Append) -> None:
        append.ledger = self
        ns, checkpoint, task, name, path, writes, first, child = record
        atoms = self._atoms
        for _, value in writes:
            if type(value) not in atoms:
                writes = self._safe_writes(name, writes, append)
                break
        append.said.append((ns, checkpoint, task, name, path, writes, first, child))

    def add_save(self, save: Save, append: Append, at: int, now: float | None = None) -> None:
        append.ledger = self
        ns, id, parent, step, source, metadata, lineage, changed, seen, updated, applied = save
        if self._tips and begins_anew(parent, source):
            self._tips = {place: tip for place, tip in self._tips.items() if place[0] != ns}
        number = self._number(metadata)
        values = self._safe_values(ns, [(name, value) for name, (_, value) in changed.items()], append)
        news = tuple([(name, at[0], value) for (name, at), value in zip(changed.items(), values, strict=True)])
        marks = tuple([(node, tuple(counters.items())) for node, counters in seen.items()])
        self._heads[ns] = id
        self._forget()  # the next step's reducers may grow a value in place
        append.said.append(
            (
                *(ns, id, parent, step, source, number, bytes(lineage), news, marks),
                None if updated is None else tuple(updated),
                tuple(applied),
                at,
                time.time() if now is None else now,
            )
        )

    def add_lone(self, lone: Lone, append: Append, at: int, now: float | None = None) -> None:
        append.ledger = self
        append.said.append(self.step(lone, at, time.time() if now is None else now))

    def step(self, lone: Lone, at: int, now: float) -> Said:
        """What is kept of a usual superstep: all of it, or a SerializationError that leaves everything as it was."""
        ns, id, parent, step, name, triggers, writes, counter, changed, values, seen, updated, metadata, lineage = lone
        number = self._number(metadata)
        atoms = self._atoms
        asked = len(writes) > MANY and atoms.issuperset(map(type, map(VALUE, writes)))
        for _, value in () if asked else writes:
            if type(value) not in atoms:
                writes = self._safe_writes(name, writes, lone)
                break
        if not self._kept.issuperset(map(type, values)):
            values = tuple(self._safe_values(ns, zip(changed, values, strict=True), lone))
        else:
            if self._tips:
                for channel in changed:
                    self._tips.pop((ns, channel), None)
            if MISSING in values:
                values = _marked(values)
        if self._encoded:
            self._forget()
        digest = None if self._heads.get(ns) == parent else bytes(lineage)
        self._heads[ns] = id
        return (
            *(ns, id, parent, step, name, triggers, writes, counter, changed, values, seen, updated, number, digest),
            at,
            now,
        )

    def _number(self, metadata: Mapping[str, Any]) -> int:
        """The number of a metadata that is known to be plain data; a run has one for each of its graphs."""
        number = self._numbers.get(id(metadata))
        if number is None:
            shown = metadata, metadata_blob(metadata)
            number = self._numbers[id(metadata)] = len(self._metadata)
            self._metadata.append(shown)
        return number

    def translate(self, said: Iterable[Said]) -> Append:
        """The rows of what was said, in an append that is sent nowhere. To be called in the order of the appends."""
        rows = Append("", 0, 0, b"", 0, 0, b"")
        translator = self._translator()
        for fields_of in said:
            if len(fields_of) == WRITES:
                record = TaskWrites._make(fields_of)
                if unknown := translator.missing(writes=(record,)):
                    self._intern(unknown)
                translator.add_writes(record, rows)
            elif len(fields_of) == LONE:
                lone = self._lone(fields_of)
                if unknown := translator.missing(saves=(lone,)):
                    self._intern(unknown)
                translator.add_lone(lone, rows, *fields_of[-2:])
            else:
                save = self._save(fields_of)
                if unknown := translator.missing(saves=(save,)):
                    self._intern(unknown)
                translator.add_save(save, rows, *fields_of[-2:])
        return rows

    def _lone(self, fields_of: Said) -> Lone:
        *said, values, seen, updated, number, digest, _, _ = fields_of
        ns, name = said[0], said[4]
        metadata = self._told(number)
        lineage = digest or lineage_after(self._translator().lineages[ns], [pull_text(name)])
        live = tuple([MISSING if value is GONE else value for value in values])
        return Lone._make((*said, live, seen, updated, metadata, lineage))

    def _save(self, fields_of: Said) -> Save:
        ns, id, parent, step, source, number, lineage, news, marks, updated, applied, _, _ = fields_of
        changed = {name: (counter, MISSING if value is GONE else value) for name, counter, value in news}
        seen = {node: dict(counters) for node, counters in marks}
        return Save(ns, id, parent, step, source, self._told(number), lineage, changed, seen, updated, applied)

    def _told(self, number: int) -> Mapping[str, Any]:
        """The metadata of a number, which the translator need not encode again."""
        self._translator().shown = shown = self._metadata[number]
        return shown[0]

    def _begin(self, owner: object) -> None:
        """Encodings for an earlier append, or usual step, are forgotten: what they show may change."""
        if owner is not self._owner:
            self._forget()
            self._owner = owner

    def _forget(self) -> None:
        self._owner = None
        self._encoded.clear()

    def _safe_writes(self, name: str, writes: Iterable[tuple[str, Any]], owner: object) -> tuple[tuple[str, Any], ...]:
        self._begin(owner)
        atoms, safe = self._atoms, []
        channel = ""
        try:
            for channel, value in writes:
                if channel == ERROR and isinstance(value, BaseException):
                    value = told(value)
                safe.append((channel, value if type(value) in atoms else self._safe(value)))
        except SerializationError as error:
            raise self._placed(error, channel, name) from None
        return tuple(safe)

    def _safe_values(self, ns: str, changed: Iterable[tuple[str, Any]], owner: object) -> list[Any]:
        self._begin(owner)
        plain, known = self._kept, self._tips
        safe: list[Any] = []
        tips: dict[tuple[str, str], Tip | None] = {}
        channel = ""
        try:
            for channel, value in changed:
                kept, tip = value, None
                kind = type(value)
                if kind in LOGGED:
                    tip = known.get((ns, channel))
                    if tip is None and kind is Log and (few := self._few(value.value, NUMBERS)) is not None:
                        kept = few
                    else:
                        kept = self._stored(value, tip)
                        tip = kept.tip
                elif value is MISSING:
                    kept = GONE
                elif kind not in plain:
                    kept = self._safe(value)
                if tip is not None or known:
                    tips[ns, channel] = tip
                safe.append(kept)
        except SerializationError as error:
            raise self._placed(error, channel) from None
        for place, tip in tips.items():
            if tip is None:
                known.pop(place, None)
            else:
                known[place] = tip
        return safe

    def _safe(self, value: Any) -> Any:
        """A value that nothing changes any more."""
        few = self._few(value, self._atoms)
        return tuple(self._encode(value)) if few is None else few

    def _few(self, value: Any, kinds: frozenset[type]) -> tuple[Any, ...] | None:
        """The items of a short list of such values, which becomes a list again when rows are made."""
        if type(value) is list and len(value) <= FEW and self._atoms and kinds.issuperset(map(type, value)):
            return None, *value
        return None


def _marked(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values with `GONE` for each that is missing."""
    marked, at = [*values], -1
    for _ in range(values.count(MISSING)):
        at = values.index(MISSING, at + 1)
        marked[at] = GONE
    return tuple(marked)


class Translator(Ledger):
    """A ledger that is given some values encoded already, and knows the lineage of what each namespace stands on."""

    __slots__ = ("lineages",)

    def __init__(self, serde: SerializerProtocol, names: Names) -> None:
        super().__init__(serde, names)
        self.lineages: dict[str, bytes] = {}

    def open(self, opened: Opened) -> None:
        super().open(opened)
        self.lineages.update({saved.ns: saved.lineage for saved in opened.saved if saved is not None})

    def add_save(self, save: Save, append: Append, at: int, now: float | None = None) -> None:
        super().add_save(save, append, at, now)
        self.lineages[save.ns] = bytes(save.lineage)

    def add_lone(self, lone: Lone, append: Append, at: int, now: float | None = None) -> None:
        super().add_lone(lone, append, at, now)
        self.lineages[lone.ns] = bytes(lone.lineage)

    def _encode(self, value: Any) -> tuple[str, bytes]:
        if value.__class__ is not tuple:
            return super()._encode(value)
        return value if value[0] is not None else super()._encode([*value[1:]])

    def _stored(self, value: Log | Batched | Stored, tip: Tip | None) -> Stored:
        return value if isinstance(value, Stored) else super()._stored(value, tip)
