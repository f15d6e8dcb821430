"""What a node may ask for beside its input: context, store, writer, where it runs, and a key for outside effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from inspect import isawaitable
from os import urandom
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

from pregel.config import running_task
from pregel.errors import InvalidInputError

if TYPE_CHECKING:
    from pregel.engine.future import CallFuture

T = TypeVar("T")
C = TypeVar("C")


def _nothing(*_: Any) -> None:
    return None


def _no_key() -> str:
    raise InvalidInputError(
        "An idempotency key needs a thread.", fix="Run the graph with a checkpointer and a thread_id."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionInfo:
    """Where a node runs. `node_attempt` counts from 1; times are unix seconds."""

    checkpoint_id: str
    checkpoint_ns: str
    task_id: str
    thread_id: str | None = None
    run_id: str | None = None
    node_attempt: int = 1
    node_first_attempt_time: float | None = None

    def patch(self, **overrides: Any) -> ExecutionInfo:
        """A copy with some fields replaced."""
        return replace(self, **overrides)


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseUser:
    """The user a server runs a graph for."""

    identity: str
    display_name: str = ""
    is_authenticated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Which server runs the graph, when one does."""

    assistant_id: str
    graph_id: str
    user: BaseUser | None = None


class RunControl:
    """A handle by which the caller asks a run to stop between two steps."""

    __slots__ = ("drain_reason",)

    hands_back = False
    """Whether what it stops is left to another worker, not to whoever resumes it."""

    def __init__(self) -> None:
        self.drain_reason: str | None = None

    def request_drain(self, reason: str = "shutdown") -> None:
        """Stop after the step that runs now; what it did is kept and the thread can be resumed."""
        self.drain_reason = reason

    @property
    def drain_requested(self) -> bool:
        """Whether somebody asked."""
        return self.drain_reason is not None


@runtime_checkable  # pydantic asks where a Runtime is a parameter of a model
class Steps(Protocol):
    """The running task, as a store for what it makes once."""

    def recall(self, key: str) -> tuple[Any, ...]: ...

    def keep(self, key: str, value: Any) -> CallFuture[Any]: ...

    def outcome(self, key: str) -> tuple[Any, ...]: ...

    def begin(self, key: str, *, idempotent: bool) -> CallFuture[str]: ...

    def come_out(self, key: str, value: Any) -> CallFuture[Any]: ...

    def withdraw(self, key: str, why: str) -> CallFuture[Any]: ...

    @property
    def is_replaying(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime(Generic[C]):
    """What a node gets as its ``runtime`` parameter.

    - `fence`: the epoch of this run's authority over the thread; hand it to whatever compares fencing tokens. 0 without
      a saver.
    - `idempotency_key`: the same text after a crash, a resume and a retry of this work, another for other work of the
      thread's history. Two forks of one checkpoint take the same place in it (docs/threads.md).
    """

    context: C = None  # type: ignore[assignment]
    store: Any = None
    stream_writer: Callable[[Any], None] = _nothing
    heartbeat: Callable[[], None] = _nothing
    previous: Any = None
    execution_info: ExecutionInfo | None = None
    server_info: ServerInfo | None = None
    control: RunControl | None = None
    fence: int = 0
    _key: Callable[[], str] = field(default=_no_key, repr=False)
    _steps: Steps | None = field(default=None, repr=False)

    def step(self, key: str, producer: Callable[[], T]) -> T:
        """The value that `producer` returned the first time that this task came here: made once, stored, and read
        again in every later attempt and resume.

        `key` names the value within the task. SerializationError for a value that would not come back equal; nothing
        is stored then.
        """
        steps = self._steps
        if steps is None:
            return producer()
        if known := steps.recall(key):
            stored: T = known[0]
            return stored
        value = producer()
        steps.keep(key, value).result()
        return value

    async def astep(self, key: str, producer: Callable[[], T | Awaitable[T]]) -> T:
        """Like `step`, awaited; `producer` may be a coroutine function."""
        steps = self._steps
        if steps is not None and (known := steps.recall(key)):
            stored: T = known[0]
            return stored
        made = producer()
        value: T = await made if isawaitable(made) else made
        if steps is not None:
            await steps.keep(key, value)
        return value

    def effect(
        self,
        key: str,
        producer: Callable[[str], T],
        *,
        idempotent: bool = False,
        refused: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> T:
        """What came of work outside of the thread, which `producer` does when it is given an idempotency key.

        That it begins is stored before `producer` is called, in every durability, and its result before this returns;
        a later attempt or resume reads the result. Where it had begun and no result was stored, it may have happened:
        with `idempotent` (the provider knows the key) it is called again with the same key; else OutcomeUnknownError
        ends the run, until `app.threads.settle` says what came of it. `refused` are errors of `producer` that tell for
        certain that it did not happen; after any other error its outcome is unknown too.
        """
        steps = self._steps
        if steps is None:
            return producer(urandom(16).hex())
        if known := steps.outcome(key):
            stored: T = known[0]
            return stored
        offered = steps.begin(key, idempotent=idempotent).result()
        try:
            value = producer(offered)
        except refused as error:
            steps.withdraw(key, type(error).__name__).result()
            raise
        steps.come_out(key, value).result()
        return value

    async def aeffect(
        self,
        key: str,
        producer: Callable[[str], T | Awaitable[T]],
        *,
        idempotent: bool = False,
        refused: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> T:
        """Like `effect`, awaited; `producer` may be a coroutine function."""
        steps = self._steps
        if steps is not None and (known := steps.outcome(key)):
            stored: T = known[0]
            return stored
        offered = urandom(16).hex() if steps is None else await steps.begin(key, idempotent=idempotent)
        try:
            made = producer(offered)
            value: T = await made if isawaitable(made) else made
        except refused as error:
            if steps is not None:
                await steps.withdraw(key, type(error).__name__)
            raise
        if steps is not None:
            await steps.come_out(key, value)
        return value

    @property
    def idempotency_key(self) -> str:
        """32 hex characters that name this work; InvalidInputError without a thread.

        Each reading names another piece of the work, in order: a node with two payments reads it twice, and one that
        needs a key twice keeps it in a variable.
        """
        return self._key()

    @property
    def is_replaying(self) -> bool:
        """Whether this code runs again, and goes over what was recorded the time before: answers, results of tasks and
        of called graphs, values of `step`. False from the last of these on, and throughout a first run.

        For what only tells (logs, metrics). Work must not depend on it: it would be left out after a crash.
        """
        return self._steps is not None and self._steps.is_replaying

    @property
    def drain_requested(self) -> bool:
        """Whether the run was asked to stop after this step."""
        return self.control is not None and self.control.drain_requested

    @property
    def drain_reason(self) -> str | None:
        """Why it was asked to."""
        return self.control.drain_reason if self.control is not None else None

    def merge(self, other: Runtime[C]) -> Runtime[C]:
        """A copy in which what `other` has set wins."""
        names = ("context", "store", "stream_writer", "previous", "execution_info", "server_info", "control")
        news = {name: value for name in names if (value := getattr(other, name)) and value is not _nothing}
        return replace(self, **news)

    def override(self, **overrides: Any) -> Runtime[C]:
        """A copy with some fields replaced."""
        return replace(self, **overrides)

    def patch_execution_info(self, **overrides: Any) -> Runtime[C]:
        """A copy whose execution_info has some fields replaced; RuntimeError when there is none."""
        if self.execution_info is None:
            raise RuntimeError("This runtime has no execution_info; it exists only inside a running node.")
        return replace(self, execution_info=self.execution_info.patch(**overrides))


def get_runtime(context_schema: type[C] | None = None) -> Runtime[C]:
    """The runtime of the running node; OutsideRunError outside of a run."""
    runtime: Runtime[C] = running_task().runtime
    return runtime
