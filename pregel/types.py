"""Plain data that users and the engine hand each other: Send, Command, Interrupt, snapshots, policies."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar

from pregel.config import RunnableConfig, running_task
from pregel.errors import InvalidInputError, NodeTimeoutError, PregelError
from pregel.parts import CheckpointPayload as CheckpointPayload
from pregel.parts import CheckpointStreamPart as CheckpointStreamPart
from pregel.parts import CheckpointTask as CheckpointTask
from pregel.parts import CustomStreamPart as CustomStreamPart
from pregel.parts import DebugPayload as DebugPayload
from pregel.parts import DebugStreamPart as DebugStreamPart
from pregel.parts import MessagesStreamPart as MessagesStreamPart
from pregel.parts import StreamPart as StreamPart
from pregel.parts import TaskPayload as TaskPayload
from pregel.parts import TaskResultPayload as TaskResultPayload
from pregel.parts import TasksStreamPart as TasksStreamPart
from pregel.parts import ToolsStreamPart as ToolsStreamPart
from pregel.parts import UpdatesStreamPart as UpdatesStreamPart
from pregel.parts import ValuesStreamPart as ValuesStreamPart
from pregel.question import Interrupt as Interrupt
from pregel.typing import ValueT
from pregel.warnings import LangGraphDeprecatedSinceV11, warn_caller

if TYPE_CHECKING:
    from pregel.checkpoint.base import BaseCheckpointSaver  # names a type only

All = Literal["*"]
StreamMode = Literal["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug", "tools"]
Durability = Literal["sync", "async", "exit"]
StreamWriter = Callable[[Any], None]
Checkpointer: TypeAlias = "BaseCheckpointSaver[Any] | bool | None"
STREAM_MODES = ("values", "updates", "messages", "custom", "checkpoints", "tasks", "debug", "tools")
DURABILITIES = ("sync", "async", "exit")
N = TypeVar("N", bound=Hashable)

OVERWRITE: Literal["__overwrite__"] = "__overwrite__"


def seconds(value: float | timedelta | None) -> float | None:
    """A duration in seconds."""
    return value.total_seconds() if isinstance(value, timedelta) else value


class Send:
    """A packet that runs `node` in the next superstep with `arg` as its whole input.

    `timeout` (seconds, timedelta or TimeoutPolicy) overrides the node's own for this task.
    """

    __slots__ = ("arg", "node", "timeout")

    def __init__(self, /, node: str, arg: Any, *, timeout: float | timedelta | TimeoutPolicy | None = None) -> None:
        self.node = node
        self.arg = arg
        self.timeout = TimeoutPolicy.coerce(timeout)

    def __hash__(self) -> int:
        return hash((self.node, self.arg, self.timeout))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Send)
            and self.node == other.node
            and self.arg == other.arg
            and self.timeout == other.timeout
        )

    def __repr__(self) -> str:
        timeout = "" if self.timeout is None else f", timeout={self.timeout!r}"
        return f"Send(node={self.node!r}, arg={self.arg!r}{timeout})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Generic[N]):
    """What a node may return, and a caller may send, to update the state, route, or answer.

    - `graph`: None for this graph, `Command.PARENT` for the graph around it.
    - `update`: a dict, (key, value) pairs, or an instance of an annotated class.
    - `resume`: the answer to the pending question, or a map {interrupt id: answer}.
    - `goto`: a node name, a Send, or a sequence of them. Static edges fire beside it.
    """

    graph: str | None = None
    update: Any = None
    resume: Any = None
    goto: Send | Sequence[Send | N] | N = ()

    PARENT: ClassVar[Literal["__parent__"]] = "__parent__"

    def __repr__(self) -> str:
        shown = ((name, getattr(self, name)) for name in ("graph", "update", "resume", "goto"))
        return f"Command({', '.join(f'{name}={value!r}' for name, value in shown if value)})"


@dataclass(slots=True)
class Overwrite:
    """A write that replaces what a reducer channel holds instead of being reduced into it."""

    value: Any
    type: Literal["__overwrite__"] = "__overwrite__"


class StateUpdate(NamedTuple):
    """One update of `bulk_update_state`: `values` as if `as_node` had returned them."""

    values: Any
    as_node: str | None = None
    task_id: str | None = None


class PregelTask(NamedTuple):
    """A task of a step as a snapshot shows it. `result` is None while it has not finished."""

    id: str
    name: str
    path: tuple[Any, ...]
    error: Any = None
    interrupts: tuple[Interrupt, ...] = ()
    state: Any = None
    result: Any = None


class StateSnapshot(NamedTuple):
    """A thread's state at one checkpoint: values, what runs next, and where it stands in history."""

    values: Any
    next: tuple[str, ...]
    config: RunnableConfig
    metadata: dict[str, Any] | None
    created_at: str | None
    parent_config: RunnableConfig | None
    tasks: tuple[PregelTask, ...]
    interrupts: tuple[Interrupt, ...]


@dataclass(frozen=True)
class GraphOutput(Generic[ValueT]):
    """What `invoke(version="v2")` returns: the value and the questions that are pending."""

    value: ValueT
    interrupts: tuple[Interrupt, ...] = ()

    def __getitem__(self, key: str) -> Any:
        """A key of the value, or the questions, as version 1 gives them. Deprecated."""
        warn_caller(
            "result[key] of a GraphOutput is deprecated: use its value and interrupts.", LangGraphDeprecatedSinceV11
        )
        return self.interrupts if key == "__interrupt__" else self.value[key]  # type: ignore[index]

    def __contains__(self, key: object) -> bool:
        """Whether version 1 would give the key. Deprecated."""
        warn_caller("key in a GraphOutput is deprecated: use its value and interrupts.", LangGraphDeprecatedSinceV11)
        return bool(self.interrupts) if key == "__interrupt__" else key in self.value  # type: ignore[operator]


def default_retry_on(error: Exception) -> bool:
    """Whether an error looks passing: connection trouble and unknown kinds yes, programming and usage errors no."""
    if isinstance(error, ConnectionError | NodeTimeoutError):
        return True
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(status, int) and type(error).__module__.split(".")[0] in ("httpx", "requests"):
        return 500 <= status < 600
    return not isinstance(
        error,
        ValueError
        | TypeError
        | ArithmeticError
        | ImportError
        | LookupError
        | NameError
        | SyntaxError
        | RuntimeError
        | ReferenceError
        | StopIteration
        | StopAsyncIteration
        | OSError
        | PregelError,
    )


class RetryPolicy(NamedTuple):
    """When and how often a failed node is tried again. Intervals in seconds; attempts include the first."""

    initial_interval: float = 0.5
    backoff_factor: float = 2.0
    max_interval: float = 128.0
    max_attempts: int = 3
    jitter: bool = True
    retry_on: type[Exception] | Sequence[type[Exception]] | Callable[[Exception], bool] = default_retry_on

    def wants(self, error: Exception) -> bool:
        """Whether this policy is for such an error."""
        wanted = self.retry_on
        if isinstance(wanted, type):
            return isinstance(error, wanted)
        if isinstance(wanted, Sequence):
            return isinstance(error, tuple(wanted))
        return bool(wanted(error))

    def wait(self, failures: int) -> float:
        """Seconds until the next attempt after so many failures; with `jitter` up to one more is added by chance."""
        try:
            return float(min(self.max_interval, self.initial_interval * self.backoff_factor ** (failures - 1)))
        except OverflowError:
            return float(self.max_interval)


def checked_policies(policies: RetryPolicy | Sequence[RetryPolicy] | None) -> tuple[RetryPolicy, ...]:
    """The policies as a tuple; a named error for one that could not be followed."""
    found = () if policies is None else (policies,) if isinstance(policies, RetryPolicy) else tuple(policies)
    for policy in found:
        if not isinstance(policy, RetryPolicy):
            raise TypeError(f"Expected a RetryPolicy or a sequence of them, got {type(policy).__name__}.")
        wanted = policy.retry_on
        kinds = list(wanted) if isinstance(wanted, Sequence) else [wanted] if isinstance(wanted, type) else []
        if isinstance(wanted, str) or not (kinds or callable(wanted)):
            raise TypeError(f"retry_on must be an exception type, a list of them or a predicate, got {wanted!r}.")
        if any(not (isinstance(kind, type) and issubclass(kind, Exception)) for kind in kinds):
            raise TypeError(f"retry_on must be made of subclasses of Exception, got {wanted!r}.")
        if policy.max_attempts < 1 or min(policy.initial_interval, policy.max_interval, policy.backoff_factor) < 0:
            raise InvalidInputError(
                f"{policy!r} cannot be followed.", fix="max_attempts must be at least 1, and no interval negative."
            )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeoutPolicy:
    """How long one attempt may run, and how long it may be idle (seconds or timedelta)."""

    run_timeout: float | timedelta | None = None
    idle_timeout: float | timedelta | None = None
    refresh_on: Literal["auto", "heartbeat"] = "auto"

    def __post_init__(self) -> None:
        for name in ("run_timeout", "idle_timeout"):
            if (limit := seconds(getattr(self, name))) is not None and limit <= 0:
                raise InvalidInputError(f"{name} must be greater than 0, got {limit}.", fix="Give a positive number.")
        if self.refresh_on not in ("auto", "heartbeat"):
            raise InvalidInputError(f"refresh_on is {self.refresh_on!r}.", fix="Use 'auto' or 'heartbeat'.")

    @classmethod
    def coerce(cls, value: float | timedelta | TimeoutPolicy | None) -> TimeoutPolicy | None:
        """A policy from seconds, a timedelta or a policy; None when nothing is limited."""
        if value is None:
            return None
        policy = value if isinstance(value, cls) else cls(run_timeout=value)  # type: ignore[arg-type]
        return None if policy.run_timeout is None and policy.idle_timeout is None else policy


@dataclass(frozen=True, slots=True, kw_only=True)
class CachePolicy:
    """Which inputs share a cached result, and for how many seconds (None: for ever).

    Without a `key_func` inputs that are equal and of the same types share one.
    """

    key_func: Callable[..., str | bytes] | None = None
    ttl: float | None = None

    def __post_init__(self) -> None:
        if self.ttl is not None and not self.ttl > 0:
            raise InvalidInputError(f"ttl must be greater than 0, got {self.ttl}.", fix="Give seconds, or None.")
        if self.key_func is not None and not callable(self.key_func):
            raise InvalidInputError("key_func must be a function that returns a str or bytes for an input.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePolicy:
    """What spans record of a node's input and output: what these functions make of them; without one, nothing.

    They are called in traced runs only, after `pregel.telemetry.instrument`. What one raises is logged.
    """

    process_inputs: Callable[[Any], Any] | None = None
    process_outputs: Callable[[Any], Any] | None = None


def omit_payload(value: Any) -> dict[str, Any]:
    """Nothing of a payload, for TracePolicy."""
    return {}


class CacheKey(NamedTuple):
    """Where a node's result is cached: namespace, key, seconds to live."""

    ns: tuple[str, ...]
    key: str
    ttl: float | None


@dataclass
class PregelExecutableTask:
    """A task as tools of the reference see it."""

    name: str
    input: Any
    proc: Any
    writes: Any
    config: RunnableConfig
    triggers: Sequence[str]
    retry_policy: Sequence[RetryPolicy]
    cache_key: CacheKey | None
    id: str
    path: tuple[Any, ...]
    writers: Sequence[Any] = ()
    subgraphs: Sequence[Any] = ()
    timeout: TimeoutPolicy | None = field(default=None)


def interrupt(value: Any, *, response_schema: Any = None) -> Any:
    """The answer to a question, from inside a node; the run pauses until ``Command(resume=...)`` brings it.

    The node runs again from its top on resume and the same call then returns the answer. The pause is recorded when
    it is raised: no ``except`` can skip it. OutsideRunError outside of a node.
    """
    return running_task().ask(value, response_schema)


@dataclass(frozen=True, slots=True)
class FollowedChunk:
    """What `follow` gives: a chunk that a run journaled, or how the thread stands.

    - `offset`: its place among all chunks of the thread; it jumps where housekeeping removed some.
    - `attempt`: 1, and one more for each takeover from a worker that died, in each run.
    - `mode`, `ns`, `data`: what the stream shows, as in ``version="v2"``. Two more modes: ``attempt`` is where an
      attempt begins, or a task is tried again; its data has the ``superseded`` offsets as [first, last]. ``status``,
      always the last chunk, has the thread's `status` and `reason`, and the open `interrupts`.
    - `node`: the node that showed it while it ran.
    - `landed`: the work that it tells of is stored. `superseded`: it is not, and a later attempt does it again.
      Neither: it is under way, or the thread rests in the middle of it.
    - `at`: when it was journaled, in unix seconds.
    """

    offset: int
    attempt: int
    mode: str
    ns: tuple[str, ...]
    data: Any
    node: str
    landed: bool
    superseded: bool
    at: float

    @property
    def next_offset(self) -> int:
        """The offset to follow from in order to get what comes behind it."""
        return self.offset if self.mode == "status" else self.offset + 1


class FailedTask(NamedTuple):
    """A task that failed, as a rewind keeps it. `attempts`: how often it was tried, deaths and failures together."""

    ns: str
    node: str
    task_id: str
    error: str
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Work outside of the thread that was begun, and whose outcome is not recorded (`runtime.effect`).

    - `key`: the name that its node gave it. `id`: the same for all effects of the thread, should two have one key.
    - `idempotency_key`: what was offered to the provider. `idempotent`: the node says that the provider knows work
      that was done by it, so a next attempt may ask again.
    - `node`, `ns`, `task_id`, `attempt`: who began it, and `begun_at` when, in unix seconds.
    """

    key: str
    id: str
    idempotency_key: str
    idempotent: bool
    node: str
    ns: str
    task_id: str
    attempt: int
    begun_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """A failed thread that was made ready to go on where it failed (`app.threads.rewind`).

    - `execution_id`: a new one; the run that takes the thread up has it as its `run_id`, unless it has one of its own.
    - `at`: when, in unix seconds. `error`: what the thread's row said of the failure.
    - `failed`: the tasks that failed, those of graphs inside too. `effects`: what they may have done outside, which no
      rewind undoes.
    - `repeated`: this is the rewind that the thread had before; nothing has run since, and nothing was written.
    """

    thread_id: str
    execution_id: str
    reason: str
    operator: str | None
    at: float
    error: str
    failed: tuple[FailedTask, ...] = ()
    effects: tuple[Effect, ...] = ()
    repeated: bool = False


def ensure_valid_checkpointer(checkpointer: Any) -> Any:
    """The checkpointer itself when it is a saver, True, False or None; TypeError otherwise."""
    if isinstance(checkpointer, type):
        name = checkpointer.__name__
        raise TypeError(f"Invalid checkpointer: the class {name}. Call it: checkpointer={name}().")
    if checkpointer in (None, True, False) or (hasattr(checkpointer, "get_tuple") and hasattr(checkpointer, "put")):
        return checkpointer
    raise TypeError(
        f"Invalid checkpointer: {type(checkpointer).__name__}. Give a saver instance, True, False or None. "
        "A saver from from_conn_string is a context manager: enter it with `with` first."
    )


def ensure_valid_cache(cache: Any) -> Any:
    """The cache itself; TypeError for what is none, such as the class of one."""
    if cache is not None and (isinstance(cache, type) or not (hasattr(cache, "get") and hasattr(cache, "set"))):
        raise TypeError(f"Invalid cache: {cache!r}. Give an instance, such as InMemoryCache().")
    return cache


def ensure_valid_store(store: Any) -> Any:
    """The store itself; TypeError for a context manager, which only gives one."""
    if (hasattr(store, "__enter__") or hasattr(store, "__aenter__")) and not hasattr(store, "batch"):
        raise TypeError(
            f"Invalid store: {type(store).__name__}. "
            "A store from from_conn_string is a context manager: enter it with `with` first."
        )
    return store
