"""Agent logic written once for both worlds: generators that yield what has to be waited for.

1. What has to be waited for is an `Either`: how to do it by blocking, and how to do it by awaiting.
2. A hook of a middleware may be such a generator. It yields a request and is sent the answer, as in
   ``response = yield request``; it may also yield an `Either` of its own, e.g. one that `pause` or `ask` made.
3. `run` and `arun` of `pregel.flow` drive them, with `block` or `wait` as what performs a request.
"""

from __future__ import annotations

import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pregel.errors import AsyncOnlyError
from pregel.flow import arun, on_thread, run, without_stop
from pregel.runnable import Runnable, is_async_callable

T = TypeVar("T")
AgentFlow: TypeAlias = Generator[Any, Any, T]


@dataclass(slots=True, frozen=True)
class Either:
    """Something to wait for: `call` blocks for it, `acall` awaits it."""

    call: Callable[[], Any]
    acall: Callable[[], Awaitable[Any]]


def block(request: Either) -> Any:
    """The answer to a request, by blocking."""
    return request.call()


async def wait(request: Either) -> Any:
    """The answer to a request, by awaiting."""
    return await request.acall()


def pause(seconds: float) -> Either:
    """Wait for so many seconds."""

    async def asleep() -> None:
        import asyncio

        await asyncio.sleep(seconds)

    return Either(lambda: time.sleep(seconds), asleep)


def either(sync: Callable[..., Any] | None, awaited: Callable[..., Any] | None, *args: Any, name: str = "") -> Either:
    """A call of a function, of its async twin, or of whichever of the two there is.

    A function without a twin runs on a thread when it is awaited. AsyncOnlyError when only the twin is there and the
    caller blocks.
    """

    def call() -> Any:
        if sync is None:
            raise AsyncOnlyError(
                f'No synchronous function provided to "{name}".',
                fix="Use the async API (ainvoke, astream, ...), or give a synchronous function as well.",
            )
        return sync(*args)

    async def acall() -> Any:
        if awaited is not None:
            return await awaited(*args)
        assert sync is not None  # one of the two is there
        return await on_thread(sync, *args)

    return Either(call, acall)


def calling(function: Callable[..., Any], *args: Any) -> Either:
    """A call of a function of the user's, which may be a coroutine function."""
    sync, awaited = (None, function) if is_async_callable(function) else (function, None)
    return either(sync, awaited, *args, name=getattr(function, "__name__", type(function).__name__))


async def on_own_thread(call: Callable[[], T]) -> T:
    """What a call gives that blocks while the loop works for it: on a thread of its own, for a pool could be full of
    such calls, with no thread left for what they wait for.
    """
    import asyncio

    from pregel.hops import tell

    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    done: asyncio.Future[T] = loop.create_future()

    def settle(setter: Callable[[Any], None], value: Any) -> None:
        if not done.done():  # the one who waits was cancelled
            setter(value)

    def work() -> None:
        try:
            result = context.run(without_stop(call))
        except BaseException as error:
            tell(loop, settle, done.set_exception, error)
        else:
            tell(loop, settle, done.set_result, result)

    threading.Thread(target=work, name="pregel-hook", daemon=True).start()
    return await done


class FlowRunnable(Runnable):
    """A node whose work is a flow: `make(value, running)` gives the generator, or the output itself."""

    has_async = True

    def __init__(self, make: Callable[[Any, Any], Any], name: str) -> None:
        self.make = make
        self.name = name

    def call(self, value: Any, running: Any) -> Any:
        made = self.make(value, running)
        return run(made, block) if inspect.isgenerator(made) else made

    async def acall(self, value: Any, running: Any) -> Any:
        made = self.make(value, running)
        return await arun(made, wait) if inspect.isgenerator(made) else made
