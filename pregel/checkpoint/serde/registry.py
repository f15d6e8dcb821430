"""Which classes of the user may be stored, by name; and the classes that a state schema mentions.

1. A class is stored under ``module:qualname``. Loading looks that name up here and imports nothing.
2. The builder registers the types of every state schema; `register_types` adds more, for the whole process.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any

import typing_extensions

by_name: dict[str, type] = {}
known: set[type] = set()


def name_of(cls: type) -> str:
    """What a class is called in stored bytes."""
    return f"{cls.__module__}:{cls.__qualname__}"


def register_types(types: Iterable[type]) -> None:
    """Let these dataclasses, named tuples, enums, pydantic models and messages be stored and loaded in this process."""
    for cls in types:
        by_name[name_of(cls)] = cls
        known.add(cls)


def types_of(schema: Any) -> set[type]:
    """The storable user classes that a schema mentions, at any depth: fields, containers, unions, enum literals."""
    found: set[type] = set()
    seen: set[int] = set()
    waiting: list[Any] = [schema]
    keep: list[Any] = []  # ids in `seen` stay unique while their objects live
    while waiting:
        annotation = waiting.pop()
        if id(annotation) in seen:
            continue
        seen.add(id(annotation))
        keep.append(annotation)
        if is_storable_class(annotation):
            found.add(annotation)
        waiting.extend(_mentioned(annotation))
    return found


def is_storable_class(cls: Any) -> bool:
    """Whether a class is of a kind that can be stored once it is registered."""
    return isinstance(cls, type) and (
        (dataclasses.is_dataclass(cls) and not _is_own(cls))
        or issubclass(cls, Enum)
        or is_namedtuple(cls)
        or is_pydantic_model(cls)
        or is_message(cls)
    )


def is_namedtuple(cls: type) -> bool:
    return issubclass(cls, tuple) and cls is not tuple and isinstance(getattr(cls, "_fields", None), tuple)


def is_pydantic_model(cls: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel) and cls is not pydantic.BaseModel


def is_message(cls: type) -> bool:
    messages = sys.modules.get("pregel.messages.base")
    return messages is not None and issubclass(cls, messages.BaseMessage) and not _is_own(cls)


def _is_own(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "pregel"


def _mentioned(annotation: Any) -> Iterator[Any]:
    """The annotations directly inside this one."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield annotation.__origin__
    elif origin is typing.Literal:
        yield from (type(arg) for arg in typing.get_args(annotation) if isinstance(arg, Enum))
    elif origin is not None:
        yield origin
        for arg in typing.get_args(annotation):
            yield from arg if isinstance(arg, list) else (arg,)  # Callable[[X], Y]
    elif isinstance(annotation, types.UnionType):
        yield from annotation.__args__
    elif isinstance(annotation, typing.TypeVar):
        yield from (*annotation.__constraints__, annotation.__bound__)
    elif isinstance(annotation, typing.NewType):
        yield annotation.__supertype__
    elif isinstance(annotation, typing_extensions.TypeAliasType):
        yield annotation.__value__
    elif isinstance(annotation, type):
        yield from _hints(annotation)


def _hints(cls: type) -> Iterator[Any]:
    """The annotations of a class's fields, for the kinds of class that have fields."""
    if not (is_storable_class(cls) or typing_extensions.is_typeddict(cls) or dataclasses.is_dataclass(cls)):
        return
    try:
        yield from typing_extensions.get_type_hints(cls, include_extras=True).values()
    except Exception:  # a name that exists only for the type checker: what can be told without it still counts
        yield from (hint for hint in getattr(cls, "__annotations__", {}).values() if not isinstance(hint, str))
    fields: dict[str, Any] = getattr(cls, "model_fields", {}) if is_pydantic_model(cls) else {}
    yield from (field.annotation for field in fields.values())
