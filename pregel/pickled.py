"""How an error comes back from its pickle as it was: its constructor may take other arguments than `args` holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Remade = tuple[Callable[..., BaseException], tuple[type[BaseException], tuple[Any, ...]], Any]
"""What `__reduce__` gives: a function, its arguments, and the attributes that are put on what it returns."""


def pickled(error: BaseException, attributes: Any) -> Remade:
    """The error's own constructor is left out; `attributes` are what it had set."""
    return remade, (type(error), error.args), attributes


def remade(kind: type[BaseException], args: tuple[Any, ...]) -> BaseException:
    """An error of this kind with these `args`, made by the kind of Python's own that it stands on."""
    error = kind.__new__(kind, *args)
    native: Any = next(base for base in kind.__mro__ if base.__module__ == "builtins")
    native.__init__(error, *args)
    return error
