"""A flow is a generator that yields what it wants and is sent what it got; one small runner does the waiting.

1. A flow never blocks, never awaits and never looks at a clock: everything from outside arrives as a reply.
2. So each piece of logic exists once, and the blocking and the awaiting world share it.
3. A runner raises a failed request *inside* the flow with ``throw``, at the line that asked.

The engine's flows yield `Step` (see `engine.effects`) and are run by the two drivers. Saver flows yield SQL requests
(see `checkpoint.flows`) and are run by `run` and `arun` here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")
Flow = Generator[Any, Any, T]


def run(flow: Flow[T], perform: Callable[[Any], Any]) -> T:
    """What the flow returns, after each request was answered by `perform`, which may block."""
    try:
        request = next(flow)
        while True:
            try:
                reply = perform(request)
            except BaseException as error:
                request = flow.throw(error)
            else:
                request = flow.send(reply)
    except StopIteration as stop:
        value: T = stop.value
        return value


def without_stop(function: Callable[..., T]) -> Callable[..., T]:
    """The function with a RuntimeError where it raises StopIteration: a future refuses that one, and whoever awaits the
    future would wait for ever.
    """

    def call(*args: Any, **kwargs: Any) -> T:
        try:
            return function(*args, **kwargs)
        except StopIteration as stop:
            raise RuntimeError(f"{getattr(function, '__qualname__', function)!s} raised StopIteration.") from stop

    return call


def on_thread(function: Callable[..., T], *args: Any, **kwargs: Any) -> Awaitable[T]:
    """What a blocking function gives, on a thread of the running loop's executor."""
    from pregel.hops import on_thread  # it imports asyncio, which costs as much as importing this package

    return on_thread(partial(function, *args, **kwargs) if args or kwargs else function)


async def arun(flow: Flow[T], perform: Callable[[Any], Awaitable[Any]]) -> T:
    """What the flow returns, after each request was answered by awaiting `perform`."""
    try:
        request = next(flow)
        while True:
            try:
                reply = await perform(request)
            except BaseException as error:
                request = flow.throw(error)
            else:
                request = flow.send(reply)
    except StopIteration as stop:
        value: T = stop.value
        return value
