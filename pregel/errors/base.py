"""What every error has: a code, the place it happened, and a line that says what to do."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import ClassVar

from pregel.pickled import Remade, pickled

PLACES = ("thread", "step", "node", "task", "channel")


def told(error: BaseException, how: Callable[[BaseException], str] = repr) -> str:
    """An error as text, its type's name when it cannot tell itself: a record of it never fails."""
    try:
        return how(error)
    except Exception:
        return type(error).__name__


class PregelError(Exception):
    """Something went wrong in a graph."""

    code: ClassVar[str] = "PREGEL"
    fix: str = ""

    def __init__(
        self,
        message: str | None = None,
        *,
        fix: str | None = None,
        thread: str | None = None,
        step: int | None = None,
        node: str | None = None,
        task: str | None = None,
        channel: str | None = None,
    ) -> None:
        super().__init__(message if message is not None else (type(self).__doc__ or "").strip().splitlines()[0])
        if fix is not None:
            self.fix = fix
        self.thread, self.step, self.node, self.task, self.channel = thread, step, node, task, channel

    @property
    def message(self) -> str:
        """What happened, without the fix."""
        return str(self.args[0]) if self.args else ""

    def __str__(self) -> str:
        return f"{self.message}\nFix: {self.fix}" if self.fix else self.message

    def __reduce__(self) -> Remade:
        return pickled(self, *super().__reduce__()[2:] or (None,))


class EmptyChannelError(PregelError):
    """The channel is empty."""

    code = "EMPTY_CHANNEL"


class InternalError(PregelError):
    """A bug in pregel itself."""

    code = "INTERNAL"
    fix = "Please report this with the traceback."


class ErrorCode(Enum):
    """The codes that the reference documents, by the reference's names."""

    GRAPH_RECURSION_LIMIT = "GRAPH_RECURSION_LIMIT"
    INVALID_CONCURRENT_GRAPH_UPDATE = "INVALID_CONCURRENT_GRAPH_UPDATE"
    INVALID_GRAPH_NODE_RETURN_VALUE = "INVALID_GRAPH_NODE_RETURN_VALUE"
    MULTIPLE_SUBGRAPHS = "MULTIPLE_SUBGRAPHS"
    INVALID_CHAT_HISTORY = "INVALID_CHAT_HISTORY"
