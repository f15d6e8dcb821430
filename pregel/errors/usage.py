"""Whose fault: the call's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pregel.errors.base import PregelError


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


class IdempotencyConflictError(UsageError):
    """The key of a start belongs to something else: another graph, input or config. Nothing was written."""

    code = "IDEMPOTENCY_CONFLICT"


class AttachMismatchError(UsageError):
    """The thread is not the run that is meant; `field` is what differs: graph, version, config, input or code."""

    code = "ATTACH_MISMATCH"

    def __init__(self, message: str | None = None, *, field: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        self.field = field


class VersionMismatchError(UsageError):
    """The thread is of another version than this graph. Nothing was written.

    `of_thread` and `of_graph` are the versions; None for none.
    """

    code = "VERSION_MISMATCH"

    def __init__(
        self,
        message: str | None = None,
        *,
        of_thread: str | None = None,
        of_graph: str | None = None,
        **place: Any,
    ) -> None:
        super().__init__(message, **place)
        self.of_thread, self.of_graph = of_thread, of_graph


class CannotRewindError(UsageError):
    """The thread has not failed, so there is nothing to rewind.

    `reason` says how it stands: ``running``, ``pending``, ``abandoned``, ``interrupted``, ``waiting``, ``stopped`` (it
    can be resumed), ``finished``, or ``lost`` when the run that failed had stored nothing.
    """

    code = "CANNOT_REWIND"

    def __init__(self, message: str | None = None, *, reason: str = "finished", **place: Any) -> None:
        super().__init__(message, **place)
        self.reason = reason


class UnknownEffectError(UsageError):
    """No effect of this name waits to be settled, or several do.

    `effect_ids` are those that wait.
    """

    code = "UNKNOWN_EFFECT"

    def __init__(self, message: str | None = None, *, effect_ids: Sequence[str] = (), **place: Any) -> None:
        super().__init__(message, **place)
        self.effect_ids = tuple(effect_ids)


class EventMismatchError(UsageError):
    """The thread waits for this event with another key; the event was not stored, and the wait goes on."""

    code = "EVENT_MISMATCH"


class UnregisteredWorkError(UsageError):
    """A worker names work that it has no code for."""

    code = "UNREGISTERED_WORK"


class NotAuthorisedError(UsageError):
    """A worker asked for work that it has no right to; the work waits for another one."""

    code = "NOT_AUTHORISED"


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
