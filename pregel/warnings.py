"""The warnings of the library: what will go away, and what is probably not meant."""

from __future__ import annotations

import sys
import warnings
from typing import ClassVar


class PregelWarning(UserWarning):
    """Something is allowed but probably not meant."""


class LangGraphDeprecationWarning(DeprecationWarning):
    """Something of the reference that is accepted for now. `since` and `expected_removal` are versions of it."""

    default_since: ClassVar[tuple[int, int]] = (0, 0)

    def __init__(
        self,
        message: str,
        *args: object,
        since: tuple[int, int] | None = None,
        expected_removal: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(message, *args)
        self.message = message.rstrip(".")
        self.since = since or self.default_since
        self.expected_removal = expected_removal or (2, 0)

    def __str__(self) -> str:
        since, removal = (".".join(map(str, version)) for version in (self.since, self.expected_removal))
        return f"{self.message}. Deprecated since V{since}, to be removed in V{removal}."


class LangGraphDeprecatedSinceV05(LangGraphDeprecationWarning):
    """Deprecated since version 0.5 of the reference."""

    default_since = (0, 5)


class LangGraphDeprecatedSinceV10(LangGraphDeprecationWarning):
    """Deprecated since version 1.0 of the reference."""

    default_since = (1, 0)


class LangGraphDeprecatedSinceV11(LangGraphDeprecationWarning):
    """Deprecated since version 1.1 of the reference."""

    default_since = (1, 1)


PregelDeprecationWarning = LangGraphDeprecationWarning
PregelDeprecatedSinceV05 = LangGraphDeprecatedSinceV05
PregelDeprecatedSinceV10 = LangGraphDeprecatedSinceV10
PregelDeprecatedSinceV11 = LangGraphDeprecatedSinceV11


def warn_caller(message: str, category: type[Warning] = PregelWarning) -> None:
    """Warn at the nearest line that is not part of the library; at its own where there is none, as on a thread."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
