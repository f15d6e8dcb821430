"""What a tool gets that no model can give it: state, store, call id, runtime, config. Hidden from the model."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Generic, Literal, NamedTuple, get_args, get_origin, get_type_hints

from typing_extensions import TypeVar

from pregel.config import RunnableConfig
from pregel.errors import InvalidInputError
from pregel.runtime import ExecutionInfo, Runtime, ServerInfo

C = TypeVar("C", default=Any)
S = TypeVar("S", default=Any)
T = TypeVar("T")
Kind = Literal["given", "state", "store", "call id", "runtime", "config"]


class InjectedToolArg:
    """Marks an argument that the caller gives and the model never sees: ``Annotated[T, InjectedToolArg]``."""


class InjectedToolCallId(InjectedToolArg):
    """Marks the argument that gets the id of the tool call."""


class InjectedState(InjectedToolArg):
    """Marks the argument that gets the graph's state, or one `field` of it."""

    def __init__(self, field: str | None = None) -> None:
        self.field = field


class InjectedStore(InjectedToolArg):
    """Marks the argument that gets the graph's store."""


def _nothing(*_: Any) -> None:
    return None


def _no_key() -> str:
    raise InvalidInputError("An idempotency key needs a running graph.", fix="Call the tool from a graph's ToolNode.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRuntime(Generic[C, S]):
    """Everything a tool may ask for beside its arguments; a parameter that is annotated with it gets it.

    - `state`: the graph's state as it is now; `context`, `store`, `config`, `stream_writer`: as a node gets them.
    - `idempotency_key`: the same 32 hex characters for this call after a crash, a resume and a retry.
    - `attempt`: which attempt of the task this is, from 1.
    """

    state: S = None  # type: ignore[assignment]
    context: C = None  # type: ignore[assignment]
    config: RunnableConfig = field(default_factory=RunnableConfig)
    stream_writer: Callable[[Any], None] = _nothing
    tool_call_id: str | None = None
    store: Any = None
    tools: Sequence[Any] = ()
    execution_info: ExecutionInfo | None = None
    server_info: ServerInfo | None = None
    _key: Callable[[], str] = field(default=_no_key, repr=False)
    _emit: Callable[[Any], None] = field(default=_nothing, repr=False)
    _node: Runtime[Any] = field(default_factory=Runtime, repr=False)

    @property
    def idempotency_key(self) -> str:
        """A key for outside effects of this call."""
        return hashlib.blake2b(f"{self._key()}\0{self.tool_call_id}".encode(), digest_size=16).hexdigest()

    @property
    def fence(self) -> int:
        """As `Runtime.fence`: the epoch of this run's authority over the thread, 0 without a saver."""
        return self._node.fence

    @property
    def attempt(self) -> int:
        """Which attempt of the task runs, from 1."""
        return self.execution_info.node_attempt if self.execution_info is not None else 1

    def step(self, key: str, producer: Callable[[], T]) -> T:
        """As `Runtime.step`: a value that this call makes once; `key` names it within the call."""
        return self._node.step(key, producer)

    async def astep(self, key: str, producer: Callable[[], T | Awaitable[T]]) -> T:
        """Like `step`, awaited."""
        return await self._node.astep(key, producer)

    def effect(
        self,
        key: str,
        producer: Callable[[str], T],
        *,
        idempotent: bool = False,
        refused: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> T:
        """As `Runtime.effect`: work outside that this call does once; `key` names it within the call."""
        return self._node.effect(key, producer, idempotent=idempotent, refused=refused)

    async def aeffect(
        self,
        key: str,
        producer: Callable[[str], T | Awaitable[T]],
        *,
        idempotent: bool = False,
        refused: type[Exception] | tuple[type[Exception], ...] = (),
    ) -> T:
        """Like `effect`, awaited."""
        return await self._node.aeffect(key, producer, idempotent=idempotent, refused=refused)

    def emit_output_delta(self, delta: Any) -> None:
        """Stream a piece of the result in mode ``tools``; nothing when nobody listens."""
        self._emit(delta)

    def override(self, **overrides: Any) -> ToolRuntime[C, S]:
        """A copy with some fields replaced."""
        return replace(self, **overrides)


class MissingStateError(InvalidInputError, KeyError, AttributeError):
    """A tool wants a key of the state that is not set: no model can mend that, so it is raised."""

    code = "MISSING_STATE"
    __str__ = InvalidInputError.__str__


class Injection(NamedTuple):
    """One injected parameter: what it gets, which field of the state, and whether it may be left out."""

    name: str
    kind: Kind
    field: str | None = None
    optional: bool = False


def hints_of(function: Any) -> dict[str, Any]:
    """The annotation of every parameter, with what `Annotated` adds; Any where there is none."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        name = getattr(function, "__name__", function)
        error.add_note(f"An annotation of the tool {name!r} names a type that its module does not have.")
        raise
    return {
        name: hints.get(name, Any)
        for name, one in inspect.signature(function).parameters.items()
        if one.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    }


def injections_of(function: Any, hints: Mapping[str, Any]) -> tuple[Injection, ...]:
    """The injected parameters of a function."""
    parameters = inspect.signature(function).parameters
    found = []
    for name, hint in hints.items():
        optional = parameters[name].default is not inspect.Parameter.empty
        if (injection := _injection(name, hint, optional)) is not None:
            found.append(injection)
    return tuple(found)


def _injection(name: str, hint: Any, optional: bool) -> Injection | None:
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    bare = get_origin(bare) or bare
    if name == "runtime" or _is(bare, "ToolRuntime"):
        return Injection(name, "runtime", None, optional)
    if bare is RunnableConfig or _is(bare, "RunnableConfig"):
        return Injection(name, "config", None, optional)
    if name in ("run_manager", "callbacks"):
        return Injection(name, "given", None, True)
    for mark in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        for cls, kind in _MARKS.items():
            if _is(mark if isinstance(mark, type) else type(mark), cls):
                return Injection(name, kind, getattr(mark, "field", None), optional)
    return None


_MARKS: Mapping[str, Kind] = {
    "InjectedState": "state",
    "InjectedStore": "store",
    "InjectedToolCallId": "call id",
    "InjectedToolArg": "given",
}


def _is(cls: Any, name: str) -> bool:
    """Whether a class, or one it comes from, has this name: LangChain's own markers count as well."""
    return isinstance(cls, type) and any(one.__name__ == name for one in cls.__mro__)


def injected_values(tool: str, injections: Sequence[Injection], runtime: ToolRuntime[Any, Any]) -> dict[str, Any]:
    """The value of each injected parameter; a named error for one that is not there."""
    values: dict[str, Any] = {}
    for one in injections:
        if one.kind == "state" and one.field is not None:
            _put_field(tool, one, runtime.state, values)
        elif one.kind == "store" and runtime.store is None:
            raise InvalidInputError(
                f"The tool {tool!r} wants the store in {one.name!r}, and the graph has none.",
                fix="Compile the graph, or create the agent, with store=.",
            )
        elif one.kind != "given":
            values[one.name] = _VALUES[one.kind](runtime)
    return values


_VALUES: Mapping[str, Callable[[ToolRuntime[Any, Any]], Any]] = {
    "state": lambda runtime: runtime.state,
    "store": lambda runtime: runtime.store,
    "call id": lambda runtime: runtime.tool_call_id,
    "runtime": lambda runtime: runtime,
    "config": lambda runtime: runtime.config,
}


def _put_field(tool: str, one: Injection, state: Any, values: dict[str, Any]) -> None:
    assert one.field is not None
    if isinstance(state, list):
        state = {"messages": state}
    try:
        values[one.name] = state[one.field] if isinstance(state, Mapping) else getattr(state, one.field)
    except (KeyError, AttributeError):
        if not one.optional:
            raise MissingStateError(
                f"The tool {tool!r} wants the state key {one.field!r} in {one.name!r}, which is not set.",
                fix="Set it before the tool runs, or give the parameter a default.",
            ) from None
