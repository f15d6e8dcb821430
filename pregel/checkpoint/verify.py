"""Whether a thread can be read to its first record: every manifest, value and write of it is looked at.

1. Nothing is changed, and nothing is needed but the rows: a value of a class that this process does not know is told
   apart from damage.
2. What was stored is decoded without the help of any cache, and what a cache gives is compared with that. What only a
   reducer can make needs the channels of its graph; without them its batches are read, but not folded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pregel.checkpoint.chunks import StoredChunks, unpack_chunks
from pregel.checkpoint.decode import Decoder, Prototypes
from pregel.checkpoint.flows import LAST, Sql, saved_flow, thread_row
from pregel.checkpoint.keys import id_text
from pregel.checkpoint.records import CheckpointRow
from pregel.checkpoint.serde.jsonplus import InvalidModuleError
from pregel.errors import PregelError, told
from pregel.flow import Flow

PAGE = 100  # checkpoints that are looked at in one go


@dataclass(slots=True, frozen=True)
class Finding:
    """Something that is wrong with a checkpoint, or with chunks where `checkpoint` is empty.

    `unreadable` is a value of a class that is not registered here.
    """

    thread: str
    ns: str
    checkpoint: str
    kind: Literal["damaged", "unreadable"]
    what: str


def verify_flow(decoder: Decoder, thread: str, channels: Prototypes) -> Flow[list[Finding]]:
    """What is wrong with a thread; an empty list when it is whole, or not there. `channels` fold what only they can."""
    rows = yield Sql("thread", (thread,))
    if not rows:
        return []
    findings: list[Finding] = []
    tno, last = thread_row(rows[0]).tno, thread_row(rows[0]).last_id
    for _, ns in (yield Sql("namespaces", (tno,))):
        findings += yield from _verify_namespace(decoder, thread, tno, ns, last, channels)
    return findings + (yield from _verify_chunks(decoder, thread, tno))


def _verify_chunks(decoder: Decoder, thread: str, tno: int) -> Flow[list[Finding]]:
    findings: list[Finding] = []
    offset = 0
    while rows := (yield Sql("chunks", (tno, offset, PAGE))):
        for row in (StoredChunks(*one) for one in rows):
            if row.last - row.n + 1 < offset:
                what = f"its chunks up to {row.last} begin before {offset}, where others ended"
                findings.append(Finding(thread, "", "", "damaged", what))
            offset = row.last + 1
            try:
                list(unpack_chunks(decoder.loads, row))
            except Exception as error:  # a damaged blob may raise anything
                what = f"its chunks up to {row.last}: {told(error)}"
                findings.append(Finding(thread, "", "", _kind(error), what))
    return findings


def _kind(error: Exception) -> Literal["damaged", "unreadable"]:
    return "unreadable" if isinstance(error, InvalidModuleError) else "damaged"


def _verify_namespace(
    decoder: Decoder, thread: str, tno: int, ns: str, last: str, channels: Prototypes
) -> Flow[list[Finding]]:
    findings: list[Finding] = []
    parents: dict[str, str] = {}  # that were not seen yet -> the child that names them
    before = LAST
    while rows := (yield Sql("page_namespace", (thread, ns, before, PAGE))):
        page = [CheckpointRow(*row[3:]) for row in rows]
        findings += yield from _verify_page(decoder, thread, tno, ns, page, channels)
        for row in page:
            checkpoint = id_text(row.id)
            parents.pop(checkpoint, None)
            if row.parent is not None:
                parents.setdefault(id_text(row.parent), checkpoint)
            if checkpoint > last:
                findings.append(Finding(thread, ns, checkpoint, "damaged", "it is newer than the thread's last id"))
        before = rows[-1][4]
    for parent, child in parents.items():
        findings.append(Finding(thread, ns, child, "damaged", f"its parent {parent} is gone"))
    return findings


def _verify_page(
    decoder: Decoder, thread: str, tno: int, ns: str, page: Sequence[CheckpointRow], channels: Prototypes
) -> Flow[list[Finding]]:
    """The page at once, and one by one when something is wrong with it."""
    try:
        saved = yield from saved_flow(decoder, tno, ns, page, caches=False)
        cached = yield from saved_flow(decoder, tno, ns, page)
        differing = [decoder.differing(*pair, channels) for pair in zip(saved, cached, strict=True)]
    except Exception as error:  # a damaged blob may raise anything
        if len(page) > 1:
            found: list[Finding] = []
            for row in page:
                found += yield from _verify_page(decoder, thread, tno, ns, [row], channels)
            return found
        what = error.message if isinstance(error, PregelError) else told(error)
        return [Finding(thread, ns, id_text(page[0].id), _kind(error), what)]
    return [
        Finding(thread, ns, one.id, "damaged", f"the cache of {channel!r} is not what its deltas make")
        for one, names in zip(saved, differing, strict=True)
        for channel in names
    ]
