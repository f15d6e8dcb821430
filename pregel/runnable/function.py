"""A function as a runnable. A parameter is injected by name: config, writer, store, previous, runtime, error."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import FunctionType
from typing import Any

from pregel.errors import AsyncOnlyError, InvalidInputError
from pregel.runnable.base import Runnable, added
from pregel.warnings import warn_caller

LAMBDA_DEPTH = 25  # of lambdas that return runnables
INJECTED = ("config", "writer", "store", "previous", "runtime")


class RunnableCallable(Runnable):
    """A function, a coroutine function, or both, as a runnable; parameters are injected by name."""

    def __init__(
        self, func: Callable[..., Any] | None, afunc: Callable[..., Any] | None = None, *, name: str | None = None
    ) -> None:
        if func is not None and is_async_callable(func):
            func, afunc = None, afunc or func
        source = func or afunc
        if source is None:
            raise InvalidInputError("A runnable needs a function.", fix="Pass a function or a coroutine function.")
        self.func = _collect(func) if func is not None else None
        self.afunc = _acollect(afunc) if afunc is not None else None
        self.name = name or callable_name(source)
        self.injected = injections(source)
        self.has_sync, self.has_async = func is not None, afunc is not None
        if not self.injected and type(self).call is RunnableCallable.call:
            self.plain = self.func

    def call(self, value: Any, running: Any) -> Any:
        function = self._function()
        if not self.injected:
            return function(value)
        return function(value, **{name: running.give(kind) for name, kind in self.injected})

    async def acall(self, value: Any, running: Any) -> Any:
        if self.afunc is None:
            return self.call(value, running)
        if not self.injected:
            return await self.afunc(value)
        return await self.afunc(value, **{name: running.give(kind) for name, kind in self.injected})

    def call_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        return type(self)(partial(self._function(), **kwargs), name=self.name).call(value, running)

    async def acall_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        if self.afunc is None:
            return self.call_with(value, running, kwargs)
        return await type(self)(partial(self.afunc, **kwargs), name=self.name).acall(value, running)

    def _function(self) -> Callable[..., Any]:
        """What a blocking call calls; AsyncOnlyError when there is nothing."""
        if self.func is None:
            raise AsyncOnlyError(
                f'No synchronous function provided to "{self.name}".',
                fix="Use the async API (ainvoke, astream, ...), or give the node a synchronous function.",
            )
        return self.func

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class RunnableLambda(RunnableCallable):
    """A function as a runnable: ``(RunnableLambda(f) | RunnableLambda(g)).invoke(x) == g(f(x))``.

    When it returns a runnable, that one gets the same input, and so on up to the config's ``recursion_limit``.
    """

    def __init__(
        self, func: Callable[..., Any], afunc: Callable[..., Any] | None = None, name: str | None = None
    ) -> None:
        super().__init__(func, afunc, name=name)
        if not self.injected:
            self.plain = self.func  # whoever calls that goes on with a runnable itself

    def call(self, value: Any, running: Any) -> Any:
        output = super().call(value, running)
        if isinstance(output, Runnable):
            for _ in range(_depth(running)):
                output = _once(output, value, running)
                if not isinstance(output, Runnable):
                    return output
            raise _too_deep(self)
        return output

    async def acall(self, value: Any, running: Any) -> Any:
        output = await super().acall(value, running)
        if isinstance(output, Runnable):
            for _ in range(_depth(running)):
                output = await _aonce(output, value, running)
                if not isinstance(output, Runnable):
                    return output
            raise _too_deep(self)
        return output


def _once(runnable: Runnable, value: Any, running: Any) -> Any:
    """What a runnable gives, which may be another one."""
    if isinstance(runnable, RunnableLambda):
        return RunnableCallable.call(runnable, value, running)
    return runnable.call(value, running)


async def _aonce(runnable: Runnable, value: Any, running: Any) -> Any:
    if isinstance(runnable, RunnableLambda):
        return await RunnableCallable.acall(runnable, value, running)
    return await runnable.acall(value, running) if runnable.has_async else runnable.call(value, running)


def _depth(running: Any) -> int:
    return min(int(running.config.get("recursion_limit") or LAMBDA_DEPTH), LAMBDA_DEPTH)


def _too_deep(runnable: Runnable) -> RecursionError:
    return RecursionError(f"{runnable!r} returned runnables that return runnables, to no end.")


def is_async_callable(func: Any) -> bool:
    """Whether calling it gives something to await (coroutine or async generator functions, also behind partial)."""
    if type(func) is FunctionType and not func.__dict__:  # the usual node; asking inspect costs as much as all else
        return bool(func.__code__.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))
    while declares(func, "func") and not inspect.isroutine(func):
        func = func.func
    targets = [func] if inspect.isroutine(func) else [func, getattr(func, "__call__", func)]  # noqa: B004
    return any(inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target) for target in targets)


def declares(thing: Any, name: str) -> bool:
    """Whether its class or itself has the attribute: a `Mock` answers to every name, and means none of them."""
    return hasattr(thing.__class__, name) or name in getattr(thing, "__dict__", ())


def callable_name(func: Any) -> str:
    """``__name__``, or the class name of a callable object."""
    return str(getattr(func, "__name__", None) or type(func).__name__)


def injections(func: Callable[..., Any], *, given: int = 1) -> tuple[tuple[str, str], ...]:
    """(parameter, kind) for every parameter that the engine fills in; the first `given` ones are the caller's."""
    code = func.__code__ if type(func) is FunctionType and not func.__dict__ else None
    if code is not None and code.co_argcount <= given and code.co_kwonlyargcount == 0:
        return ()  # the usual node; a signature costs more than all else about it
    try:
        params = list(inspect.signature(func).parameters.values())[given:]
    except (ValueError, TypeError):
        return ()
    keyword = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple((p.name, p.name) for p in params if p.kind in keyword and _is_injected(p))


_ANNOTATIONS = {"config": "RunnableConfig", "writer": "StreamWriter", "store": "BaseStore"}


def _is_injected(param: inspect.Parameter) -> bool:
    text = param.annotation if isinstance(param.annotation, str) else repr(param.annotation)
    if param.name == "error":
        return param.annotation is inspect.Parameter.empty or "NodeError" in text
    if param.name not in INJECTED:
        return False
    expected = _ANNOTATIONS.get(param.name)
    if expected is None or param.annotation is inspect.Parameter.empty or param.name == "writer":
        return True
    if expected not in text and param.name == "config" and param.default is inspect.Parameter.empty:
        warn_caller(f"A parameter named config is annotated {text}, not RunnableConfig: nothing is given for it.")
    return expected in text


class Collected:
    """A generator function as one that returns its chunks added up. It travels to other processes as `func` does."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        total: Any = None
        for index, chunk in enumerate(self.func(*args, **kwargs)):
            total = chunk if index == 0 else added(total, chunk)
        return total


class CollectedAwaiting(Collected):
    """The same of an async generator function."""

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        total: Any = None
        first = True
        async for chunk in self.func(*args, **kwargs):
            total, first = (chunk if first else added(total, chunk)), False
        return total


def _collect(func: Callable[..., Any]) -> Callable[..., Any]:
    plain = type(func) is FunctionType and not func.__code__.co_flags & inspect.CO_GENERATOR
    return func if plain or not inspect.isgeneratorfunction(func) else Collected(func)


def _acollect(func: Callable[..., Any]) -> Callable[..., Any]:
    return CollectedAwaiting(func) if inspect.isasyncgenfunction(func) else func
