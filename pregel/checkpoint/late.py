"""A ledger for a store in memory: what a run says is kept as it was said, and becomes rows when somebody reads.

1. A value that nobody can change is kept as it is; any other is encoded at once, so what cannot be stored is refused
   here, before its append, and what changes it later changes no record.
2. The rows are those that a `Ledger` makes: they are made in the order of the appends, under the store's lock, by a
   translator of their own, so that a reader on another thread meets nothing that the run is using.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from pregel.channels.base import Missing
from pregel.channels.batches import Batched
from pregel.channels.growth import Log
from pregel.checkpoint.keys import Names
from pregel.checkpoint.ledger import LOGGED, Ledger
from pregel.checkpoint.logs import Stored, Tip
from pregel.checkpoint.records import ERROR, Append, Opened, Save, TaskWrites
from pregel.checkpoint.serde.base import SerializerProtocol
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.serde.metadata import metadata_blob
from pregel.errors import SerializationError, told

ATOMS = frozenset((type(None), bool, int, float, str, bytes))
"""What is immutable, and what our serialiser never refuses."""

Said = tuple[Any, ...]
"""The fields of a TaskWrites, or those of a Save with its seq and when it was made: plain tuples of what refers to
nothing, which the garbage collector soon leaves alone."""

WRITES = len(TaskWrites._fields)


class Encoded(tuple[str, bytes]):
    """A value that is encoded already."""

    __slots__ = ()


class LateLedger(Ledger):
    """Keeps a run's records in its appends; `translate` makes rows of them."""

    __slots__ = ("_atoms", "_checked", "_intern", "_kept", "_tips", "_translator")

    def __init__(self, serde: SerializerProtocol, names: Names, intern: Callable[[set[str]], None]) -> None:
        super().__init__(serde, names)
        self._intern = intern
        self._translator = Translator(serde, names)
        self._atoms = ATOMS if type(serde) is JsonPlusSerializer else frozenset[type]()
        self._kept = self._atoms | {Missing}  # what a channel may hold beside them
        self._tips: dict[tuple[str, str], Tip] = {}  # where the log of a channel of a namespace stands
        self._checked: Any = None  # metadata that is known to be plain data

    def open(self, opened: Opened) -> None:
        self._translator.open(opened)
        for saved in opened.saved:
            if saved is not None:
                self._tips = {place: tip for place, tip in self._tips.items() if place[0] != saved.ns}
                for key, tip in saved.manifest.logs.items():
                    self._tips[saved.ns, self.names.texts[key]] = tip

    def missing(self, writes: Iterable[TaskWrites] = (), saves: Iterable[Save] = ()) -> set[str]:
        return set()  # names are interned when the rows are made

    def add_writes(self, record: TaskWrites, append: Append) -> None:
        append.ledger = self
        atoms = self._atoms
        for _, value in record.writes:
            if type(value) not in atoms:
                record = record._replace(writes=self._safe_writes(record, append))
                break
        append.said.append(record[:])

    def add_save(self, save: Save, append: Append, at: int, now: float | None = None) -> None:
        append.ledger = self
        metadata, changed = save.metadata, save.changed
        if metadata is not self._checked:
            metadata_blob(metadata)
            self._checked = metadata
        kept = self._kept
        for _, value in changed.values():
            if type(value) not in kept:
                save = save._replace(changed=self._safe_values(save, append))
                break
        else:
            if self._tips:
                for channel in changed:
                    self._tips.pop((save.ns, channel), None)
        append.said.append((*save, at, time.time() if now is None else now))
        if self._encoded:
            self._encoded.clear()  # the next step's reducers may grow a value in place

    def translate(self, said: Iterable[Said]) -> Append:
        """The rows of what was said, in an append that is sent nowhere. To be called in the order of the appends."""
        rows = Append("", 0, 0, b"", 0, 0, b"")
        for fields_of in said:
            if len(fields_of) == WRITES:
                record = TaskWrites(*fields_of)
                self._intern(self._translator.missing(writes=(record,)))
                self._translator.add_writes(record, rows)
            else:
                save = Save(*fields_of[:-2])
                self._intern(self._translator.missing(saves=(save,)))
                self._translator.add_save(save, rows, *fields_of[-2:])
        return rows

    def _begin(self, append: Append) -> None:
        """Encodings of an earlier append are forgotten: what they show may change."""
        if append is not self._append:
            self._append = append
            self._encoded.clear()

    def _safe_writes(self, record: TaskWrites, append: Append) -> tuple[tuple[str, Any], ...]:
        self._begin(append)
        atoms, safe = self._atoms, []
        channel = ""
        try:
            for channel, value in record.writes:
                if channel == ERROR and isinstance(value, BaseException):
                    value = told(value)
                safe.append((channel, value if type(value) in atoms else Encoded(self._encode(value))))
        except SerializationError as error:
            raise self._placed(error, channel, record.name) from None
        return tuple(safe)

    def _safe_values(self, save: Save, append: Append) -> dict[str, tuple[int, Any]]:
        self._begin(append)
        plain = self._kept
        safe: dict[str, tuple[int, Any]] = {}
        tips: dict[str, Tip | None] = {}
        channel = ""
        try:
            for channel, (counter, value) in save.changed.items():
                kept = value
                if type(value) in LOGGED:
                    kept = self._stored(value, self._tips.get((save.ns, channel)))
                    tips[channel] = kept.tip
                elif type(value) not in plain:
                    kept = Encoded(self._encode(value))
                safe[channel] = counter, kept
        except SerializationError as error:
            raise self._placed(error, channel) from None
        for channel in safe:
            self._tips.pop((save.ns, channel), None)
        self._tips.update({(save.ns, channel): tip for channel, tip in tips.items() if tip is not None})
        return safe


class Translator(Ledger):
    """A ledger that is given some values encoded already."""

    __slots__ = ()

    def _encode(self, value: Any) -> tuple[str, bytes]:
        return value if value.__class__ is Encoded else super()._encode(value)

    def _stored(self, value: Log | Batched | Stored, tip: Tip | None) -> Stored:
        return value if isinstance(value, Stored) else super()._stored(value, tip)
