"""Whose fault: the run's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pregel.errors.base import PregelError


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


class NodeExitError(RunError):
    """A node that a worker runs raised SystemExit, which would end the worker."""

    code = "NODE_EXIT"


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


class OutcomeUnknownError(RunError):
    """Work outside was begun, and whether it happened is not known.

    `key` is the name that the node gave it, `effect_id` that of the record. It stays so until somebody says what came
    of it (`app.threads.settle`).
    """

    code = "OUTCOME_UNKNOWN"

    def __init__(self, message: str | None = None, *, key: str = "", effect_id: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        self.key, self.effect_id = key, effect_id


class WorkFailedError(RunError):
    """Work that a node had done elsewhere failed, after the attempts of the worker that did it.

    `error_type` and `error_message` are those of what its code raised.
    """

    code = "WORK_FAILED"

    def __init__(
        self, message: str | None = None, *, error_type: str = "", error_message: str = "", **place: Any
    ) -> None:
        super().__init__(message, **place)
        self.error_type, self.error_message = error_type, error_message


class ReducerLawError(RunError):
    """A reducer does not give the same for the same writes."""

    code = "REDUCER_LAW"


class TaskNotFound(RunError):
    """The task is not part of this step."""

    code = "TASK_NOT_FOUND"
