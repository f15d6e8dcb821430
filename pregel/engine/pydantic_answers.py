"""The answers that a question takes: its schema as JSON Schema for whoever answers, and the check of what comes back.

A schema is a JSON Schema (a dict, shown as it is and not checked) or a type: a pydantic model, a dataclass, a
TypedDict, or anything else that pydantic knows. Pydantic is loaded when a question has a type.

An answer is checked where it is used, in the node that asks. This process remembers the types of the questions that it
asked last: an answer to one of those is checked where it is given as well, before anything is written. A JSON Schema
does not tell what its type takes (``"3"`` for an int), so a stored one is no use for that.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import typing_extensions

from pregel.errors import RejectedAnswer
from pregel.extras import extra

REMEMBERED = 4096
_asked: dict[str, Any] = {}  # question id -> the type of its answer, the last ones that this process asked


def remember(id: str, schema: Any) -> None:
    """Know what type an answer to this question must be, when it is given."""
    if isinstance(schema, dict):
        return
    _asked[id] = schema
    if len(_asked) > REMEMBERED:
        _asked.pop(next(iter(_asked), ""), None)


def check_answers(answers: Mapping[str, Any]) -> None:
    """Raise what `validated` raises for the first answer that does not fit its question, as far as that is known."""
    for id, answer in answers.items():
        if (schema := _asked.get(id)) is not None:
            validated(answer, schema, id)


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
