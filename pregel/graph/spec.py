"""What a node of a builder is, and what the annotations of a function say about it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pregel.graph.hints import PLAIN, input_hint, return_hint
from pregel.graph.schema import is_annotated
from pregel.runnable import Runnable, callable_name
from pregel.types import CachePolicy, Command, RetryPolicy, TimeoutPolicy, TracePolicy


@dataclass(slots=True)
class StateNodeSpec:
    """A node before compiling. `ends`: where its Commands are declared to go, with labels when it is a dict."""

    runnable: Runnable
    metadata: dict[str, Any] | None
    input_schema: Any
    retry_policy: RetryPolicy | Sequence[RetryPolicy] | None = None
    ends: tuple[str, ...] | dict[str, str] = ()
    defer: bool = False
    timeout: TimeoutPolicy | None = None
    trace_policy: TracePolicy | None = None
    action: Any = None
    declared: bool = False
    """Whether `ends` is all there is: then its Commands go nowhere else."""
    cache_policy: CachePolicy | None = None
    error_handler: str | None = None
    """The node that runs when this one has failed for good."""
    is_error_handler: bool = False


def handler_name(node: str) -> str:
    """What the error handler of a node is called."""
    return f"__error_handler__{node}"


DEFAULT_HANDLER = "__default_error_handler__"


def name_of(action: Any) -> str:
    """The name that a node gets from its action."""
    if hasattr(action, "get_name"):
        return str(action.get_name())
    return callable_name(action)


def input_schema_of(action: Any, known: Container[Any] = ()) -> Any:
    """The class with annotations that the first parameter of a function is declared as; None when there is none.

    `known`: schemas that need no second look.
    """
    hint = input_hint(action)
    if hint is None or (isinstance(hint, type) and hint in known):
        return hint
    cls = hint if isinstance(hint, type) else get_origin(hint)
    if not isinstance(cls, type) or not is_annotated(cls):
        return None
    try:
        return hint if hint in known or get_type_hints(cls) else None
    except (NameError, TypeError):
        return None


def command_ends_of(action: Any) -> tuple[str, ...] | None:
    """The names in a ``Command[Literal[...]]`` that a function is declared to return; None when there is none."""
    returned = return_hint(action)
    if returned is None or isinstance(returned, PLAIN):
        return None
    for hint in _members(returned):
        if get_origin(hint) is Command:
            names = [name for part in get_args(hint) for one in _members(part) for name in _literals(one)]
            if names:
                return tuple(dict.fromkeys(names))
    return None


def literal_ends_of(path: Any) -> dict[Any, str] | None:
    """The names in a Literal that a path function is declared to return, each mapped to itself."""
    return {name: name for name in _literals(return_hint(path))} or None


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _literals(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is Literal else ()
