"""Large values deflated, and inflated again within a limit: bytes that would grow for ever are an error."""

from __future__ import annotations

import zlib

from pregel.errors import SerializationError

LARGEST = 256 << 20  # bytes of one value, inflated
LEVEL = 1  # most of the gain at a third of the time


def deflated(packed: bytes, largest: int) -> tuple[str, bytes]:
    """The bytes as (type, bytes): deflated when that saves a tenth or more, and they may be inflated again."""
    if len(packed) > largest:
        return "msgpack", packed
    small = zlib.compress(packed, LEVEL)
    return ("zlib", small) if len(small) <= len(packed) * 0.9 else ("msgpack", packed)


def inflated(data: bytes, largest: int) -> bytes:
    """The bytes as they were before; SerializationError when they are damaged or too many."""
    stream = zlib.decompressobj()
    try:
        packed = stream.decompress(data, largest + 1)
    except zlib.error as error:
        raise SerializationError(f"A stored value cannot be inflated: {error}") from error
    if len(packed) > largest:
        raise SerializationError(
            f"A stored value is larger than {largest} bytes.",
            fix="Give JsonPlusSerializer(largest=...) if it is yours.",
        )
    if not stream.eof or stream.unused_data:
        raise SerializationError("A stored value cannot be inflated: it is cut off, or something follows it.")
    return packed
