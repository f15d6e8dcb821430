"""JsonPlusSerializer: values to msgpack and back, equal and of the same type, or a clear refusal.

1. What cannot come back equal is refused when it is written, with the path to it.
2. Nothing is imported or constructed at load but registered classes; there is no pickle.
3. A kept Packer is neither re-entrant nor thread-safe, so each use takes one from a free list.
4. msgpack takes a bytearray for bytes without asking; where bytes appear in the result, the value is looked over.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from typing import Any

import msgpack  # type: ignore[import-untyped]

from pregel.checkpoint.serde import registry
from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.codecs import BY_CODE, BYTEARRAY, TABLE, Codec, Refused
from pregel.checkpoint.serde.event_hooks import emit_serde_event
from pregel.checkpoint.serde.objects import LOADERS, codec_of
from pregel.errors import InvalidInputError, NotBuiltError, PregelError, SerializationError

SCALARS = frozenset((str, int, float, bool))

Allowed = type | tuple[str, ...] | str
"""A class, (module, name), or "module:name"; the latter two are imported when they are first needed."""


class InvalidModuleError(SerializationError):
    """A stored value is of a class that is not registered."""


class JsonPlusSerializer:
    """Stores plain data, dates, paths, messages, and the registered classes of the user.

    `allow` names further classes for this serialiser only; `register_types` does so for the whole process.
    """

    def __init__(
        self,
        *,
        allow: Iterable[Allowed] = (),
        pickle_fallback: bool = False,
        allowed_json_modules: Iterable[Allowed] | None = None,
        allowed_msgpack_modules: Iterable[Allowed] | None = None,
    ) -> None:
        if pickle_fallback:
            raise InvalidInputError("Pickle is not supported: it runs code when it is read.", fix="Register the types.")
        if allowed_msgpack_modules is True or allowed_json_modules is True:  # type: ignore[comparison-overlap]
            raise InvalidInputError("Types must be named: `True` would allow any class.", fix="Give the classes.")
        self.allow: tuple[Allowed, ...] = (*allow, *(allowed_msgpack_modules or ()), *(allowed_json_modules or ()))
        self._names = {_spelled(item): item for item in self.allow}
        self._codecs: dict[type, Codec] = dict(TABLE)
        self._packers: list[msgpack.Packer] = []

    def with_allowlist(self, extra: Iterable[Allowed]) -> JsonPlusSerializer:
        """A serialiser that also stores these classes; itself when it already does."""
        new = [item for item in extra if _spelled(item) not in self._names]
        return JsonPlusSerializer(allow=(*self.allow, *new)) if new else self

    # -- writing -----------------------------------------------------------------------------------------------------

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """The value as (type, bytes); CannotStore with the path to what cannot be stored."""
        kind = obj.__class__
        if kind in SCALARS:
            try:
                packer = self._packers.pop()
                packed = packer.pack(obj)
                self._packers.append(packer)
                return "msgpack", packed
            except (IndexError, UnicodeEncodeError):
                return "msgpack", self._pack(obj)
        if obj is None:
            return "null", b""
        if kind is bytes:
            return "bytes", obj
        if kind is bytearray:
            return "bytearray", bytes(obj)
        return "msgpack", self.dumps(obj)

    def dumps(self, obj: Any) -> bytes:
        """The value as msgpack."""
        try:
            return self._pack(obj)
        except (TypeError, ValueError, OverflowError, RecursionError, Refused) as error:
            raise self._explained(obj, error) from None

    def _pack(self, obj: Any) -> bytes:
        try:
            packer = self._packers.pop()
        except IndexError:
            packer = msgpack.Packer(default=self._extend, strict_types=True)
        try:
            packed: bytes = packer.pack(obj)
        except UnicodeEncodeError:  # lone surrogates; asking for this always would slow every text down
            packed = msgpack.Packer(default=self._extend, strict_types=True, unicode_errors="surrogatepass").pack(obj)
        self._packers.append(packer)
        if b"\xc4" in packed or b"\xc5" in packed or b"\xc6" in packed:
            marked = _mark_bytearrays(obj)
            if marked is not obj:
                return self._pack(marked)
        return packed

    def _extend(self, obj: Any) -> msgpack.ExtType:
        """Called by msgpack for everything that it has no notation for."""
        cls = type(obj)
        codec = self._codecs.get(cls)
        if codec is None:
            codec = self._codecs[cls] = codec_of(cls, self._allows)
        if codec.raw:
            return msgpack.ExtType(codec.code, codec.dump(obj))
        parts = codec.dump(obj)
        if codec.unordered:
            head: bytes = msgpack.Packer().pack_array_header(len(parts))
            return msgpack.ExtType(codec.code, head + b"".join(sorted(map(self._pack, parts))))
        return msgpack.ExtType(codec.code, self._pack(parts))

    def _allows(self, cls: type) -> bool:
        return cls in registry.known or registry.name_of(cls) in self._names

    def _explained(self, obj: Any, error: Exception) -> SerializationError:
        path, reason = self._blame(obj, error, 0)
        fix = reason.fix if isinstance(reason, Refused) else None
        if isinstance(reason, RecursionError) or "recursion limit" in str(reason):
            return CannotStore("it is nested too deeply, or contains itself", fix="Flatten it.")
        return CannotStore(str(reason), path=path, fix=fix or None)

    def _blame(self, obj: Any, error: Exception, depth: int) -> tuple[str, Exception]:
        """The path to the innermost part that cannot be packed, and its own error."""
        for label, part in self._parts(obj) if depth < 100 else ():
            try:
                self._pack(part)
            except Exception as inner:
                path, reason = self._blame(part, inner, depth + 1)
                return label + path, reason
        return "", error

    def _parts(self, obj: Any) -> list[tuple[str, Any]]:
        """What is inside a value, with the way to it."""
        if type(obj) is dict:
            return [(f"[{key!r}]", part) for key, value in obj.items() for part in (key, value)]
        if type(obj) is list:
            return [(f"[{i}]", part) for i, part in enumerate(obj)]
        codec = self._codecs.get(type(obj))
        if codec is None or codec.raw:
            return []
        try:
            parts = codec.dump(obj)
        except Exception:
            return []
        if codec.unordered:
            return [("{...}", part) for part in parts]
        if codec.names:
            return [(f".{name}", part) for name, part in zip(codec.names, parts, strict=False)]
        if codec.code in LOADERS and isinstance(parts[1], dict):
            return [(f".{name}", part) for name, part in parts[1].items()]
        inner = parts[-1] if isinstance(parts, list) and parts and isinstance(parts[-1], (list, dict)) else parts
        return self._parts(inner if type(obj) is not tuple else parts)

    # -- reading -----------------------------------------------------------------------------------------------------

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value again. SerializationError names a class that is not registered."""
        kind, raw = data
        if kind == "null":
            return None
        if kind == "msgpack":
            return self.loads(raw)
        if kind == "bytes":
            return raw
        if kind == "bytearray":
            return bytearray(raw)
        if kind == "json":
            return _load_json(raw)
        if kind == "pickle":
            raise SerializationError("A pickled value is not loaded: reading it would run code.", fix="Store it anew.")
        raise NotBuiltError(f"Unknown serialization type: {kind!r}")

    def loads(self, data: bytes) -> Any:
        """The value that `dumps` was given."""
        try:
            return self._unpack(data)
        except PregelError:
            raise
        except Exception as error:
            raise SerializationError(f"A stored value cannot be read: {type(error).__name__}: {error}") from error

    def _unpack(self, data: bytes) -> Any:
        return msgpack.unpackb(
            data, strict_map_key=False, ext_hook=self._restore, unicode_errors="surrogatepass", timestamp=0
        )

    def _restore(self, code: int, data: bytes) -> Any:
        codec = BY_CODE.get(code)
        if codec is not None:
            return codec.load(data if codec.raw else self._unpack(data))
        loader = LOADERS.get(code)
        if loader is None:
            raise SerializationError(f"Stored bytes use ext code {code}, which this version does not know.")
        return loader(self._find, self._unpack(data))

    def _find(self, name: str) -> type:
        """The registered class of that name."""
        cls = registry.by_name.get(name)
        if cls is None and name in self._names:
            cls = _imported(self._names[name])
        if cls is None:
            module, _, path = name.partition(":")
            emit_serde_event({"kind": "msgpack_blocked", "module": module, "name": path})
            raise InvalidModuleError(
                f"A stored value is of the class {name}, which is not registered here.",
                fix="Use it in the state schema, or call register_types or JsonPlusSerializer(allow=[...]).",
            )
        return cls


def _mark_bytearrays(obj: Any) -> Any:
    """The value with bytearrays replaced by what keeps their type; itself when there is none."""
    kind = type(obj)
    if kind is list:
        marked: Any = [_mark_bytearrays(part) for part in obj]
        return marked if any(map(_differs, marked, obj)) else obj
    if kind is dict:
        marked = [_mark_bytearrays(part) for part in obj.values()]
        return dict(zip(obj, marked, strict=True)) if any(map(_differs, marked, obj.values())) else obj
    if kind is bytearray:
        return msgpack.ExtType(BYTEARRAY, bytes(obj))
    if kind is memoryview:
        raise Refused("a memoryview would come back as bytes", "Store bytes(view).")
    return obj


_differs: Callable[[Any, Any], bool] = lambda a, b: a is not b  # noqa: E731


def _spelled(item: Allowed) -> str:
    if isinstance(item, type):
        return registry.name_of(item)
    return item if isinstance(item, str) else f"{'.'.join(item[:-1])}:{item[-1]}"


def _imported(item: Allowed) -> type:
    if isinstance(item, type):
        return item
    module, _, path = _spelled(item).partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        raise SerializationError(f"{module}:{path} is not a class.")
    return found


def _load_json(raw: bytes) -> Any:
    import json

    return json.loads(raw)
