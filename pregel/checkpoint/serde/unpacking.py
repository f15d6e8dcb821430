"""Stored msgpack to values again, with one reader for each depth of objects inside objects.

1. What the bytes hold decides nothing but which value of the closed table, or of a registered class, is made. Any
   other bytes are an error.
2. Each call of `unpackb` keeps 40 kB on the C stack, so only the first depths use it: bytes that nest for ever end in
   an error and not in a crash. Deeper ones are read with a state on the heap, to `DEEPEST` at most.
3. Arrays and texts cannot be longer than the bytes that are left for them, so nothing is allocated on their word.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.checkpoint.serde.adapters import library_codec_of
from pregel.checkpoint.serde.codecs import BY_CODE, MESSAGE
from pregel.checkpoint.serde.event_hooks import emit_serde_event
from pregel.checkpoint.serde.objects import KINDS, reader_of
from pregel.checkpoint.serde.packing import DEEPEST
from pregel.checkpoint.serde.registry import Classes, replaced
from pregel.errors import SerializationError

ON_THE_STACK = 8
USER_CODES = frozenset(kind.code for kind in KINDS)

Reader = tuple[type, int, Callable[[list[Any]], Any]]
"""A class, the ext code that its instances are stored under, and what makes them of their parts."""


class InvalidModuleError(SerializationError):
    """A stored value is of a class that is not registered."""


class Readers(dict[str, Reader]):
    """How instances of each class are read by one serialiser, by the name of the class."""

    def __init__(self, classes: Classes) -> None:
        super().__init__()
        self.classes = classes

    def of(self, name: str, code: int) -> Callable[[list[Any]], Any]:
        """What makes an instance of its parts; InvalidModuleError when the class is not registered."""
        known = self.get(name)
        if known is None or known[1] != code or (replaced and known[0] in replaced):
            cls = self._class(name, code)
            known = self[name] = cls, code, reader_of(cls, code)
        return known[2]

    def _class(self, name: str, code: int) -> type:
        if code == MESSAGE and ":" not in name:
            from pregel.checkpoint.serde.messages import message_class

            return message_class(name)
        cls = self.classes.find(name)
        if cls is None:
            module, _, path = name.partition(":")
            emit_serde_event({"kind": "msgpack_blocked", "module": module, "name": path})
            raise InvalidModuleError(
                f"A stored value is of the class {name[:200]}, which is not registered here.",
                fix="Use it in the state schema, or call register_types or JsonPlusSerializer(allow=[...]).",
            )
        return cls


class Unpacking:
    """Unpacks values of one depth. The next depth is made when it is first needed."""

    __slots__ = ("_depth", "_inner", "_readers", "unpack")

    def __init__(self, readers: Readers, depth: int = 0) -> None:
        self._readers, self._depth = readers, depth
        self._inner: Unpacking | None = None
        settings: dict[str, Any] = {
            "strict_map_key": False,
            "ext_hook": self._restore,
            "unicode_errors": "surrogatepass",
            "timestamp": 3,  # a datetime: the bytes are not ours, but they make no type beyond the table
        }
        unpack = msgpack.unpackb if depth < ON_THE_STACK else _unpack_on_heap
        self.unpack: Callable[[bytes], Any] = partial(unpack, **settings)

    def _restore(self, code: int, data: bytes) -> Any:
        """Called by msgpack for everything that it has no notation for."""
        inner = self._inner
        if inner is None:
            inner = self._deeper()
        if code in USER_CODES:
            parts = inner.unpack(data)
            return self._readers.of(parts[0], code)(parts)
        codec = BY_CODE.get(code) or library_codec_of(code)
        if codec is None:
            raise SerializationError(f"Stored bytes use ext code {code}, which this version does not know.")
        return codec.load(data if codec.raw else inner.unpack(data))

    def _deeper(self) -> Unpacking:
        if self._depth == DEEPEST:
            raise SerializationError("A stored value is nested too deeply.")
        self._inner = Unpacking(self._readers, self._depth + 1)
        return self._inner


def _unpack_on_heap(data: bytes, **settings: Any) -> Any:
    if not data:
        raise ValueError("bytes are missing")
    unpacker = msgpack.Unpacker(None, read_size=len(data), max_buffer_size=len(data), **settings)
    unpacker.feed(data)
    value = unpacker.unpack()
    if unpacker.read_bytes(1):
        raise ValueError("bytes are left over")
    return value
