"""Which classes of the user may be stored, by name; and the classes that a state schema mentions.

1. A class is stored under ``module:qualname``. Loading looks that name up here and imports nothing, except LangChain's
   messages where a stored value has one.
2. The builder registers the types of every state schema, a graph made by hand those of its channels; `register_types`
   adds more, for the whole process.
3. A name means one class. When a class is defined anew (a notebook cell run twice), instances of the old one are
   refused, since they would come back as instances of the new one.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
import types
import typing
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Protocol
from weakref import WeakSet, WeakValueDictionary

import typing_extensions

from pregel.checkpoint.serde.attributes import builtin_base
from pregel.errors import InvalidInputError, SerializationError

BUILTINS: tuple[type, ...] = (list, dict, tuple, set, frozenset, str, bytes, bytearray, int, float, complex)

Allowed = type | tuple[str, ...] | str
"""A class, (module, name), or "module:name"; the latter two are imported when they are first needed."""

LANGCHAIN = frozenset(
    f"langchain_core.{name}"
    for kind in ("ai:AI", "chat:Chat", "function:Function", "human:Human", "system:System", "tool:Tool")
    for name in (f"messages.{kind}Message", f"messages.{kind}MessageChunk")
) | {f"langchain_core.{name}" for name in ("messages.modifier:RemoveMessage", "messages.base:TextAccessor")}
"""What any state may hold of LangChain: its messages, and what their ``text`` is."""

by_name: dict[str, type] = {}
replaced: WeakSet[type] = WeakSet()  # classes whose name means another class by now
caches: WeakValueDictionary[int, ClassCache] = WeakValueDictionary()  # what serialisers know of classes, by id


class ClassCache(Protocol):
    """Something that remembers classes, or names of classes, until they are replaced."""

    def forget(self, cls: type) -> None: ...


def watch(cache: ClassCache) -> None:
    """Tell a cache of every class that is replaced from now on."""
    caches[id(cache)] = cache


def name_of(cls: type) -> str:
    """What a class is called in stored bytes."""
    return f"{cls.__module__}:{cls.__qualname__}"


def register_types(types: Iterable[type]) -> None:
    """Let these classes be stored and loaded in this process.

    Dataclasses, attrs classes, named tuples, enums, pydantic models, messages, and subclasses of builtin types.
    """
    for cls in types:
        if not isinstance(cls, type):
            raise InvalidInputError(f"{cls!r} is not a class.", fix="Give the classes themselves.")
        name = name_of(cls)
        before = by_name.get(name, cls)
        replaced.discard(cls)
        by_name[name] = cls
        if before is not cls:
            replaced.add(before)
            for cache in list(caches.values()):
                cache.forget(before)


class Classes:
    """The classes that one serialiser may store: those of its own allow-list, then those of the process."""

    __slots__ = ("_named", "allow")

    def __init__(self, allow: Iterable[Allowed]) -> None:
        self.allow: tuple[Allowed, ...] = tuple(allow)
        self._named = {_spelled(item): item for item in self.allow}

    def with_more(self, extra: Iterable[Allowed]) -> Classes:
        """These and further classes; itself when it has them already."""
        new = [item for item in extra if not self._has(item)]
        return Classes((*self.allow, *new)) if new else self

    def _has(self, item: Allowed) -> bool:
        known = self._named.get(_spelled(item))
        return known is item or (known is not None and not (isinstance(known, type) and isinstance(item, type)))

    def find(self, name: str) -> type | None:
        """The class of that name, if it may be stored."""
        item = self._named.get(name)
        if item is None:
            return by_name.get(name) or (_imported(name) if name in LANGCHAIN else None)
        return item if isinstance(item, type) else _imported(name)

    def holds(self, cls: type) -> bool:
        """Whether a stored instance of this class would come back as one."""
        return self.find(name_of(cls)) is cls


def _spelled(item: Allowed) -> str:
    if isinstance(item, type):
        return name_of(item)
    if isinstance(item, str) and ":" in item:
        return item
    if isinstance(item, tuple) and len(item) > 1 and all(isinstance(part, str) for part in item):
        return f"{'.'.join(item[:-1])}:{item[-1]}"
    raise InvalidInputError(f"{item!r} names no class.", fix="Give the class, (module, name) or 'module:name'.")


def _imported(name: str) -> type:
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        raise SerializationError(f"{name} is not a class.", fix="Mend the allow-list of the serialiser.")
    return found


# -- what a schema mentions --------------------------------------------------------------------------------------------


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
        (is_record(cls) and not _is_own(cls))
        or issubclass(cls, Enum)
        or is_namedtuple(cls)
        or is_pydantic_model(cls)
        or is_message(cls)
        or is_builtin_subclass(cls)
    )


def is_record(cls: type) -> bool:
    """Whether a class is a dataclass or an attrs class."""
    return dataclasses.is_dataclass(cls) or hasattr(cls, "__attrs_attrs__")


def is_namedtuple(cls: type) -> bool:
    return issubclass(cls, tuple) and cls is not tuple and isinstance(getattr(cls, "_fields", None), tuple)


def is_pydantic_model(cls: type) -> bool:
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and issubclass(cls, pydantic.BaseModel) and cls is not pydantic.BaseModel


def is_message(cls: type) -> bool:
    messages = sys.modules.get("pregel.messages.base")
    return messages is not None and issubclass(cls, messages.BaseMessage) and not _is_own(cls)


def is_builtin_subclass(cls: type) -> bool:
    """Whether a class is the user's own kind of list, dict, str or the like, and nothing else beside."""
    return (
        cls not in BUILTINS
        and builtin_base(cls) in BUILTINS
        and not typing_extensions.is_typeddict(cls)
        and cls.__module__.partition(".")[0] not in sys.stdlib_module_names
    )


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
    if not (is_storable_class(cls) or typing_extensions.is_typeddict(cls) or is_record(cls)):
        return
    try:
        yield from typing_extensions.get_type_hints(cls, include_extras=True).values()
    except Exception:  # a name that exists only for the type checker: what can be told without it still counts
        yield from (hint for hint in getattr(cls, "__annotations__", {}).values() if not isinstance(hint, str))
    fields: dict[str, Any] = getattr(cls, "model_fields", {}) if is_pydantic_model(cls) else {}
    yield from (field.annotation for field in fields.values())
    yield from (field.type for field in getattr(cls, "__attrs_attrs__", ()) if not isinstance(field.type, str))
