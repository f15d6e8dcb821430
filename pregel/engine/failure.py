"""The failure of a call: what its caller may have caught, and is told again when it runs again.

1. A caller that caught a failure went on from it: to try the call once more would lead it elsewhere, past what it has
   done since. So the failure is kept beside the call, like a result.
2. A failure that ended its caller is given up instead, and the call runs again: whoever resumes wants it tried again.
   It did when the caller's error is this failure, was raised from it or while it was handled, or when the caller has
   had nothing more since: no result of another call, no answer, no value of a step.
3. An exception is not a stored value. What is kept of it is its class by name, its arguments and attributes where they
   can be stored, and its text; a class that is not loaded when it is told again makes a StoredError.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from pregel.errors import (
    GraphBubbleUp,
    InternalError,
    ReplayMismatchError,
    SerializationError,
    StepTimeoutError,
    StoredError,
    rejected_in,
    told,
)


class Failure(NamedTuple):
    """How a call that was made with these arguments failed."""

    fingerprint: str
    error: BaseException


def may_be_caught(error: BaseException) -> bool:
    """Whether an error is a call's failure; signals, our own bugs and refused answers are not."""
    if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp | InternalError | StepTimeoutError):
        return False
    return not isinstance(error, ReplayMismatchError) and not rejected_in(error)


def packed(failure: Failure, serde: Any) -> list[Any]:
    """A failure as the journal keeps it."""
    fingerprint, error = failure
    cls, args = type(error), list(error.args)
    forms: list[Any] = [[args, dict(vars(error))], [args, {}]]
    form = next((one for one in forms if _can_be_stored(one, serde)), None)
    return [fingerprint, cls.__module__, cls.__qualname__, told(error), form]


def _can_be_stored(value: Any, serde: Any) -> bool:
    try:
        serde.dumps_typed(value)
    except SerializationError:
        return False
    return True


def unpacked(kept: list[Any]) -> Failure:
    """The failure again."""
    fingerprint, module, name, text, form = kept
    error = None if form is None else _error(module, name, *form)
    return Failure(fingerprint, StoredError(f"A call had failed with {text}") if error is None else error)


def _error(module: str, name: str, args: list[Any], attributes: dict[str, Any]) -> BaseException | None:
    """An exception of a class that is loaded here, made without its constructor; None when there is no such class."""
    cls: Any = sys.modules.get(module)
    for part in name.split("."):
        cls = getattr(cls, part, None)
    if not isinstance(cls, type) or not issubclass(cls, Exception):
        return None
    try:
        error = cls.__new__(cls, *args)
        error.args = tuple(args)
        error.__dict__.update(attributes)
    except Exception:
        return None
    return error


def comes_from(error: BaseException, failure: BaseException) -> bool:
    """Whether an error is this failure, was raised from it or while it was handled, or holds one that was."""
    waiting, seen = [error], set[int]()
    while waiting:
        one = waiting.pop()
        if one is failure:
            return True
        if id(one) not in seen:
            seen.add(id(one))
            waiting += [cause for cause in (one.__cause__, one.__context__) if cause is not None]
            waiting += getattr(one, "exceptions", ())
    return False
