"""Why a value cannot be stored: the path to the first part that cannot, and the reason.

The value is walked once and without recursion, however deep it is, and its parts are looked at in the order in which
they would have been stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.codecs import (
    DATACLASS,
    MESSAGE,
    NAMEDTUPLE,
    PYDANTIC,
    SUBCLASS,
    Codec,
    Refused,
    TooDeep,
)

PLAIN = frozenset((str, int, float, bool, bytes, bytearray, type(None)))
OBJECTS = (DATACLASS, MESSAGE, NAMEDTUPLE, PYDANTIC, SUBCLASS)  # attributes lie behind the name of their class
DEEPEST_LIST = 1024  # lists and dicts in each other: msgpack's own limit
LONGEST = 8  # labels of a path that are shown

Path = tuple[Any, str] | None
"""A path by its last label, and the path before it."""


def explained(obj: Any, error: Exception, codec_of: Callable[[type], Codec]) -> CannotStore:
    """The error that a value met, told from the part that caused it."""
    path, reason = _blamed(obj, error, codec_of)
    if isinstance(reason, TooDeep | RecursionError) or "recursion limit" in str(reason):
        path, reason = None, TooDeep()
    fix = reason.fix if isinstance(reason, Refused) else None
    return CannotStore(str(reason), path=_text(path), fix=fix or None)


def _blamed(obj: Any, error: Exception, codec_of: Callable[[type], Codec]) -> tuple[Path, Exception]:
    """The way to the first part that cannot be stored by itself, and its own error."""
    around: dict[int, Any] = {}  # the parts that the current one lies in, from the outermost, by id
    waiting: list[tuple[Any, Path, int]] = [(obj, None, 0)]
    while waiting:
        part, path, depth = waiting.pop()
        if type(part) in PLAIN:
            continue
        while len(around) > depth:
            around.popitem()
        if id(part) in around:
            return path, Refused("it contains itself", "Break the circle.")
        if depth > DEEPEST_LIST:
            return path, TooDeep()
        try:
            inside = list(_inside(part, codec_of))
        except Exception as reason:
            return path, reason
        around[id(part)] = part
        waiting += [(one, (path, label), depth + 1) for label, one in reversed(inside)]
    return None, error


def _inside(part: Any, codec_of: Callable[[type], Codec]) -> Iterator[tuple[str, Any]]:
    """What lies directly in a part, with the way to it; the error of a part that cannot be stored whatever it holds."""
    if type(part) is dict:
        return ((f"[{key!r}]", one) for key, value in part.items() for one in (key, value))
    if type(part) is list:
        return ((f"[{at}]", one) for at, one in enumerate(part))
    if type(part) is memoryview:
        raise Refused("a memoryview would come back as bytes", "Store bytes(view).")
    codec = codec_of(type(part))
    parts = codec.dump(part)
    return iter(()) if codec.raw else _labelled(part, codec, parts)


def _labelled(part: Any, codec: Codec, parts: Any) -> Iterator[tuple[str, Any]]:
    if codec.unordered:
        yield from (("{...}", one) for one in parts)
    elif codec.code == NAMEDTUPLE:
        yield from ((f".{name}", one) for name, one in zip(codec.names, parts[1], strict=False))
    elif codec.code == SUBCLASS:
        yield "", parts[1]
    elif codec.names:
        yield from ((f".{name}", one) for name, one in zip(codec.names, parts, strict=False))
    elif isinstance(part, dict):
        yield "", dict(part)
    elif codec.code not in OBJECTS:
        yield "", parts if type(part) is tuple else parts[-1]
    if codec.code in OBJECTS:
        held = [one for one in parts[1:] if type(one) is dict]
        yield from ((f".{name}", one) for attributes in held for name, one in attributes.items())


def _text(path: Path) -> str:
    labels: list[str] = []
    while path is not None:
        path, label = path
        labels.append(label)
    labels.reverse()
    if len(labels) > LONGEST:
        labels = [*labels[: LONGEST // 2], "...", *labels[-LONGEST // 2 :]]
    return "".join(labels)
