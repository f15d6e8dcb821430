"""Typed dicts of `typing` as those of `typing_extensions`: pydantic takes only the latter before Python 3.12."""

from __future__ import annotations

import sys
from functools import lru_cache, reduce
from operator import or_
from types import GenericAlias, UnionType
from typing import Annotated, Any, NotRequired, Required, get_args, get_origin

from typing_extensions import TypedDict, get_type_hints, is_typeddict

MARKS: tuple[Any, ...] = (Required, NotRequired)


def checkable(hint: Any) -> Any:
    """The type in a form that pydantic can check: the typed dicts in it, also in its fields and arguments, made anew.

    One that holds itself stays what it is, and pydantic says what to import.
    """
    return hint if sys.version_info >= (3, 12) else _checkable(hint, ())


def _checkable(hint: Any, around: tuple[Any, ...]) -> Any:
    if is_typeddict(hint):
        old = type(hint).__module__ == "typing" and hint not in around
        return _made_anew(hint, (*around, hint)) if old else hint
    origin, given = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Annotated[(_checkable(given[0], around), *given[1:])]
    parts = tuple(_checkable(one, around) for one in given)
    if all(new is old for new, old in zip(parts, given, strict=True)):
        return hint
    if isinstance(hint, UnionType):
        return reduce(or_, parts)
    return hint.copy_with(parts) if hasattr(hint, "copy_with") else GenericAlias(origin, parts)


@lru_cache(maxsize=256)
def _made_anew(hint: Any, around: tuple[Any, ...]) -> Any:
    """The typed dict with the same keys, of which the same ones may be missing."""
    fields = {}
    for key, one in get_type_hints(hint, include_extras=True).items():
        said = get_origin(one) in MARKS
        field = _checkable(one, around)
        fields[key] = NotRequired[field] if key in hint.__optional_keys__ and not said else field
    made = TypedDict(hint.__name__, fields)  # type: ignore[misc]  # the fields are known when it runs
    made.__doc__, made.__module__, made.__qualname__ = hint.__doc__, hint.__module__, hint.__qualname__
    return made
