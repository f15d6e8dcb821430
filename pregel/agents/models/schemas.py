"""JSON Schemas as providers want them that guarantee an output: closed objects, everything named, no defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_NAMED = {"properties", "$defs"}  # keys that hold schemas by names of the user's choosing


def is_complete(schema: Any) -> bool:
    """Whether every property of every object is required: then closing the schema changes nothing that it means."""
    if isinstance(schema, list):
        return all(map(is_complete, schema))
    if not isinstance(schema, Mapping):
        return True
    optional = set(schema.get("properties") or ()) - set(schema.get("required") or ())
    open_ended = schema.get("type") == "object" and "properties" not in schema
    return not optional and not open_ended and all(map(is_complete, _inner(schema)))


def closed(schema: Any) -> Any:
    """The schema with ``additionalProperties: false`` in every object and without defaults."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {key: value if key in _NAMED else closed(value) for key, value in schema.items() if key != "default"}
    for key in _NAMED & found.keys():
        found[key] = {name: closed(one) for name, one in found[key].items()}
    if found.get("type") == "object":
        found["additionalProperties"] = False
    return found


def _inner(schema: Mapping[str, Any]) -> list[Any]:
    """The schemas inside of a schema; its properties may be called like anything."""
    properties = list((schema.get("properties") or {}).values())
    definitions = list((schema.get("$defs") or {}).values())
    others = [schema[key] for key in ("items", "prefixItems", "anyOf", "oneOf", "allOf") if key in schema]
    return [*properties, *definitions, *others]
