"""The errors of backends: codes that a program may act on, in texts that a model can act on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, TypeVar, cast

Verb = TypeVar("Verb", bound=Callable[..., Any])
ErrorCode = Literal["file_not_found", "permission_denied", "is_directory", "invalid_path"]


class Refused(Exception):
    """A verb that cannot be done: raised inside of a backend, returned at its edge."""

    def __init__(self, code: str, told: str) -> None:
        super().__init__(told)
        self.code, self.told = code, told

    @property
    def error(self) -> str:
        """The text for the model."""
        return f"{self.code}: {self.told}"


def not_found(path: str) -> Refused:
    """There is no such file."""
    return Refused("file_not_found", f"{path} does not exist.")


def is_directory(path: str) -> Refused:
    """A file was wanted."""
    return Refused("is_directory", f"{path} is a directory.")


def invalid_path(path: str, why: str) -> Refused:
    """No file can have this path."""
    return Refused("invalid_path", f"{path!r} {why}")


def permission_denied(path: str, why: str) -> Refused:
    """This may not be done."""
    return Refused("permission_denied", f"{path}: {why}")


def told(result: Callable[..., Any]) -> Callable[[Verb], Verb]:
    """Makes a verb return what it refuses as the error of its result."""

    def wrap(verb: Verb) -> Verb:
        @wraps(verb)
        def telling(*args: Any, **kwargs: Any) -> Any:
            try:
                return verb(*args, **kwargs)
            except Refused as refused:
                return result(error=refused.error)

        return cast("Verb", telling)

    return wrap
