"""Rows as a `Saved`: what a reading flow asks for, step by step, and the values at the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.channels import MISSING, BaseChannel, DeltaChannel
from pregel.channels.batches import Unfolded
from pregel.checkpoint.chains import Address, Chains, Name, Wanted
from pregel.checkpoint.keys import Names, id_text
from pregel.checkpoint.logs import NAMED, NAMED_WHOLE
from pregel.checkpoint.manifest import Read
from pregel.checkpoint.recent import RecentLists
from pregel.checkpoint.records import CheckpointRow, Saved, Write, WriteRow
from pregel.checkpoint.serde.base import SerializerProtocol
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.checkpoint.serde.metadata import metadata_of
from pregel.errors import JournalDamaged

Base = tuple[bytes, bytes]  # id and manifest of the whole one
Prototypes = Mapping[str, BaseChannel[Any, Any, Any]]
"""The channels of a graph by name."""


class UnknownNameError(LookupError):
    """A row uses a name that another process interned: read the names again."""


class Decoder:
    """Reads the rows of a store."""

    __slots__ = ("_dumps", "_lists", "_loads", "loads", "names", "recent")

    def __init__(self, serde: SerializerProtocol, names: Names, recent: RecentLists | None = None) -> None:
        self._dumps = serde.dumps_typed
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
        found: list[Address] = []
        for piece in read.manifest.channels.values():
            if len(piece) in (3, 6):
                found.append((piece[0], piece[2]))
        return found

    @staticmethod
    def wanted(read: Read) -> list[Wanted]:
        """The same with what a delta stands on."""
        found: list[Wanted] = []
        for piece in read.manifest.channels.values():
            if len(piece) == 3:
                found.append((piece[0], piece[2], None))
            elif len(piece) == 6:
                found.append((piece[0], piece[2], piece[5]))
        return found

    def saved(
        self,
        ns: str,
        row: CheckpointRow,
        read: Read,
        chains: Chains,
        writes: Iterable[WriteRow],
    ) -> Saved:
        """The checkpoint. UnknownNameError when a name must be fetched first."""
        metadata = metadata_of(row.metadata)
        if read.foreign is None:
            metadata = {"source": row.source, "step": row.step, "parents": {}, **metadata}
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
            read.manifest,
        )
        try:
            self._fill(saved, read, chains)
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
        texts, loads = self.names.texts, self._loads
        for piece in read.manifest.channels.values():
            channel = texts[piece[0]]
            saved.counters[channel] = piece[1]
            saved.ats[channel] = piece[2]
            match len(piece):
                case 3 | 6:
                    try:
                        saved.values[channel], tip = chains.value(piece[0], piece[2], loads, self._lists)
                    except JournalDamaged as error:
                        where = f"The value of {channel!r} at {piece[2]} is gone (checkpoint {saved.id})."
                        raise JournalDamaged(f"{where} {error.message}", channel=channel) from None
                    if tip is not None:
                        read.manifest.logs[piece[0]] = tip
                case 4:
                    if piece[3] is not None:
                        saved.values[channel] = loads(("msgpack", piece[3])) if piece[3] else None
                case _:
                    saved.values[channel] = loads((piece[4], piece[3]))
        for key, seen in read.manifest.seen.values():
            saved.seen[texts[key]] = (
                {"": seen} if seen.__class__ is int else {texts[c]: counter for c, counter in seen.items()}
            )
        if read.updated is not None:
            saved.updated = [texts[key] for key in read.updated]

    def _writes(self, rows: Iterable[WriteRow], chains: Chains) -> list[Write]:
        texts, loads = self.names.texts, self._loads
        writes = [
            Write(
                id_text(row.task),
                row.idx,
                texts[row.channel],
                loads(chains.written(*name) if (name := named_by(row)) else (row.type, row.blob)),
                row.path,
                texts[row.name],
                None if row.child is None else id_text(row.child),
            )
            for row in rows
        ]
        if len(writes) > 1:
            writes.sort(key=lambda write: (write.path, write.task, write.idx))
        return writes


def named_by(row: WriteRow) -> Name | None:
    """The stored row that holds what a write wrote, where it is not in the write itself."""
    return (row.type, row.channel, int(row.blob)) if row.type in (NAMED, NAMED_WHOLE) else None


def iso(seconds: float) -> str:
    """Unix seconds as ISO 8601 in UTC, with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")


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
