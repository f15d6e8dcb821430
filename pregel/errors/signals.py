"""Signals that travel up through user code, and those of them that reach callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pregel.errors.run import RunError
from pregel.errors.usage import UsageError
from pregel.pickled import Remade, pickled
from pregel.question import Interrupt

if TYPE_CHECKING:
    from pregel.types import Command


class GraphBubbleUp(BaseException):
    """A signal of the engine that travels up through user code and is never retried."""

    def __reduce__(self) -> Remade:
        return pickled(self, vars(self))


class GraphInterrupt(GraphBubbleUp):
    """A node asked a question and waits for the answer."""

    def __init__(self, interrupts: Sequence[Interrupt] = ()) -> None:
        super().__init__(tuple(interrupts))
        self.interrupts: tuple[Interrupt, ...] = tuple(interrupts)


class ContinueAsNew(GraphBubbleUp):
    """Raised by a node: the thread goes on as a new execution, with this input and nothing else of the old one.

    - `version`: of the graph that runs it; None: of the one that runs now. Another one is a worker's, which takes the
      thread up: the call ends, and returns None.
    - `keep_events`: whether events that were sent to the thread and nobody took are there for the new execution.

    What other nodes of the step did is not applied. The history of the old execution stays.
    """

    def __init__(self, input: Any, *, version: str | None = None, keep_events: bool = True) -> None:
        super().__init__(input)
        self.input, self.version, self.keep_events = input, version, keep_events


class CallWithdrawn(GraphBubbleUp):
    """The call was taken back: the run that it was made in ended, or is being wound down."""


class NodeInterrupt(GraphInterrupt):
    """Deprecated way to ask from a node: raise it, or better call ``interrupt(value)``."""

    def __init__(self, value: Any, id: str | None = None) -> None:
        super().__init__([Interrupt(value=value) if id is None else Interrupt(value=value, id=id)])


class GraphDrained(GraphBubbleUp, RunError):
    """The run stopped between two steps because it was asked to; invoke(None) continues it."""

    code = "DRAINED"

    def __init__(self, reason: str = "shutdown") -> None:
        RunError.__init__(self, f"The run was drained: {reason}")
        self.reason = reason


class RunDisplaced(GraphDrained):
    """The run made way for another one (`concurrency`): what ran was cancelled, what had ended is kept.

    `asked` is what the other run wants: ``interrupt`` goes on from what this one did, ``rollback`` from before it.
    """

    code = "DISPLACED"

    def __init__(self, asked: str) -> None:
        super().__init__(f"a newer run asked for the thread ({asked})")
        self.asked = asked


class ParentCommand(GraphBubbleUp, UsageError):
    """A Command was sent to a parent graph, and there is none."""

    code = "PARENT_COMMAND"

    def __init__(self, command: Command[Any], *more: Command[Any]) -> None:
        UsageError.__init__(self, fix="Command(graph=Command.PARENT) works only in a graph that runs inside another.")
        self.command = command
        self.commands = self.args = (command, *more)

    @property
    def message(self) -> str:
        return str(type(self).__doc__)
