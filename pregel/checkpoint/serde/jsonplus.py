"""JsonPlusSerializer: values to msgpack and back, equal and of the same type, or a clear refusal.

1. What cannot come back equal is refused when it is written, with the path to it.
2. Nothing is imported or constructed at load but registered classes; there is no pickle.
3. Whatever the stored bytes are, loading them gives a value or a PregelError, within memory that their size bounds.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.compression import LARGEST, deflated, inflated
from pregel.checkpoint.serde.explain import explained
from pregel.checkpoint.serde.packing import Codecs, Packing
from pregel.checkpoint.serde.registry import Allowed, Classes
from pregel.checkpoint.serde.unpacking import IS_PLAIN, Unpacking, all_readers, plain
from pregel.checkpoint.serde.unpacking import InvalidModuleError as InvalidModuleError
from pregel.errors import InvalidInputError, NotBuiltError, PregelError, SerializationError

SCALARS = frozenset((str, int, float, bool))
SHOWN = 300  # characters of a cause that are shown


class JsonPlusSerializer:
    """Stores plain data, dates, paths, messages, arrays, and the registered classes of the user.

    - `allow` names further classes for this serialiser only; `register_types` does so for the whole process.
    - `compress_above` (bytes): values that are larger are stored deflated where that makes them smaller. None: never.
      Compressed values are read either way; none is read, or written, that is larger than `largest` (bytes) inflated.
    """

    def __init__(
        self,
        *,
        allow: Iterable[Allowed] = (),
        compress_above: int | None = None,
        largest: int = LARGEST,
        pickle_fallback: bool = False,
        allowed_json_modules: Iterable[Allowed] | None = None,
        allowed_msgpack_modules: Iterable[Allowed] | None = None,
    ) -> None:
        if pickle_fallback:
            raise InvalidInputError("Pickle is not supported: it runs code when it is read.", fix="Register the types.")
        if allowed_msgpack_modules is True or allowed_json_modules is True:  # type: ignore[comparison-overlap]
            raise InvalidInputError("Types must be named: `True` would allow any class.", fix="Give the classes.")
        allow = (*allow, *(allowed_msgpack_modules or ()), *(allowed_json_modules or ()))
        self._largest, self._compress_above = largest, compress_above
        self._set_up(Classes(allow), secrets=False)

    def _set_up(self, classes: Classes, secrets: bool) -> None:
        self._classes, self._secrets = classes, secrets
        self._codecs = Codecs(classes, secrets)
        self._packing, self._unpacking = Packing(self._codecs), Unpacking(all_readers(classes))
        self._pack, self._unpack = self._packing.pack, self._unpacking.unpack
        # Packing one of SCALARS runs no Python code, so this packer is never entered twice. It has no `default`.
        self._pack_scalar = msgpack.Packer(strict_types=True).pack
        self._limit = sys.maxsize if self._compress_above is None else self._compress_above

    def _with(self, classes: Classes, secrets: bool) -> JsonPlusSerializer:
        clone = type(self).__new__(type(self))
        clone.__dict__.update(self.__dict__)
        clone._set_up(classes, secrets)
        return clone

    @property
    def allow(self) -> tuple[Allowed, ...]:
        """The classes that only this serialiser stores, as they were named."""
        return self._classes.allow

    def with_allowlist(self, extra: Iterable[Allowed]) -> JsonPlusSerializer:
        """A serialiser that also stores these classes; itself when it already does."""
        classes = self._classes.with_more(extra)
        return self if classes is self._classes else self._with(classes, self._secrets)

    def with_msgpack_allowlist(self, extra_allowlist: Iterable[Allowed]) -> JsonPlusSerializer:
        """The same as `with_allowlist`, under the reference's name."""
        return self.with_allowlist(extra_allowlist)

    def with_secrets(self) -> JsonPlusSerializer:
        """A serialiser that also stores pydantic's secrets; for one that encrypts what it gets."""
        return self if self._secrets else self._with(self._classes, secrets=True)

    # -- writing -----------------------------------------------------------------------------------------------------

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """The value as (type, bytes); CannotStore with the path to what cannot be stored."""
        kind = type(obj)
        if kind in SCALARS:
            try:
                packed = self._pack_scalar(obj)
            except Exception:  # more than 64 bits, lone surrogates
                packed = self.dumps(obj)
        elif obj is None:
            return "null", b""
        elif kind is bytes and len(obj) <= self._limit:
            return "bytes", obj
        elif kind is bytearray and len(obj) <= self._limit:
            return "bytearray", bytes(obj)
        else:
            try:
                packed = self._pack(obj)
            except Exception as error:
                raise self._explained(obj, error) from None
        if len(packed) > self._limit:
            return deflated(packed, self._largest)
        return "msgpack", packed

    def dumps(self, obj: Any) -> bytes:
        """The value as msgpack."""
        try:
            return self._pack(obj)
        except Exception as error:
            raise self._explained(obj, error) from None

    def _explained(self, obj: Any, error: Exception) -> CannotStore:
        return explained(obj, error, self._codecs.__getitem__)

    # -- reading -----------------------------------------------------------------------------------------------------

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value again. SerializationError names a class that is not registered."""
        kind, raw = data
        if kind == "msgpack":
            try:
                return plain(raw) if IS_PLAIN[raw[0]] else self._unpack(raw)
            except PregelError:
                raise
            except Exception as error:
                raise _unreadable(error) from error
        if kind == "null":
            return None
        if kind == "bytes":
            return raw
        if kind == "bytearray":
            return bytearray(raw)
        if kind == "zlib":
            return self.loads(inflated(raw, self._largest))
        if kind == "json":
            return _load_json(raw)
        if kind == "pickle":
            raise SerializationError("A pickled value is not loaded: reading it would run code.", fix="Store it anew.")
        raise NotBuiltError(f"Unknown serialization type: {kind!r}")

    def loads_lists(self, parts: Sequence[bytes]) -> list[Any]:
        """Lists that were stored as msgpack one after the other, as one list: faster than to read each of them."""
        heads = [list_head(part) for part in parts]
        count = sum(count for count, _ in heads)
        joined = b"".join([part[size:] for part, (_, size) in zip(parts, heads, strict=True)])
        found: list[Any] = self.loads(b"\xdd" + count.to_bytes(4, "big") + joined)
        return found

    def loads(self, data: bytes) -> Any:
        """The value that `dumps` was given."""
        try:
            return self._unpack(data)
        except PregelError:
            raise
        except Exception as error:
            raise _unreadable(error) from error


@lru_cache(2048)
def atom(raw: bytes) -> Any:
    """The value of a few bytes that `IS_PLAIN` tells to have no parts. SerializationError for damaged ones."""
    try:
        return plain(raw)
    except Exception as error:
        raise _unreadable(error) from error


def list_head(packed: bytes) -> tuple[int, int]:
    """(how many items, how long the head is) of a packed list; (-1, 0) for anything else."""
    first = packed[0] if packed else 0
    if 0x90 <= first <= 0x9F:
        return first - 0x90, 1
    if first in (0xDC, 0xDD) and len(packed) >= (size := 3 if first == 0xDC else 5):
        return int.from_bytes(packed[1:size], "big"), size
    return -1, 0


def _load_json(raw: bytes) -> Any:
    import json

    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> SerializationError:
    cause = str(error)[:SHOWN]
    return SerializationError(f"A stored value cannot be read: {type(error).__name__}: {cause}")
