"""The manifest of a checkpoint: which value each channel has, what each node has seen, in packed pieces.

1. Whole, or the changes since the whole one named by `base`: at most two rows are read, at any depth.
2. Whole again when the changes written since the base outweigh it; a small graph always writes it whole.
3. One piece a channel and one a node, kept packed, so that a whole manifest is a join and not a packing.
4. Layout: an array of [channels, seen, updated, applied, folds, written, foreign]. A channel is [name, counter, at],
   followed by nothing (a value row holds it), None (empty), its blob ("msgpack", or null when empty bytes), blob and
   type, or (None, None, the `at` of the nearest whole value) when a delta row holds it. A node is
   [name, {channel: counter}] or [name, counter] for "all channels up to".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgpack  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from pregel.checkpoint.logs import Tip

INLINE = 64  # bytes; a longer value has a row of its own
SMALL = 400  # bytes; a manifest up to this is always written whole

Piece = Any  # packed bytes, or the parts they were unpacked to

_SHORT = frozenset((4, 5))  # parts of a channel whose value stands here
_HEADS = [bytes([0x90 + n]) for n in range(16)]


class Manifest:
    """The manifest of the newest checkpoint of one branch, and how it would be written next."""

    __slots__ = ("base", "channels", "folds", "logs", "seen", "since_channels", "since_seen", "size", "written")

    def __init__(self) -> None:
        self.channels: dict[int, Piece] = {}
        self.seen: dict[int, Piece] = {}
        self.folds: dict[int, int] = {}
        self.logs: dict[int, Tip] = {}  # of the channels that hold a list with rows of its own
        self.base: bytes | None = None  # id of the whole one that changes are counted from
        self.since_channels: dict[int, Piece] = {}
        self.since_seen: dict[int, Piece] = {}
        self.size = 0  # of the base, in bytes
        self.written = 0  # bytes of changes since the base

    def advance(
        self,
        checkpoint: bytes,
        channels: dict[int, Piece],
        seen: dict[int, Piece],
        tail: bytes,
        foreign: bytes = b"\xc0",
    ) -> tuple[bytes | None, bytes]:
        """(base, manifest) to store for this checkpoint. `tail` is the packed updated and applied."""
        self.channels.update(channels)
        self.seen.update(seen)
        if self.size > SMALL and self.base is not None:
            self.since_channels.update(channels)
            self.since_seen.update(seen)
            packed = self._join(self.since_channels, self.since_seen, tail, foreign)
            if self.written + len(packed) <= self.size:
                self.written += len(packed)
                return self.base, packed
            self.since_channels, self.since_seen = {}, {}
        self.written = 0
        packed = self._join(self.channels, self.seen, tail, foreign)
        self.base, self.size = checkpoint, len(packed)
        return None, packed

    def _join(self, channels: dict[int, Piece], seen: dict[int, Piece], tail: bytes, foreign: bytes) -> bytes:
        end = pack(self.folds) + pack(self.written) if self.folds or self.written else b"\x80\x00"
        n, m = len(channels), len(seen)
        start = b"\x97" + (_HEADS[n] if n < 16 else head(n))
        middle = _HEADS[m] if m < 16 else head(m)
        try:
            return b"".join((start, *channels.values(), middle, *seen.values(), tail, end, foreign))
        except TypeError:  # some were loaded: they are packed when they are first written again
            for pieces in (channels, seen):
                pieces.update({key: pack(piece) for key, piece in pieces.items() if piece.__class__ is not bytes})
            return self._join(channels, seen, tail, foreign)


_packers: list[msgpack.Packer] = []  # free ones: a Packer is not thread-safe, and making one costs more than packing


def pack(value: Any) -> bytes:
    """Plain values as msgpack."""
    try:
        packer = _packers.pop()
    except IndexError:
        packer = msgpack.Packer(unicode_errors="surrogatepass")
    packed: bytes = packer.pack(value)
    _packers.append(packer)
    return packed


def head(count: int) -> bytes:
    """The start of a packed array of that many items."""
    if count < 16:
        return _HEADS[count]
    return b"\xdc" + count.to_bytes(2, "big") if count < 65536 else b"\xdd" + count.to_bytes(4, "big")


class Read:
    """A stored manifest, unpacked and laid over its base."""

    __slots__ = (
        "_base",
        "_checkpoint",
        "_kept",
        "_own",
        "_size",
        "applied",
        "channels",
        "foreign",
        "is_short",
        "logs",
        "seen",
        "updated",
    )

    def __init__(self, checkpoint: bytes, blob: bytes, base: tuple[bytes, bytes] | None) -> None:
        own = msgpack.unpackb(blob, use_list=False, strict_map_key=False)
        channels, seen, self.updated, self.applied, _, _, self.foreign = own
        self._own, self._checkpoint, self._size = own, checkpoint, len(blob)
        self._base: tuple[bytes, int] | None = None  # its id, and how long its manifest is
        self._kept: Manifest | None = None
        self.logs: dict[int, Tip] = {}  # those that were read
        if base is not None:
            below = msgpack.unpackb(base[1], use_list=False, strict_map_key=False)
            self._base = base[0], len(base[1])
            channels = tuple((_by_name(below[0]) | _by_name(channels)).values())
            seen = tuple((_by_name(below[1]) | _by_name(seen)).values())
        self.channels: tuple[Piece, ...] = channels
        self.seen: tuple[Piece, ...] = seen
        self.is_short = _SHORT.issuperset(map(len, channels))  # all values stand in the manifest itself

    @property
    def manifest(self) -> Manifest:
        """What a run goes on from, made when there is one: most that is read is only looked at."""
        kept = self._kept
        if kept is None:
            kept = self._kept = Manifest()
            channels, seen, _, _, kept.folds, kept.written, _ = self._own
            kept.channels, kept.seen, kept.logs = _by_name(self.channels), _by_name(self.seen), self.logs
            if self._base is None:
                kept.base, kept.size = self._checkpoint, self._size
            else:
                kept.base, kept.size = self._base
                kept.written += self._size
                kept.since_channels, kept.since_seen = _by_name(channels), _by_name(seen)
        return kept


def _by_name(pieces: tuple[Piece, ...]) -> dict[int, Piece]:
    return {piece[0]: piece for piece in pieces}
