"""JSON Schemas that a program writes by hand: what is wrong with them, and which arguments they miss.

1. A schema is refused where it is given, when no provider could take it or it asks for what it does not describe.
2. Of the arguments of a call only those that are missing are told: the function could not be called. Whatever else a
   schema says is for the model, and not checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pregel.errors import DefinitionError

TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")
_PYTHONS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}


def check_object(schema: Mapping[str, Any], whose: str) -> None:
    """DefinitionError that says how to mend it, for what is no schema of an object."""
    kind = schema.get("type")
    if kind != "object" and (kind is not None or not schema.keys() & {"$ref", "allOf", "anyOf"}):
        said = "has no type" if kind is None else f"is of type {kind!r}"
        raise DefinitionError(
            f"{whose} {said}; it has to describe an object.",
            fix='Write {"type": "object", "properties": {...}, "required": [...]}, with your schema as one of the '
            "properties.",
        )
    for where, what, fix in _faults(schema, ""):
        raise DefinitionError(f"{whose}: {where or 'the schema'} {what}.", fix=fix)


def _faults(schema: Any, where: str) -> Iterator[tuple[str, str, str]]:
    """What is wrong with a schema: where, what, and how to mend it."""
    if isinstance(schema, bool):  # anything, or nothing
        return
    if not isinstance(schema, Mapping):
        yield where, f"is {schema!r}, which is no schema", 'Write a dict, e.g. {"type": "string"}.'
        return
    for kind in _kinds(schema):
        if kind not in TYPES:
            meant = _PYTHONS.get(getattr(kind, "__name__", str(kind)))
            fix = f"Write {meant!r}." if meant else f"Choose from {', '.join(TYPES)}."
            yield where, f"has the type {kind!r}, which JSON Schema does not know", fix
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping):
        yield where, f"has properties {properties!r}", 'Write a dict by name: {"properties": {"city": {...}}}.'
        return
    if not isinstance(required, (list, tuple)):
        yield where, f"has required={required!r}", "Write the list of the required names beside `properties`."
        return
    if unknown := [name for name in required if not isinstance(name, str) or name not in properties]:
        described = ", ".join(properties) or "nothing"
        fix = f"Describe it in `properties`, or take it out of `required`. Described: {described}."
        yield where, f"requires {unknown[0]!r}, which is not among its properties", fix
    for name, inner in properties.items():
        yield from _faults(inner, _inside(where, name))
    if isinstance(schema.get("items"), Mapping):
        yield from _faults(schema["items"], _inside(where, "items"))


def missing(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """The names that a schema requires and that are not there."""
    return [name for name in schema.get("required", ()) if name not in arguments]


def _kinds(schema: Mapping[str, Any]) -> list[Any]:
    kind = schema.get("type")
    return [] if kind is None else list(kind) if isinstance(kind, (list, tuple)) else [kind]


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
