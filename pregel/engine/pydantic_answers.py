"""The answers that a question takes: its schema as JSON Schema for whoever answers, and the check of what comes back.

A schema is a JSON Schema (a dict, shown as it is and not checked) or a type: a pydantic model, a dataclass, a
TypedDict, or anything else that pydantic knows. Pydantic is loaded when a question has a type.
"""

from __future__ import annotations

import typing
from functools import lru_cache
from typing import Any

import typing_extensions

from pregel.errors import RejectedAnswer
from pregel.extras import extra


def json_schema(schema: Any) -> dict[str, Any]:
    """What an answer has to look like."""
    return schema if isinstance(schema, dict) else dict(_adapter(schema).json_schema())


def validated(answer: Any, schema: Any, id: str) -> Any:
    """The answer as the schema's type; pydantic's ValidationError, with a RejectedAnswer, when it does not fit."""
    if isinstance(schema, dict):
        return answer
    try:
        return _adapter(schema).validate_python(answer)
    except ValueError as error:
        error.add_note(RejectedAnswer(id))
        raise


@lru_cache(256)
def _adapter(schema: Any) -> Any:
    with extra("agents", f"response_schema={schema!r}", instead="give a JSON Schema as a dict"):
        from pydantic import TypeAdapter
    if typing.is_typeddict(schema) and schema.__module__ != "typing_extensions":
        hints = typing_extensions.get_type_hints(schema, include_extras=True)
        make: Any = typing_extensions.TypedDict  # the kind that pydantic takes on every Python
        return TypeAdapter(make(schema.__name__, hints, total=schema.__total__))
    return TypeAdapter(schema)
