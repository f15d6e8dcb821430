"""Stored msgpack to values again, with one reader for each depth of objects inside objects.

1. What the bytes hold decides nothing but which value of the closed table, or of a registered class, is made. Any
   other bytes are an error.
2. Each call of `unpackb` keeps 40 kB on the C stack, so only the first depths use it, for large values: bytes that nest
   for ever end in an error and not in a crash. An Unpacker has its state on the heap.
3. An array is allocated before its elements are read, so bytes that may hold one of 16 or more elements are gone
   through first, without making anything: it must be as long as it says. Nothing else is allocated on bytes' word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.checkpoint.serde.adapters import library_codec_of
from pregel.checkpoint.serde.codecs import BY_CODE, MESSAGE, checked
from pregel.checkpoint.serde.event_hooks import emit_serde_event
from pregel.checkpoint.serde.objects import KINDS, USER_CODES, reader_of
from pregel.checkpoint.serde.packing import DEEPEST
from pregel.checkpoint.serde.registry import Classes, name_of, watch
from pregel.errors import SerializationError

ON_THE_STACK = 8
SMALL = 4096  # bytes; most values
NO_PARTS = "what a value is made of is missing"
LEFT_OVER = "bytes are left over"

Load = Callable[[list[Any]], Any]
"""Makes an object of its parts."""

_ITEMS = ((0x00, 0x7F), (0xA0, 0xC0), (0xC2, 0xC6), (0xCA, 0xD3), (0xD9, 0xDB), (0xE0, 0xFF))
IS_PLAIN = bytes(any(first <= code <= last for first, last in _ITEMS) for code in range(256))
"""By the first byte: whether a value is a number, a text, bytes, a truth value or None, and so has no parts."""
plain = partial(msgpack.unpackb, unicode_errors="surrogatepass")


class InvalidModuleError(SerializationError):
    """A stored value is of a class that is not registered."""


class Readers(dict[str, Load]):
    """How the classes of one kind are read by one serialiser, by the name of the class."""

    def __init__(self, code: int, classes: Classes) -> None:
        super().__init__()
        self._code, self._classes = code, classes
        watch(self)

    def __missing__(self, name: str) -> Load:
        checked(name, str)
        load = self[name] = reader_of(self._class(name), self._code)
        return load

    def forget(self, cls: type) -> None:
        """Look the class's name up again when it is next met."""
        self.pop(name_of(cls), None)

    def _class(self, name: str) -> type:
        if self._code == MESSAGE and ":" not in name:
            from pregel.checkpoint.serde.messages import message_class

            return message_class(name)
        cls = self._classes.find(name)
        if cls is None:
            module, _, path = name.partition(":")
            emit_serde_event({"kind": "msgpack_blocked", "module": module, "name": path})
            raise InvalidModuleError(
                f"A stored value is of the class {name[:200]}, which is not registered here.",
                fix="Use it in the state schema, or call register_types or JsonPlusSerializer(allow=[...]).",
            )
        return cls


def all_readers(classes: Classes) -> dict[int, Readers]:
    """How user classes are read by one serialiser, by ext code."""
    return {kind.code: Readers(kind.code, classes) for kind in KINDS}


class Unpacking:
    """Unpacks values of one depth. The next depth is made when it is first needed."""

    __slots__ = ("_depth", "_inner", "_readers", "_settings", "_unpackers")

    def __init__(self, readers: dict[int, Readers], depth: int = 0) -> None:
        self._readers, self._depth = readers, depth
        self._inner: Unpacking | None = None
        self._unpackers: list[msgpack.Unpacker] = []  # an unpacker is not re-entrant, so each use takes one
        self._settings: dict[str, Any] = {
            "strict_map_key": False,
            "ext_hook": self._restore,
            "unicode_errors": "surrogatepass",
            "timestamp": 3,  # a datetime: the bytes are not ours, but they make no type beyond the table
        }

    def unpack(self, data: bytes) -> Any:
        """The value that was packed; whatever error the bytes gave."""
        if len(data) > SMALL:
            return self._unpack_large(data)
        try:
            unpacker = self._unpackers.pop()
        except IndexError:
            unpacker = msgpack.Unpacker(None, read_size=SMALL, max_buffer_size=SMALL, **self._settings)
        if 0xDC in data or 0xDD in data:
            _check(unpacker, data)
        unpacker.feed(data)
        value = unpacker.unpack()
        if unpacker.read_bytes(1):
            raise ValueError(LEFT_OVER)
        self._unpackers.append(unpacker)
        return value

    def _unpack_large(self, data: bytes) -> Any:
        on_heap = self._depth >= ON_THE_STACK
        is_checked = 0xDC in data or 0xDD in data
        if on_heap or is_checked:
            unpacker = msgpack.Unpacker(None, read_size=len(data), max_buffer_size=len(data), **self._settings)
            if is_checked:
                _check(unpacker, data)
        if not on_heap:
            return msgpack.unpackb(data, **self._settings)
        unpacker.feed(data)
        value = unpacker.unpack()
        if unpacker.read_bytes(1):
            raise ValueError(LEFT_OVER)
        return value

    def _restore(self, code: int, data: bytes) -> Any:
        """Called by msgpack for everything that it has no notation for."""
        inner = self._inner
        if inner is None:
            inner = self._deeper()
        if code in USER_CODES:
            parts = inner.unpack(data)
            if type(parts) is not list:
                raise ValueError(NO_PARTS)
            return self._readers[code][parts[0]](parts)
        codec = BY_CODE.get(code) or library_codec_of(code)
        if codec is None:
            raise SerializationError(f"Stored bytes use ext code {code}, which this version does not know.")
        if codec.raw:
            return codec.load(data)
        parts = inner.unpack(data)
        if type(parts) is not list and type(parts) is not dict:
            raise ValueError(NO_PARTS)
        return codec.load(parts)

    def _deeper(self) -> Unpacking:
        if self._depth == DEEPEST:
            raise SerializationError("A stored value is nested too deeply.")
        self._inner = Unpacking(self._readers, self._depth + 1)
        return self._inner


def _check(unpacker: msgpack.Unpacker, data: bytes) -> None:
    """An error when the bytes are not one whole value."""
    unpacker.feed(data)
    unpacker.skip()
    if unpacker.read_bytes(1):
        raise ValueError(LEFT_OVER)
