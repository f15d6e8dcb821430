"""Decorators that make a middleware of one function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast, overload

from pregel.agents.middleware.base import AgentMiddleware, hook_config
from pregel.agents.middleware.requests import as_system_message
from pregel.agents.state import AgentState, JumpTo
from pregel.runnable import is_async_callable


class HookDecorator(Protocol):
    """Makes a middleware of a function, with or without options before it."""

    @overload
    def __call__(self, function: Callable[..., Any], /) -> AgentMiddleware: ...
    @overload
    def __call__(
        self,
        *,
        state_schema: Any = None,
        tools: Sequence[Any] = (),
        can_jump_to: Sequence[JumpTo] | None = None,
        name: str | None = None,
    ) -> Callable[[Callable[..., Any]], AgentMiddleware]: ...


def _decorator(hook: str) -> HookDecorator:
    def decorate(
        function: Callable[..., Any] | None = None,
        *,
        state_schema: Any = None,
        tools: Sequence[Any] = (),
        can_jump_to: Sequence[JumpTo] | None = None,
        name: str | None = None,
    ) -> Any:
        def make(function: Callable[..., Any]) -> AgentMiddleware:
            made = function if can_jump_to is None else hook_config(can_jump_to=can_jump_to)(function)
            return middleware_of(hook, made, state_schema=state_schema, tools=tools, name=name)

        return make if function is None else make(function)

    decorate.__name__ = hook
    decorate.__doc__ = f"A middleware whose `{hook}` is the function; the function's name is the middleware's."
    return cast(HookDecorator, decorate)


def middleware_of(
    hook: str, function: Callable[..., Any], *, state_schema: Any, tools: Sequence[Any], name: str | None
) -> AgentMiddleware:
    """A middleware with one hook, of a class that is called after the function."""
    target = f"a{hook}" if is_async_callable(function) else hook
    title = name or str(getattr(function, "__name__", hook))
    attributes = {"state_schema": state_schema or AgentState, "tools": list(tools), target: staticmethod(function)}
    made: AgentMiddleware = type(title, (AgentMiddleware,), attributes)()
    return made


before_agent = _decorator("before_agent")
before_model = _decorator("before_model")
after_model = _decorator("after_model")
after_agent = _decorator("after_agent")
wrap_model_call = _decorator("wrap_model_call")
wrap_tool_call = _decorator("wrap_tool_call")


def dynamic_prompt(function: Callable[..., Any]) -> AgentMiddleware:
    """A middleware whose function of the request gives the system prompt of each call, in the place of the agent's."""

    def prompted(request: Any) -> Any:
        prompt = function(request)
        return (yield request.override(system_message=as_system_message(prompt)))

    async def awaited(request: Any, handler: Any) -> Any:
        prompt = await function(request)
        return await handler(request.override(system_message=as_system_message(prompt)))

    chosen = awaited if inspect.iscoroutinefunction(function) else prompted
    return middleware_of(
        "wrap_model_call", chosen, state_schema=None, tools=(), name=getattr(function, "__name__", "dynamic_prompt")
    )
