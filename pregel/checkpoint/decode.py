"""Rows as a `Saved`: what a reading flow asks for, step by step, and the values at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache, partial
from operator import itemgetter
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.channels import MISSING, BaseChannel, DeltaChannel
from pregel.channels.batches import Unfolded
from pregel.checkpoint.chains import Address, Chains, Wanted
from pregel.checkpoint.keys import Names, id_text
from pregel.checkpoint.logs import NAMING
from pregel.checkpoint.manifest import INLINE, Piece, Read
from pregel.checkpoint.recent import RecentLists
from pregel.checkpoint.records import CheckpointRow, Saved, Write, WriteRow
from pregel.checkpoint.serde.base import SerializerProtocol, in_clear
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer, atom
from pregel.checkpoint.serde.metadata import flat_metadata, metadata_of
from pregel.checkpoint.serde.unpacking import IS_PLAIN
from pregel.errors import JournalDamaged

Base = tuple[bytes, bytes]  # id and manifest of the whole one
_place = itemgetter(4, 0, 1)  # path, task, index
_write = partial(tuple.__new__, Write)  # a third of the cost of calling the class
Prototypes = Mapping[str, BaseChannel[Any, Any, Any]]
"""The channels of a graph by name."""


NO_CHAINS = Chains()  # nothing is ever added to it


class UnknownNameError(LookupError):
    """A row uses a name that another process interned: read the names again."""


class Decoder:
    """Reads the rows of a store."""

    __slots__ = ("_dumps", "_lists", "_loads", "loads", "names", "recent", "serde")

    def __init__(self, serde: SerializerProtocol, names: Names, recent: RecentLists | None = None) -> None:
        self.serde, self._dumps = serde, in_clear(serde).dumps_typed
        self.loads = self._loads = serde.loads_typed
        self._lists = serde.loads_lists if type(serde) is JsonPlusSerializer else None
        self.names = names
        self.recent = None if self._lists is None else recent  # what another serialiser gives may not be ours to keep

    def manifest(self, row: CheckpointRow, base: Base | None) -> Read:
        """The manifest of a checkpoint, over its base."""
        if row.base is not None and base is None:
            raise JournalDamaged(f"Checkpoint {id_text(row.id)} needs {id_text(row.base)}, which is gone.")
        return Read(row.id, row.manifest, base)

    @staticmethod
    def addresses(read: Read) -> list[Address]:
        """Where the values are that have a row of their own."""
        return [(channel, at) for channel, at, _ in Decoder.wanted(read)]

    @staticmethod
    def wanted(read: Read) -> list[Wanted]:
        """The same with what a delta stands on."""
        return [
            (piece[0], piece[2], piece[5] if len(piece) == 6 else None)
            for piece in read.channels
            if len(piece) in (3, 6)
        ]

    def short(self, ns: str, row: CheckpointRow, base: Base | None, writes: Sequence[WriteRow]) -> Saved | None:
        """The checkpoint, when all of it stands in these rows; None when other rows, or names, are to be asked for."""
        read = Read(row.id, row.manifest, base)
        if not read.is_short:
            return None
        for write in writes:
            if write.type in NAMING:
                return None
        try:
            return self.saved(ns, row, read, NO_CHAINS, writes)
        except UnknownNameError:
            return None

    def saved(
        self,
        ns: str,
        row: CheckpointRow,
        read: Read,
        chains: Chains,
        writes: Sequence[WriteRow],
    ) -> Saved:
        """The checkpoint. UnknownNameError when a name must be fetched first."""
        if read.foreign is not None:
            metadata = metadata_of(row.metadata)
        elif (flat := flat_metadata(row.metadata)) is not None:
            metadata = {"source": row.source, "step": row.step, "parents": {}, **flat}
        else:
            metadata = {"source": row.source, "step": row.step, "parents": {}, **metadata_of(row.metadata)}
        saved = Saved(
            ns,
            id_text(row.id),
            None if row.parent is None else id_text(row.parent),
            row.step,
            row.source,  # type: ignore[arg-type]
            metadata,
            iso(row.created_at),
            row.lineage,
            {},
            {},
            {},
            {},
            None,
            list(read.applied),
            [],
            None,
            read,
        )
        try:
            self._fill(saved, read, chains)
            if writes:
                saved.writes = self._writes(writes, chains)
        except KeyError as error:
            raise UnknownNameError(*error.args) from None
        if read.foreign is not None:
            kind, blob = msgpack.unpackb(read.foreign)
            saved.foreign = self._loads((kind, blob))
        return saved

    def differing(self, saved: Saved, other: Saved, channels: Prototypes) -> list[str]:
        """The channels with a log of which two readings of one checkpoint do not agree.

        Where a reducer is needed it is the one of these channels; without it nothing can be said.
        """
        found: list[str] = []
        for key in saved.manifest.logs:
            text = self.names.texts[key]
            values = [_folded(one.values[text], text, channels) for one in (saved, other)]
            if MISSING not in values and self._dumps(values[0]) != self._dumps(values[1]):
                found.append(text)
        return found

    def _fill(self, saved: Saved, read: Read, chains: Chains) -> None:
        texts, loads, plain = self.names.texts, self._loads, self._lists is not None
        values, counters, ats = saved.values, saved.counters, saved.ats
        for piece in read.channels:
            channel = texts[piece[0]]
            counters[channel], ats[channel] = piece[1], piece[2]
            parts = len(piece)
            if parts == 4:  # most are short, or empty
                blob = piece[3]
                if blob:
                    values[channel] = atom(blob) if plain and IS_PLAIN[blob[0]] else loads(("msgpack", blob))
                elif blob is not None:
                    values[channel] = None
            elif parts == 5:
                values[channel] = loads((piece[4], piece[3]))
            else:
                values[channel] = self._long(saved, read, channel, piece, chains)
        for key, seen in read.seen:
            if seen.__class__ is int:
                saved.seen[texts[key]] = {"": seen}
                continue
            counted = saved.seen[texts[key]] = {}
            for node, counter in seen.items():
                counted[texts[node]] = counter
        if read.updated is not None:
            saved.updated = [*map(texts.__getitem__, read.updated)]

    def _long(self, saved: Saved, read: Read, channel: str, piece: Piece, chains: Chains) -> Any:
        """A value that has rows of its own."""
        key, _, at, *_ = piece
        try:
            value, tip = chains.value(key, at, self._loads, self._lists)
        except JournalDamaged as error:
            where = f"The value of {channel!r} at {at} is gone (checkpoint {saved.id})."
            raise JournalDamaged(f"{where} {error.message}", channel=channel) from None
        if tip is not None:
            read.logs[key] = tip
        return value

    def _writes(self, rows: Sequence[WriteRow], chains: Chains) -> list[Write]:
        texts, loads, plain = self.names.texts, self._loads, self._lists is not None
        writes = []
        for _, _, task, idx, key, kind, blob, path, name, child in rows:
            if plain and kind == "msgpack" and len(blob) <= INLINE and IS_PLAIN[blob[0]]:
                value = atom(blob)
            elif kind == "null" and plain:
                value = None
            else:
                value = loads((kind, blob) if kind not in NAMING else chains.written(kind, key, int(blob)))
            child_text = None if child is None else id_text(child)
            writes.append(_write((id_text(task), idx, texts[key], value, path, texts[name], child_text)))
        if len(writes) > 1:
            writes.sort(key=_place)
        return writes


def iso(seconds: float) -> str:
    """Unix seconds as ISO 8601 in UTC, with microseconds."""
    if seconds < 0:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    text = f"{seconds:.6f}"
    return f"{_to_the_second(text[:-7])}{text[-7:]}+00:00"


@lru_cache(256)
def _to_the_second(whole: str) -> str:
    return datetime.fromtimestamp(int(whole), UTC).isoformat()[:19]


def filters(metadata: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether every wanted key is equal; None also matches a key that is not there."""
    return not wanted or all(metadata.get(key) == value for key, value in wanted.items())


def _folded(value: Any, name: str, channels: Prototypes) -> Any:
    """The value; MISSING when only a reducer that is not there can make it."""
    if type(value) is not Unfolded:
        return value
    channel = channels.get(name)
    if not isinstance(channel, DeltaChannel) or channel.fold != value.fold:  # another graph's channel of that name
        return MISSING
    return channel.from_checkpoint(value).get()
