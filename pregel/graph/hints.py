"""What one annotation of a function means, resolved when somebody asks for it and not with all the others.

1. A text is evaluated where its function lives, each time: a class that was defined anew in a notebook is found. Only
   its compiled code is kept, which is most of the cost.
2. A class, or a builtin alias such as ``dict[str, int]``, is what it says. Whatever may hold further texts or
   ``Annotated`` goes through `typing.get_type_hints`.
3. A name that does not exist (such as one imported for type checkers only) means: no hint.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache
from types import CodeType, FunctionType, GenericAlias, SimpleNamespace
from typing import Any, get_type_hints

Function = Callable[..., Any]

PLAIN = (type, GenericAlias)
"""Hints that are what they say: a class, a builtin alias."""


def function_of(action: Any) -> Function | None:
    """The function whose annotations describe an action; None for what has none, such as a partial."""
    if isinstance(action, FunctionType) or inspect.ismethod(action):
        return action
    call = getattr(action, "__call__", None)  # noqa: B004  (its annotations are what is wanted)
    return call if inspect.ismethod(call) else None


def input_hint(action: Any) -> Any:
    """What the first parameter of an action is declared as; None when nothing is said."""
    function = function_of(action)
    if function is None or not function.__annotations__:
        return None
    return _hint(function, _first_parameter(function))


def return_hint(action: Any) -> Any:
    """What an action is declared to return; None when nothing is said."""
    function = function_of(action)
    return None if function is None else _hint(function, "return")


def _hint(function: Function, name: str) -> Any:
    annotation = function.__annotations__.get(name)
    hint = _evaluated(annotation, function) if isinstance(annotation, str) else annotation
    if annotation is None or isinstance(hint, PLAIN):
        return hint
    try:
        alone = SimpleNamespace(
            __annotations__={name: annotation}, __type_params__=getattr(function, "__type_params__", ())
        )
        return get_type_hints(alone, globalns=_globals(function))[name]
    except (NameError, TypeError):
        return None


def _evaluated(text: str, function: Function) -> Any:
    """The value of a text; None where only its function's own type parameters can explain it."""
    scope = _globals(function)
    if text in scope:  # the usual annotation is the name of a class
        return scope[text]
    try:
        return eval(_code(text), scope)
    except (NameError, SyntaxError, TypeError):
        return None


@lru_cache(maxsize=4096)
def _code(text: str) -> CodeType:
    return compile(text, "<annotation>", "eval")


def _globals(function: Function) -> dict[str, Any]:
    if type(function) is not FunctionType or function.__dict__:
        function = inspect.unwrap(function)
    found: dict[str, Any] = function.__globals__
    return found


def _first_parameter(function: Function) -> str:
    if type(function) is FunctionType and not function.__dict__ and function.__code__.co_argcount:
        return function.__code__.co_varnames[0]  # the usual node; a signature costs more than all else about it
    return next(iter(inspect.signature(function).parameters), "")
