"""A middleware: hooks around the steps of an agent, tools and state keys that it brings along.

1. *Node hooks* (`before_agent`, `before_model`, `after_model`, `after_agent`) become nodes of the graph. They take
   (state, runtime) and return an update, a Command or None. ``{"jump_to": "model" | "tools" | "end"}`` in the update
   sends the agent elsewhere, from any of them.
2. *Wrap hooks* (`wrap_model_call`, `wrap_tool_call`) add no node. The first middleware of the list is the outermost.
3. **A hook is written once for both worlds**: as a generator. A wrap hook takes the request alone and says
   ``response = yield request``, as often as it likes, also with another request; a node hook may yield what it has to
   wait for (`agents.flow`)::

       class Twice(AgentMiddleware):
           def wrap_model_call(self, request):
               first = yield request
               return (yield request.override(messages=[*request.messages, *first.result]))

4. The reference's form works too: ``wrap_model_call(self, request, handler)`` with ``awrap_model_call``. With only the
   blocking one, an awaiting run calls it on a thread; with only the awaiting one, a blocking run is refused by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Literal

from typing_extensions import TypeVar

from pregel.agents.flow import AgentFlow, either
from pregel.agents.state import AgentState, JumpTo
from pregel.agents.tools.base import Tool
from pregel.types import TracePolicy

S = TypeVar("S", default=Any)
C = TypeVar("C", default=Any)
R = TypeVar("R", default=Any)
NodeHook = Literal["before_agent", "before_model", "after_model", "after_agent"]
WrapHook = Literal["wrap_model_call", "wrap_tool_call"]
NODE_HOOKS: tuple[NodeHook, ...] = ("before_agent", "before_model", "after_model", "after_agent")
HOOKS: tuple[NodeHook | WrapHook, ...] = (*NODE_HOOKS, "wrap_model_call", "wrap_tool_call")


class AgentMiddleware(Generic[S, C, R]):
    """Hooks around an agent's steps. Override what is needed; see the module for the forms that a hook may have.

    `state_schema` brings state keys, `tools` brings tools. `trace_policy` says what the spans of its node hooks record
    of their input and output, nothing without one. `name` tells instances of one class apart. What a subclass
    names in brackets (its state, the context, the structured answer) is for type checkers alone.
    """

    state_schema: Any = AgentState
    tools: Sequence[Tool | Callable[..., Any]] = ()
    transformers: Sequence[Any] = ()
    trace_policy: TracePolicy | None = None

    @property
    def name(self) -> str:
        """The name in the graph: that of the class."""
        return type(self).__name__

    def before_agent(self, state: Any, runtime: Any) -> Any:
        """Once, before the agent starts."""

    async def abefore_agent(self, state: Any, runtime: Any) -> Any:
        """The same, awaited."""

    def before_model(self, state: Any, runtime: Any) -> Any:
        """Before each model call."""

    async def abefore_model(self, state: Any, runtime: Any) -> Any:
        """The same, awaited."""

    def after_model(self, state: Any, runtime: Any) -> Any:
        """After each model call."""

    async def aafter_model(self, state: Any, runtime: Any) -> Any:
        """The same, awaited."""

    def after_agent(self, state: Any, runtime: Any) -> Any:
        """Once, when the agent ends."""

    async def aafter_agent(self, state: Any, runtime: Any) -> Any:
        """The same, awaited."""

    def wrap_model_call(self, request: Any, *handler: Any) -> Any:
        """Around each model call."""
        raise NotImplementedError

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """The same, awaited."""
        raise NotImplementedError

    def wrap_tool_call(self, request: Any, *handler: Any) -> Any:
        """Around each tool call."""
        raise NotImplementedError

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        """The same, awaited."""
        raise NotImplementedError


def hook_config(*, can_jump_to: Sequence[JumpTo] | None = None) -> Callable[[Any], Any]:
    """A decorator that says where a node hook may jump to, for the drawing and for checks."""

    def mark(hook: Any) -> Any:
        hook.can_jump_to = tuple(can_jump_to or ())
        return hook

    return mark


def inline(hook: Any) -> Any:
    """Marks a hook that never waits for anything: under an event loop it needs no thread."""
    hook.inline = True
    return hook


class Hook:
    """One hook of one middleware, in whatever form it was written."""

    __slots__ = ("awaited", "middleware", "name", "sync")
    UNDECLARED: ClassVar[tuple[JumpTo, ...]] = ("tools", "model", "end")

    def __init__(self, middleware: AgentMiddleware, name: NodeHook | WrapHook) -> None:
        self.middleware, self.name = middleware, name
        self.sync = _overridden(middleware, name)
        self.awaited = _overridden(middleware, f"a{name}")
        if self.sync is not None and inspect.iscoroutinefunction(self.sync):
            self.sync, self.awaited = None, self.awaited or self.sync

    @classmethod
    def of(cls, middleware: AgentMiddleware, name: NodeHook | WrapHook) -> Hook | None:
        """The hook, when the middleware has it."""
        hook = cls(middleware, name)
        return hook if hook.sync is not None or hook.awaited is not None else None

    @property
    def title(self) -> str:
        """The name of its node, or in errors."""
        return f"{self.middleware.name}.{self.name}"

    @property
    def is_flow(self) -> bool:
        """Whether it is a generator, written for both worlds."""
        return self.sync is not None and inspect.isgeneratorfunction(self.sync)

    @property
    def can_jump_to(self) -> tuple[JumpTo, ...]:
        """Where it says that it may jump to; everywhere when it says nothing."""
        for function in (self.sync, self.awaited):
            if (declared := getattr(function, "can_jump_to", None)) is not None:
                return tuple(declared)
        return self.UNDECLARED

    def node_flow(self, state: Any, running: Any) -> AgentFlow[Any]:
        """What a node hook returns."""
        if self.sync is not None and (self.is_flow or getattr(self.sync, "inline", False)):
            made = _called(self.sync, state, running)
            return (yield from made) if inspect.isgenerator(made) else made
        sync, awaited = (
            None if function is None else _bound(function, state, running) for function in (self.sync, self.awaited)
        )
        return (yield either(sync, awaited, name=self.title))


def _overridden(middleware: AgentMiddleware, name: str) -> Callable[..., Any] | None:
    """A hook that is not the base class's; one set on the instance counts too."""
    mine = getattr(middleware, name, None)
    if mine is None or (name not in vars(middleware) and getattr(type(middleware), name) is _BASE.get(name)):
        return None
    return mine  # type: ignore[no-any-return]


_BASE = {name: getattr(AgentMiddleware, name) for hook in HOOKS for name in (hook, f"a{hook}")}


def _bound(hook: Callable[..., Any], state: Any, running: Any) -> Callable[[], Any]:
    return lambda: _called(hook, state, running)


def _called(hook: Callable[..., Any], state: Any, running: Any) -> Any:
    """A node hook called with what its parameters ask for: state, then runtime and config by name or in order."""
    _, *parameters = inspect.signature(hook).parameters.values()
    by_name = {one.name: one.name for one in parameters if one.name in ("runtime", "config")}
    keywords = {name: running.give(kind) for name, kind in by_name.items()}
    unnamed = [one for one in parameters if one.name not in by_name and one.default is inspect.Parameter.empty]
    return hook(state, *([running.runtime] if unnamed else []), **keywords)
