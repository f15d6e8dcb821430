"""Values to msgpack, with one packer for each depth of objects inside objects.

1. msgpack calls `_extend` for everything that it has no notation for; what it gives back is packed one depth further
   down. `DEEPEST` depths may be written, so that what is written can be read, on any stack.
2. A kept Packer is neither re-entrant nor thread-safe, so each use takes one from a free list.
3. msgpack takes a bytearray or a memoryview for bytes without asking; where bytes appear in the result, the value is
   looked over.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.checkpoint.serde.adapters import library_codec
from pregel.checkpoint.serde.codecs import BYTEARRAY, TABLE, Codec, Refused, TooDeep
from pregel.checkpoint.serde.objects import codec_of
from pregel.checkpoint.serde.registry import Classes, watch

DEEPEST = 128  # objects, tuples and the like inside each other
FLAT = 4  # from this depth on, lists and dicts nest by `FLATTEST` at most: msgpack packs them on the C stack
FLATTEST = 32
KEPT = 1 << 20  # bytes; a packer that packed more is let go, since it keeps its buffer

_ext_type: Callable[[tuple[int, bytes]], msgpack.ExtType] = partial(tuple.__new__, msgpack.ExtType)  # unchecked: faster
_BUFFERS = {bytearray, memoryview}
_CONTAINERS = {list, dict}


class Codecs(dict[type, Codec]):
    """How each class is stored by one serialiser; a class is looked up when it is first met, or refused."""

    def __init__(self, classes: Classes, secrets: bool) -> None:
        super().__init__(TABLE)
        self.classes, self.secrets = classes, secrets
        watch(self)

    def __missing__(self, cls: type) -> Codec:
        codec = library_codec(cls) or codec_of(cls, self.classes.holds)
        if codec.secret and not self.secrets:
            raise Refused(
                f"a {cls.__name__} is stored only encrypted", "Give the saver an EncryptedSerializer, or unwrap it."
            )
        self[cls] = codec
        return codec

    def forget(self, cls: type) -> None:
        """Look the class up again when it is next met."""
        self.pop(cls, None)


class Packing:
    """Packs values of one depth. The next depth is made when it is first needed."""

    __slots__ = ("_codecs", "_depth", "_inner", "_is_flat", "_packers")

    def __init__(self, codecs: Codecs, depth: int = 0) -> None:
        self._codecs, self._depth, self._is_flat = codecs, depth, depth >= FLAT
        self._packers: list[msgpack.Packer] = []
        self._inner: Packing | None = None

    def pack(self, obj: Any) -> bytes:
        """The value as msgpack; whatever error it met when a part cannot be stored."""
        try:
            packer = self._packers.pop()
        except IndexError:
            packer = self._packer()
        try:
            packed: bytes = packer.pack(obj)
        except UnicodeEncodeError:  # lone surrogates; asking for this always would slow every text down
            packed = self._packer(unicode_errors="surrogatepass").pack(obj)
        if len(packed) < KEPT:
            self._packers.append(packer)
        if (0xC4 in packed or 0xC5 in packed or 0xC6 in packed) and holds_buffers(obj):
            return self.pack(_marked(obj))
        return packed

    def _packer(self, **settings: Any) -> msgpack.Packer:
        return msgpack.Packer(default=self._extend, strict_types=True, buf_size=512, **settings)

    def _extend(self, obj: Any) -> msgpack.ExtType:
        """Called by msgpack for everything that it has no notation for."""
        codec = self._codecs[type(obj)]
        if codec.raw:
            return _ext_type((codec.code, codec.dump(obj)))
        parts = codec.dump(obj)
        inner = self._inner
        if inner is None:
            inner = self._deeper()
        if self._is_flat and deeper_than(FLATTEST, parts):
            raise TooDeep
        if codec.unordered:
            head: bytes = msgpack.Packer().pack_array_header(len(parts))
            return _ext_type((codec.code, head + b"".join(sorted(map(inner.pack, parts)))))
        return _ext_type((codec.code, inner.pack(parts)))

    def _deeper(self) -> Packing:
        if self._depth == DEEPEST:
            raise TooDeep
        self._inner = Packing(self._codecs, self._depth + 1)
        return self._inner


def holds_buffers(obj: Any) -> bool:
    """Whether bytearrays or memoryviews lie in the lists and dicts of a value, which msgpack takes for bytes."""
    if type(obj) not in _CONTAINERS:
        return type(obj) in _BUFFERS
    waiting = [obj]
    while waiting:
        part = waiting.pop()
        parts = part.values() if type(part) is dict else part
        kinds = set(map(type, parts))
        if not kinds.isdisjoint(_BUFFERS) or (type(part) is dict and memoryview in map(type, part)):
            return True
        if not kinds.isdisjoint(_CONTAINERS):
            waiting += [one for one in parts if type(one) in _CONTAINERS]
    return False


def deeper_than(limit: int, obj: Any) -> bool:
    """Whether lists and dicts lie in each other by more than so many."""
    level = [obj]
    for _ in range(limit):
        parts = [one.values() if type(one) is dict else one for one in level if type(one) in _CONTAINERS]
        level = [one for part in parts for one in part if type(one) in _CONTAINERS]
        if not level:
            return False
    return True


def _marked(obj: Any) -> Any:
    """A copy with bytearrays replaced by what keeps their type."""
    kind = type(obj)
    if kind is list:
        return [_marked(part) for part in obj]
    if kind is dict:
        return {_marked(key): _marked(part) for key, part in obj.items()}
    if kind is bytearray:
        return msgpack.ExtType(BYTEARRAY, bytes(obj))
    if kind is memoryview:
        raise Refused("a memoryview would come back as bytes", "Store bytes(view).")
    return obj
