"""The JSON schema of a state: of a model by pydantic where that is there, of everything else by this small table."""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import types
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import ReadOnly, is_typeddict

from pregel.graph import pydantic_adapter
from pregel.graph.schema import annotations_of, default_of, is_annotated

Json = dict[str, Any]

_PLAIN: dict[Any, Json] = {
    Any: {},
    object: {},
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    bytes: {"type": "string", "format": "binary"},
    None: {"type": "null"},
    type(None): {"type": "null"},
}
_ARRAYS = (list, set, frozenset, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Set)
_OBJECTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


def json_schema(schema: Any, title: str, keys: Mapping[str, Any] | None = None) -> Json:
    """The JSON schema of a state schema, with only the given keys of it."""
    if pydantic_adapter.is_model(schema):
        found = pydantic_adapter.json_schema(schema)
        if found is not None:
            return found
    if schema is Any or not is_annotated(schema):  # Any is a class
        return {"title": title, **type_schema(schema)}
    return _object(schema, title, keys)


def fields_of(schema: Any, keys: Collection[str], *, optional: bool = False) -> dict[str, tuple[Any, Any]]:
    """The annotation and the default of each key, as a model has them: ``...`` for none."""
    fields: dict[str, tuple[Any, Any]] = {}
    for key, hint in annotations_of(schema).items() if is_annotated(schema) else ():
        if key not in keys:
            continue
        required = _is_required(schema, key, hint) and not optional
        while get_origin(hint) in (Required, NotRequired, ReadOnly):
            hint = get_args(hint)[0]
        if required:
            fields[key] = hint, ...
        else:
            make = default_of(schema, key)
            fields[key] = hint | None, None if make is None else make()
    return fields


def type_schema(hint: Any) -> Json:
    """The JSON schema of one annotation; ``{}``, which allows anything, for what no table knows."""
    if hint in _PLAIN if isinstance(hint, collections.abc.Hashable) else False:
        return dict(_PLAIN[hint])
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Annotated, Required, NotRequired, ReadOnly):
        return type_schema(args[0])
    for kinds, build in _BUILDERS:
        if (origin or hint) in kinds:
            return build(args)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return {"title": hint.__name__, "enum": [member.value for member in hint]}
    if is_typeddict(hint) or dataclasses.is_dataclass(hint):
        return _object(hint, hint.__name__, None)
    return pydantic_adapter.json_schema(hint) or {}


def _object(schema: Any, title: str, keys: Mapping[str, Any] | None) -> Json:
    hints = {key: hint for key, hint in annotations_of(schema).items() if keys is None or key in keys}
    properties = {key: _property(schema, key, hint) for key, hint in hints.items()}
    required = [key for key, hint in hints.items() if _is_required(schema, key, hint)]
    shown: Json = {"title": title, "type": "object", "properties": properties}
    return {**shown, "required": required} if required else shown


def _property(schema: Any, key: str, hint: Any) -> Json:
    shown: Json = {"title": key.replace("_", " ").title(), **type_schema(hint)}
    default = default_of(schema, key)
    if default is not None and isinstance(value := default(), str | int | float | bool | list | dict):
        shown["default"] = value
    return shown


def _is_required(schema: Any, key: str, hint: Any) -> bool:
    if is_typeddict(schema):
        marks = {get_origin(hint), *map(get_origin, get_args(hint)[:1])}  # text annotations hide them from Python
        return NotRequired not in marks and (Required in marks or key in schema.__required_keys__)
    if dataclasses.is_dataclass(schema):
        field = next(field for field in dataclasses.fields(schema) if field.name == key)
        return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    return not hasattr(schema, key)


def _array(args: tuple[Any, ...]) -> Json:
    return {"type": "array", "items": type_schema(args[0])} if args else {"type": "array"}


def _tuple(args: tuple[Any, ...]) -> Json:
    if not args or ... in args:
        return _array(args)
    return {
        "type": "array",
        "prefixItems": [type_schema(arg) for arg in args],
        "minItems": len(args),
        "maxItems": len(args),
    }


def _mapping(args: tuple[Any, ...]) -> Json:
    return {"type": "object", "additionalProperties": type_schema(args[1])} if len(args) == 2 else {"type": "object"}


def _union(args: tuple[Any, ...]) -> Json:
    return {"anyOf": [type_schema(arg) for arg in args]}


def _literal(args: tuple[Any, ...]) -> Json:
    return {"enum": list(args)}


_BUILDERS: tuple[tuple[tuple[Any, ...], Callable[[tuple[Any, ...]], Json]], ...] = (
    (_ARRAYS, _array),
    ((tuple,), _tuple),
    (_OBJECTS, _mapping),
    ((Union, types.UnionType), _union),
    ((Literal,), _literal),
)
