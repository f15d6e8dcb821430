"""Every error of the library, by whose fault it is.

::

    GraphBubbleUp (BaseException)        signals that travel up through user code
    ├── GraphInterrupt                   a node asked a question; never an Exception, so no handler can swallow it
    ├── ContinueAsNew                    a node wants the thread to go on as a new execution
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
    │   ├── CannotRewindError
    │   ├── IdempotencyConflictError
    │   ├── UnknownEffectError
    │   ├── EventMismatchError
    │   ├── AttachMismatchError
    │   ├── VersionMismatchError
    │   ├── UnregisteredWorkError
    │   ├── NotAuthorisedError
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
    │   ├── NodeExitError
    │   ├── NodeTimeoutError
    │   ├── OutcomeUnknownError
    │   ├── ReducerLawError
    │   ├── StepTimeoutError (TimeoutError)
    │   ├── StoredError
    │   ├── TaskNotFound
    │   └── WorkFailedError
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

from pregel.errors.base import (
    PLACES,
    EmptyChannelError,
    ErrorCode,
    InternalError,
    PregelError,
    told,
)
from pregel.errors.definition import (
    DefinitionError,
    GraphValidationError,
    ReservedNameError,
)
from pregel.errors.run import (
    GraphRecursionError,
    JoinStarvedError,
    NodeCancelledError,
    NodeError,
    NodeExitError,
    NodeTimeoutError,
    OutcomeUnknownError,
    ReducerLawError,
    RunError,
    StepTimeoutError,
    StoredError,
    TaskNotFound,
    WorkFailedError,
)
from pregel.errors.signals import (
    CallWithdrawn,
    ContinueAsNew,
    GraphBubbleUp,
    GraphDrained,
    GraphInterrupt,
    NodeInterrupt,
    ParentCommand,
    RunDisplaced,
)
from pregel.errors.store import (
    AuthorityLost,
    JournalDamaged,
    ReducerChanged,
    SerializationError,
    StoreError,
    StoreMoved,
    ThreadBusy,
    ThreadDeleted,
)
from pregel.errors.usage import (
    AmbiguousResumeError,
    AsyncOnlyError,
    AttachMismatchError,
    CannotResumeError,
    CannotRewindError,
    CheckpointNotFoundError,
    ConcurrentUpdateError,
    EmptyInputError,
    EventMismatchError,
    IdempotencyConflictError,
    InvalidInputError,
    InvalidRouteError,
    InvalidUpdateError,
    MissingExtraError,
    MissingThreadError,
    NoCheckpointerError,
    NodeReturnError,
    NotAuthorisedError,
    NotBuiltError,
    OutsideRunError,
    PathMapError,
    RejectedAnswer,
    ReplayMismatchError,
    RouteTypeError,
    StreamUseError,
    SubgraphNotFoundError,
    ThreadNotFoundError,
    UnknownEffectError,
    UnknownInterruptError,
    UnknownProjectionError,
    UnknownTargetError,
    UnregisteredWorkError,
    UsageError,
    VersionMismatchError,
    is_invalid_resume,
    rejected_in,
)

__all__ = [
    "PLACES",
    "AmbiguousResumeError",
    "AsyncOnlyError",
    "AttachMismatchError",
    "AuthorityLost",
    "CallWithdrawn",
    "CannotResumeError",
    "CannotRewindError",
    "CheckpointNotFoundError",
    "ConcurrentUpdateError",
    "ContinueAsNew",
    "DefinitionError",
    "EmptyChannelError",
    "EmptyInputError",
    "ErrorCode",
    "EventMismatchError",
    "GraphBubbleUp",
    "GraphDrained",
    "GraphInterrupt",
    "GraphRecursionError",
    "GraphValidationError",
    "IdempotencyConflictError",
    "InternalError",
    "InvalidInputError",
    "InvalidRouteError",
    "InvalidUpdateError",
    "JoinStarvedError",
    "JournalDamaged",
    "MissingExtraError",
    "MissingThreadError",
    "NoCheckpointerError",
    "NodeCancelledError",
    "NodeError",
    "NodeExitError",
    "NodeInterrupt",
    "NodeReturnError",
    "NodeTimeoutError",
    "NotAuthorisedError",
    "NotBuiltError",
    "OutcomeUnknownError",
    "OutsideRunError",
    "ParentCommand",
    "PathMapError",
    "PregelError",
    "ReducerChanged",
    "ReducerLawError",
    "RejectedAnswer",
    "ReplayMismatchError",
    "ReservedNameError",
    "RouteTypeError",
    "RunDisplaced",
    "RunError",
    "SerializationError",
    "StepTimeoutError",
    "StoreError",
    "StoreMoved",
    "StoredError",
    "StreamUseError",
    "SubgraphNotFoundError",
    "TaskNotFound",
    "ThreadBusy",
    "ThreadDeleted",
    "ThreadNotFoundError",
    "UnknownEffectError",
    "UnknownInterruptError",
    "UnknownProjectionError",
    "UnknownTargetError",
    "UnregisteredWorkError",
    "UsageError",
    "VersionMismatchError",
    "WorkFailedError",
    "is_invalid_resume",
    "rejected_in",
    "told",
]
