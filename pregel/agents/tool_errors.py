"""Which errors of a tool are told to the model, and in which words."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pregel.agents.tools.base import ToolException, ToolInvocationError
from pregel.errors import DefinitionError, InternalError, StoreError, UsageError

HandleToolErrors: TypeAlias = (
    "bool | str | type[Exception] | tuple[type[Exception], ...] | Callable[[Any], str] | Literal['default']"
)
TOLD_BY_DEFAULT = (ToolInvocationError, ToolException)
NEVER_TOLD = (UsageError, DefinitionError, StoreError, InternalError)
"""Faults of the program or of its storage: no model can mend them, and none may hide them."""


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """Errors of the types in `told` become messages with `text`; all others are raised."""

    told: tuple[type[Exception], ...]
    text: str | Callable[[Any], Any] | None = None
    chosen: bool = False  # the user named the types: even faults of the program are told then

    @classmethod
    def of(cls, handle: HandleToolErrors) -> ErrorPolicy:
        """The policy for a `handle_tool_errors`: True tells all, False none, "default" bad arguments and ToolException;
        a text or a function words them; exception types limit them.
        """
        if handle == "default":
            return cls(TOLD_BY_DEFAULT)
        if handle is True:
            return cls((Exception,))
        if handle is False:
            return cls(())
        if isinstance(handle, str):
            return cls((Exception,), handle)
        if isinstance(handle, type) and issubclass(handle, Exception):
            return cls((handle,), chosen=True)
        if isinstance(handle, tuple):
            return cls(handle, chosen=True)
        return cls(_annotated(handle), handle, chosen=True)

    def tells(self, error: BaseException) -> bool:
        """Whether the model is told of this error."""
        if not isinstance(error, self.told):
            return False
        return self.chosen or isinstance(error, TOLD_BY_DEFAULT) or not isinstance(error, NEVER_TOLD)

    def words(self, error: Exception) -> str:
        """What the model is told."""
        if isinstance(self.text, str):
            return self.text
        if self.text is not None:
            return str(self.text(error))
        if isinstance(error, TOLD_BY_DEFAULT):
            return f"Error: {error}\nMend the call and try again."
        return f"Error: {error!r}\nMend the call and try again, or go on without it."


def _annotated(handle: Callable[..., Any]) -> tuple[type[Exception], ...]:
    """The exceptions that the first parameter of a function is annotated with; all when it says nothing."""
    parameters = list(inspect.signature(handle).parameters)
    hint = get_type_hints(handle).get(parameters[0]) if parameters else None
    if hint is None or hint is Any:
        return (Exception,)
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    if all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        return kinds
    raise DefinitionError(
        f"The error handler {handle!r} takes {hint!r}, which is no exception.",
        fix="Annotate its first parameter with the exceptions that it words.",
    )
