"""Every error of the library, by whose fault it is.

::

    GraphBubbleUp (BaseException)        signals that travel up through user code
    ├── GraphInterrupt                   a node asked a question; never an Exception, so no handler can swallow it
    ├── CallWithdrawn                    what a task or a graph was called for is over before the call is
    ├── GraphDrained        ┐            also PregelError: they reach callers
    │   └── RunDisplaced    │
    └── ParentCommand       ┘

    PregelError (Exception)
    ├── DefinitionError (ValueError)     the graph is built wrong
    │   ├── GraphValidationError         everything that is wrong with a graph, in one error
    │   └── ReservedNameError
    ├── UsageError                       a call asks for something that cannot be done
    │   ├── InvalidUpdateError
    │   ├── ConcurrentUpdateError (InvalidUpdateError)
    │   ├── NodeReturnError (InvalidUpdateError)
    │   ├── InvalidInputError (ValueError)
    │   ├── EmptyInputError
    │   ├── UnknownTargetError (InvalidUpdateError)
    │   ├── InvalidRouteError (InvalidUpdateError, ValueError)
    │   ├── PathMapError (InvalidRouteError, KeyError)
    │   ├── RouteTypeError (InvalidUpdateError, TypeError)
    │   ├── NoCheckpointerError (ValueError, RuntimeError)
    │   ├── MissingThreadError (KeyError)
    │   ├── UnknownInterruptError
    │   ├── AmbiguousResumeError (RuntimeError)
    │   ├── CheckpointNotFoundError (LookupError)
    │   ├── SubgraphNotFoundError
    │   ├── ReplayMismatchError
    │   ├── ThreadNotFoundError (LookupError)
    │   ├── CannotResumeError
    │   ├── OutsideRunError (RuntimeError)
    │   ├── AsyncOnlyError (TypeError)
    │   ├── MissingExtraError (ModuleNotFoundError)
    │   ├── StreamUseError (RuntimeError, TypeError)
    │   ├── UnknownProjectionError (AttributeError, KeyError)
    │   └── NotBuiltError (NotImplementedError)
    ├── RunError                         the run could not go on
    │   ├── GraphRecursionError (RecursionError)
    │   ├── JoinStarvedError
    │   ├── NodeCancelledError
    │   ├── NodeTimeoutError
    │   ├── ReducerLawError
    │   ├── StepTimeoutError (TimeoutError)
    │   ├── StoredError
    │   └── TaskNotFound
    ├── StoreError                       the saver refused, failed or lost something
    │   ├── ThreadBusy
    │   ├── AuthorityLost
    │   ├── ThreadDeleted
    │   ├── StoreMoved
    │   ├── JournalDamaged
    │   ├── ReducerChanged
    │   └── SerializationError (TypeError)
    ├── EmptyChannelError                a channel was read that holds nothing
    └── InternalError                    a bug of this library; carries the last events

Each has a stable ``code``, a docstring that is its default message, the place it happened (``thread``, ``step``,
``node``, ``task``, ``channel``) and one ``fix`` line that says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from pregel.pickled import Remade, pickled
from pregel.question import Interrupt

if TYPE_CHECKING:
    from pregel.types import Command

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


# -- signals ------------------------------------------------------------------------------------------------------


class GraphBubbleUp(BaseException):
    """A signal of the engine that travels up through user code and is never retried."""

    def __reduce__(self) -> Remade:
        return pickled(self, vars(self))


class GraphInterrupt(GraphBubbleUp):
    """A node asked a question and waits for the answer."""

    def __init__(self, interrupts: Sequence[Interrupt] = ()) -> None:
        super().__init__(tuple(interrupts))
        self.interrupts: tuple[Interrupt, ...] = tuple(interrupts)


class CallWithdrawn(GraphBubbleUp):
    """The call was taken back: the run that it was made in ended, or is being wound down."""


class NodeInterrupt(GraphInterrupt):
    """Deprecated way to ask from a node: raise it, or better call ``interrupt(value)``."""

    def __init__(self, value: Any, id: str | None = None) -> None:
        super().__init__([Interrupt(value=value) if id is None else Interrupt(value=value, id=id)])


# -- whose fault: the graph's definition -----------------------------------------------------------------------------


class DefinitionError(PregelError, ValueError):
    """The graph is built wrong."""

    code = "DEFINITION"


class GraphValidationError(DefinitionError):
    """The graph has problems that must be mended before it can be compiled."""

    code = "GRAPH_VALIDATION"

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {p}" for p in problems)
        title = self.problems[0] if len(problems) == 1 else f"The graph has {len(problems)} problems:\n{lines}"
        super().__init__(title)


class ReservedNameError(DefinitionError):
    """This name is reserved by the engine."""

    code = "RESERVED_NAME"


# -- whose fault: the call's -----------------------------------------------------------------------------------------


class UsageError(PregelError):
    """The call asks for something that cannot be done."""

    code = "USAGE"


class InvalidUpdateError(UsageError):
    """An update does not fit the graph's channels."""

    code = "INVALID_UPDATE"


class InvalidInputError(UsageError, ValueError):
    """An argument of this call is not valid."""

    code = "INVALID_INPUT"


class EmptyInputError(UsageError):
    """There is nothing to run: the input is empty and the thread has no state to continue."""

    code = "EMPTY_INPUT"
    fix = "Pass an input, or resume a thread that has a checkpoint."


class ConcurrentUpdateError(InvalidUpdateError):
    """Several tasks of one step wrote a channel that holds one value per step."""

    code = "INVALID_CONCURRENT_GRAPH_UPDATE"


class NodeReturnError(InvalidUpdateError):
    """A node returned something that is not a state update."""

    code = "INVALID_GRAPH_NODE_RETURN_VALUE"


class UnknownTargetError(InvalidUpdateError):
    """A route names a node that does not exist."""

    code = "UNKNOWN_TARGET"


class InvalidRouteError(InvalidUpdateError, ValueError):
    """A branch did not return a valid destination."""

    code = "INVALID_ROUTE"


class PathMapError(InvalidRouteError, KeyError):
    """A branch returned a key that its path map does not have."""

    code = "PATH_MAP"
    __str__ = PregelError.__str__


class RouteTypeError(InvalidUpdateError, TypeError):
    """A Command goes to something that is neither a node name nor a Send."""

    code = "ROUTE_TYPE"


class NoCheckpointerError(UsageError, ValueError, RuntimeError):
    """No checkpointer set: this call needs a graph that was compiled with one."""

    code = "NO_CHECKPOINTER"
    fix = "Compile with a saver, e.g. graph.compile(checkpointer=InMemorySaver())."


class MissingThreadError(UsageError, KeyError, ValueError):
    """The graph has a checkpointer, so the call must say which thread it runs on."""

    code = "MISSING_THREAD"
    fix = 'Pass config={"configurable": {"thread_id": "..."}} (checkpoint_ns and checkpoint_id are optional).'
    __str__ = PregelError.__str__


class UnknownInterruptError(UsageError):
    """An answer names a question that is not pending."""

    code = "UNKNOWN_INTERRUPT"

    def __init__(
        self,
        message: str | None = None,
        *,
        reason: str = "not_pending",
        interrupt_ids: Sequence[str] = (),
        pending_ids: Sequence[str] = (),
        **place: Any,
    ) -> None:
        super().__init__(message, **place)
        self.reason, self.interrupt_ids, self.pending_ids = reason, tuple(interrupt_ids), tuple(pending_ids)


class RejectedAnswer(str):
    """A note on the error that an answer met; `id` is that of its question, which stays open."""

    id: str

    def __new__(cls, id: str) -> RejectedAnswer:
        note = super().__new__(
            cls, f"The answer to question {id} does not fit its response_schema; it can be given anew."
        )
        note.id = id
        return note

    def __getnewargs__(self) -> tuple[str]:
        return (self.id,)


def is_invalid_resume(error: BaseException) -> bool:
    """Whether an answer did not fit the `response_schema` of its question, which can be answered again."""
    return bool(rejected_in(error))


def rejected_in(error: BaseException) -> set[str]:
    """The ids of the questions whose answers were rejected by this error."""
    return {note.id for note in getattr(error, "__notes__", ()) if isinstance(note, RejectedAnswer)}


class AmbiguousResumeError(UnknownInterruptError, RuntimeError):
    """One answer was given, but several questions are pending."""

    code = "AMBIGUOUS_RESUME"


class CheckpointNotFoundError(UsageError, LookupError):
    """The addressed checkpoint does not exist on this thread."""

    code = "CHECKPOINT_NOT_FOUND"


class SubgraphNotFoundError(UsageError, ValueError):
    """A namespace that is to be changed belongs to no subgraph."""

    code = "SUBGRAPH_NOT_FOUND"


class ReplayMismatchError(UsageError):
    """A node that runs again called a graph or a task with another input than the first time."""

    code = "REPLAY_MISMATCH"


class ThreadNotFoundError(UsageError, LookupError):
    """There is no such thread."""

    code = "THREAD_NOT_FOUND"


class CannotResumeError(UsageError):
    """The thread has nothing to go on with."""

    code = "CANNOT_RESUME"

    def __init__(self, message: str | None = None, *, reason: str = "finished", **place: Any) -> None:
        super().__init__(message, **place)
        self.reason = reason


class OutsideRunError(UsageError, RuntimeError):
    """This can only be called from inside a running node."""

    code = "OUTSIDE_RUN"


class AsyncOnlyError(UsageError, TypeError):
    """No synchronous function provided: this node is async only."""

    code = "ASYNC_ONLY"


class MissingExtraError(UsageError, ModuleNotFoundError):
    """An optional package is not installed. `name` is the package's, as in Python's own error."""

    code = "MISSING_EXTRA"

    def __init__(self, message: str | None = None, *, name: str | None = None, **place: Any) -> None:
        super().__init__(message, **place)
        self.name = name


class StreamUseError(UsageError, RuntimeError, TypeError):
    """The projections of a run object are used in a way that cannot work."""

    code = "STREAM_USE"


class UnknownProjectionError(UsageError, AttributeError, KeyError):
    """A run object has no projection of that name."""

    code = "UNKNOWN_PROJECTION"


class NotBuiltError(UsageError, NotImplementedError):
    """This part of the library is not built yet."""

    code = "NOT_BUILT"


# -- whose fault: the run's ------------------------------------------------------------------------------------------


class RunError(PregelError):
    """The run could not go on."""

    code = "RUN"


class GraphRecursionError(RunError, RecursionError):
    """The run reached its recursion limit before it came to an end."""

    code = "GRAPH_RECURSION_LIMIT"


class JoinStarvedError(RunError):
    """A join waited for a node that can no longer arrive."""

    code = "JOIN_STARVED"


class NodeCancelledError(RunError):
    """A node raised CancelledError although nobody cancelled it."""

    code = "NODE_CANCELLED"


class NodeTimeoutError(RunError):
    """A node did not finish in time.

    All times are seconds. `kind` says which limit was passed, ``run`` or ``idle``; `timeout` is that limit.
    `still_running`: the attempt blocks a thread that cannot be stopped; it is tried again only once that has ended.
    """

    code = "NODE_TIMEOUT"
    still_running = False

    def __init__(
        self,
        message: str | None = None,
        *,
        elapsed: float = 0.0,
        kind: str = "run",
        idle_timeout: float | None = None,
        run_timeout: float | None = None,
        **place: Any,
    ) -> None:
        super().__init__(message, **place)
        self.elapsed, self.kind = elapsed, kind
        self.idle_timeout, self.run_timeout = idle_timeout, run_timeout
        self.timeout = run_timeout if kind == "run" else idle_timeout


class StepTimeoutError(RunError, TimeoutError):
    """Timed out: a superstep took longer than the graph's step_timeout."""

    code = "STEP_TIMEOUT"


class StoredError(RunError):
    """An error as the journal keeps it: its text. What an error handler gets when another process met the error."""

    code = "STORED"


@dataclass(frozen=True, slots=True)
class NodeError:
    """What an error handler gets as its parameter ``error: NodeError``: the failed node's name and what it raised.

    When the failure was met by a process that died, `error` is a StoredError: its text is all that was kept.
    """

    node: str
    error: BaseException


class ReducerLawError(RunError):
    """A reducer does not give the same for the same writes."""

    code = "REDUCER_LAW"


class TaskNotFound(RunError):
    """The task is not part of this step."""

    code = "TASK_NOT_FOUND"


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


# -- whose fault: the store's ----------------------------------------------------------------------------------------


class StoreError(PregelError):
    """The saver refused, failed or lost something; nothing after it was written."""

    code = "STORE"


class ThreadBusy(StoreError):
    """Another run owns this thread.

    `asked`: what this call had asked of that run before its `wait` was over, ``interrupt`` or ``rollback``. It stands:
    that run stops for it.
    """

    code = "THREAD_BUSY"
    fix = (
        "Wait for the other run to end, or use another thread_id. concurrency='enqueue' waits for it,"
        " 'interrupt' and 'rollback' make it stop."
    )

    def __init__(self, message: str | None = None, *, reason: str = "held", asked: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        self.reason = reason
        self.asked = asked


class AuthorityLost(StoreError):
    """Another owner took the thread over; this run wrote nothing after that."""

    code = "AUTHORITY_LOST"


class ThreadDeleted(StoreError):
    """The thread was deleted while it ran."""

    code = "THREAD_DELETED"


class StoreMoved(StoreError):
    """The database file was moved or replaced under an open connection."""

    code = "STORE_MOVED"


class JournalDamaged(StoreError):
    """A stored record that the thread needs is missing or does not fit."""

    code = "JOURNAL_DAMAGED"


class ReducerChanged(StoreError):
    """A stored value can only be made again by a reducer that the channel does not have any more."""

    code = "REDUCER_CHANGED"


class SerializationError(StoreError, TypeError):
    """A value cannot be stored so that it comes back equal."""

    code = "SERIALIZATION"


# -- the rest --------------------------------------------------------------------------------------------------------


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
