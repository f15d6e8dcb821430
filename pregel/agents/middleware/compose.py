"""Wrap hooks around a call, the first one outermost: one flow whatever form each hook has."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from pregel.agents.flow import AgentFlow, Either, block, on_own_thread, wait
from pregel.agents.middleware.base import Hook
from pregel.agents.middleware.requests import ModelRequest, ToolCallRequest
from pregel.errors import AsyncOnlyError
from pregel.flow import arun, run

Handler: TypeAlias = Callable[[Any], AgentFlow[Any]]
Finish: TypeAlias = Callable[[Any, Any, Any], Any]
"""(what the hook returned, the last inner answer, the request) -> the answer of this layer."""


def compose(hooks: Sequence[Hook], core: Handler, show: Callable[[Any], Any], finish: Finish) -> Handler:
    """The core with the hooks around it. `show` makes of an inner answer what a hook gets to see."""
    handler = core
    for hook in reversed(hooks):
        handler = _layer(hook, handler, show, finish)
    return handler


def _layer(hook: Hook, inner: Handler, show: Callable[[Any], Any], finish: Finish) -> Handler:
    step = _flow_step if hook.is_flow else _handler_step

    def layer(request: Any) -> AgentFlow[Any]:
        last: list[Any] = [None]

        def inside(changed: Any) -> AgentFlow[Any]:
            last[0] = yield from inner(changed)
            return show(last[0])

        result = yield from step(hook, request, inside)
        return finish(result, last[0], request)

    return layer


def _flow_step(hook: Hook, request: Any, inside: Handler) -> AgentFlow[Any]:
    """A hook that is a generator: each request that it yields goes in, all else that it yields goes up."""
    assert hook.sync is not None
    flow = hook.sync(request)
    try:
        asked = next(flow)
        while True:
            try:
                reply = (yield from inside(asked)) if _is_request(asked) else (yield asked)
            except BaseException as error:
                asked = flow.throw(error)
            else:
                asked = flow.send(reply)
    except StopIteration as stop:
        return stop.value
    finally:
        flow.close()


def _is_request(asked: Any) -> bool:
    return isinstance(asked, (ModelRequest, ToolCallRequest))


def _handler_step(hook: Hook, request: Any, inside: Handler) -> AgentFlow[Any]:
    """A hook of the form (request, handler)."""
    return (yield Either(lambda: _blocking(hook, request, inside), lambda: _awaiting(hook, request, inside)))


def _blocking(hook: Hook, request: Any, inside: Handler) -> Any:
    if hook.sync is None:
        raise AsyncOnlyError(
            f"No synchronous {hook.title}: it was only written as a{hook.name}.",
            fix="Use the async API, or write it once for both: response = yield request.",
        )
    return hook.sync(request, lambda changed: run(inside(changed), block))


async def _awaiting(hook: Hook, request: Any, inside: Handler) -> Any:
    import asyncio

    if hook.awaited is not None:
        return await hook.awaited(request, _awaited(inside))
    blocks = hook.sync
    assert blocks is not None
    loop = asyncio.get_running_loop()

    def handler(changed: Any) -> Any:
        """The inner call, on the loop, for a hook that blocks a thread."""
        return asyncio.run_coroutine_threadsafe(arun(inside(changed), wait), loop).result()

    return await on_own_thread(lambda: blocks(request, handler))


def _awaited(inside: Handler) -> Callable[[Any], Any]:
    async def handler(changed: Any) -> Any:
        return await arun(inside(changed), wait)

    return handler


def takes_handler(function: Callable[..., Any]) -> bool:
    """Whether a wrap function takes (request, handler)."""
    return len(inspect.signature(function).parameters) >= 2
