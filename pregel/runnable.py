"""Runnables: things with invoke and ainvoke that compose with ``|``, and how a function becomes one.

1. Anything with invoke/ainvoke counts, whoever wrote it; it is wrapped, never subclassed.
2. The engine uses `call` and `acall`, which take the running task, so that a plain node pays for no config at all.
   `has_sync` and `has_async` say which of the two a runnable can do itself.
3. A parameter is injected by name: config, writer, store, previous, runtime, error (see `injections`).
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any, cast

from pregel.config import RunnableConfig, current_task, merge_configs
from pregel.errors import AsyncOnlyError, InvalidInputError

INJECTED = ("config", "writer", "store", "previous", "runtime")


class Detached:
    """What injected parameters see when a runnable is called outside of a graph."""

    __slots__ = ("config",)

    def __init__(self, config: RunnableConfig | None) -> None:
        self.config: RunnableConfig = config or {}

    def give(self, kind: str) -> Any:
        """The value for an injected parameter; InvalidInputError when only a graph could supply it."""
        if kind == "config":
            return self.config
        if kind == "writer":
            return lambda _: None
        raise InvalidInputError(
            f"Missing required config key for the injected parameter {kind!r}: this runs outside of a graph.",
            fix="Call it from a graph, or give the parameter a default.",
        )


class Runnable:
    """The contract: invoke, ainvoke, stream, batch, with_config, and ``|``."""

    name: str | None = None
    has_sync = True
    has_async = False
    plain: Callable[[Any], Any] | None = None
    """The function that `call` would call with its value alone, for one that looks at nothing else."""

    def call(self, value: Any, running: Any) -> Any:
        """The output for `value`, inside the running task."""
        raise NotImplementedError

    async def acall(self, value: Any, running: Any) -> Any:
        """The output for `value`, awaited inside the running task."""
        return self.call(value, running)

    def get_name(self, suffix: str | None = None) -> str:
        """The name that a node made of this gets."""
        name = self.name or type(self).__name__
        return f"{name}{suffix[0].upper()}{suffix[1:]}" if suffix else name

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The output for one input."""
        return self.call(input, _running(config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The output for one input, awaited."""
        return await self.acall(input, _running(config))

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """The output as chunks; one chunk unless a subclass knows better."""
        yield self.invoke(input, config, **kwargs)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """The output as chunks, awaited."""
        yield await self.ainvoke(input, config, **kwargs)

    def batch(
        self,
        inputs: Sequence[Any],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """One output an input, in input order, at most ``max_concurrency`` at once."""
        configs = _configs(config, len(inputs))

        def one(value: Any, config: RunnableConfig) -> Any:
            try:
                return self.invoke(value, config, **kwargs)
            except Exception as error:
                if return_exceptions:
                    return error
                raise

        from concurrent.futures import ThreadPoolExecutor  # these two are dear to import, and few graphs batch

        if len(inputs) < 2:
            return [one(*pair) for pair in zip(inputs, configs, strict=True)]
        with ThreadPoolExecutor(configs[0].get("max_concurrency") or min(len(inputs), 32)) as pool:
            return list(pool.map(one, inputs, configs))

    async def abatch(
        self,
        inputs: Sequence[Any],
        config: RunnableConfig | Sequence[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """One output an input, in input order, at most ``max_concurrency`` at once."""
        import asyncio

        configs = _configs(config, len(inputs))
        room = asyncio.Semaphore((configs[0].get("max_concurrency") if configs else None) or max(len(inputs), 1))

        async def one(value: Any, config: RunnableConfig) -> Any:
            async with room:
                return await self.ainvoke(value, config, **kwargs)

        jobs = (one(*pair) for pair in zip(inputs, configs, strict=True))
        return await asyncio.gather(*jobs, return_exceptions=return_exceptions)

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Runnable:
        """The same runnable with a config merged under the caller's."""
        return RunnableBinding(self, merge_configs(config, cast(RunnableConfig, kwargs)))

    def __or__(self, other: Any) -> RunnableSequence:
        return RunnableSequence(self, other)

    def __ror__(self, other: Any) -> RunnableSequence:
        return RunnableSequence(other, self)


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
        if self.func is None:
            raise AsyncOnlyError(
                f'No synchronous function provided to "{self.name}".',
                fix="Use the async API (ainvoke, astream, ...), or give the node a synchronous function.",
            )
        if not self.injected:
            return self.func(value)
        return self.func(value, **{name: running.give(kind) for name, kind in self.injected})

    async def acall(self, value: Any, running: Any) -> Any:
        if self.afunc is None:
            return self.call(value, running)
        if not self.injected:
            return await self.afunc(value)
        return await self.afunc(value, **{name: running.give(kind) for name, kind in self.injected})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"


class RunnableLambda(RunnableCallable):
    """A function as a runnable: ``(RunnableLambda(f) | RunnableLambda(g)).invoke(x) == g(f(x))``."""


class RunnableSequence(Runnable):
    """Runnables one after the other, each fed with the output before it."""

    def __init__(self, *steps: Any, name: str | None = None) -> None:
        self.steps: list[Runnable] = []
        for step in map(coerce_to_runnable, steps):
            self.steps.extend(step.steps if isinstance(step, RunnableSequence) else [step])
        self.name = name or "RunnableSequence"
        self.has_sync = all(step.has_sync for step in self.steps)
        self.has_async = any(step.has_async for step in self.steps)

    def call(self, value: Any, running: Any) -> Any:
        for step in self.steps:
            value = step.call(value, running)
        return value

    async def acall(self, value: Any, running: Any) -> Any:
        for step in self.steps:
            value = await acall_anywhere(step, value, running)
        return value


class RunnableParallel(Runnable):
    """A dict of runnables over one input; the output is a dict of theirs."""

    def __init__(self, steps: Mapping[str, Any]) -> None:
        self.steps = {key: coerce_to_runnable(step) for key, step in steps.items()}
        self.name = f"RunnableParallel<{','.join(self.steps)}>"
        self.has_sync = all(step.has_sync for step in self.steps.values())
        self.has_async = any(step.has_async for step in self.steps.values())

    def call(self, value: Any, running: Any) -> Any:
        return {key: step.call(value, running) for key, step in self.steps.items()}

    async def acall(self, value: Any, running: Any) -> Any:
        import asyncio

        jobs = (acall_anywhere(step, value, running) for step in self.steps.values())
        return dict(zip(self.steps, await asyncio.gather(*jobs), strict=True))


class RunnableBinding(Runnable):
    """A runnable together with a config that is merged under the caller's."""

    def __init__(self, bound: Any, config: RunnableConfig) -> None:
        self.bound = coerce_to_runnable(bound)
        self.config = config
        self.name = config.get("run_name") or self.bound.get_name()
        self.has_sync, self.has_async = self.bound.has_sync, self.bound.has_async

    def call(self, value: Any, running: Any) -> Any:
        return self.bound.invoke(value, merge_configs(self.config, running.config))

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.bound.ainvoke(value, merge_configs(self.config, running.config))


class RunnableForeign(Runnable):
    """Somebody else's object with invoke and ainvoke."""

    def __init__(self, bound: Any) -> None:
        self.bound = bound
        self.name = bound.get_name() if hasattr(bound, "get_name") else getattr(bound, "name", type(bound).__name__)
        self.has_sync, self.has_async = hasattr(bound, "invoke"), hasattr(bound, "ainvoke")

    def call(self, value: Any, running: Any) -> Any:
        return self.bound.invoke(value, running.config)

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.bound.ainvoke(value, running.config)


def coerce_to_runnable(thing: Any, name: str | None = None) -> Runnable:
    """A runnable from a runnable, a callable or a dict of those; TypeError for anything else."""
    if type(thing) is FunctionType:
        return RunnableCallable(thing, name=name)
    if isinstance(thing, Runnable):
        return thing
    if hasattr(thing, "invoke") or hasattr(thing, "ainvoke"):
        return RunnableForeign(thing)
    if isinstance(thing, Mapping):
        return RunnableParallel(thing)
    if callable(thing):
        return RunnableCallable(thing, name=name)
    raise TypeError(f"Expected a Runnable, a callable or a dict of them, got {type(thing).__name__}.")


async def acall_anywhere(step: Runnable, value: Any, running: Any) -> Any:
    """The output of a step under an event loop: awaited, or on a thread when it can only block."""
    if step.has_async:
        return await step.acall(value, running)
    import asyncio

    return await asyncio.to_thread(step.call, value, running)


def is_async_callable(func: Any) -> bool:
    """Whether calling it gives something to await (coroutine or async generator functions, also behind partial)."""
    if type(func) is FunctionType and not func.__dict__:  # the usual node; asking inspect costs as much as all else
        return bool(func.__code__.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))
    while hasattr(func, "func") and not inspect.isroutine(func):
        func = func.func
    target = func if inspect.isroutine(func) else getattr(func, "__call__", func)  # noqa: B004
    return inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target)


def callable_name(func: Any) -> str:
    """``__name__``, or the class name of a callable object."""
    return str(getattr(func, "__name__", None) or type(func).__name__)


def injections(func: Callable[..., Any], *, given: int = 1) -> tuple[tuple[str, str], ...]:
    """(parameter, kind) for every parameter that the engine fills in; the first `given` ones are the caller's."""
    code = func.__code__ if inspect.isfunction(func) and not hasattr(func, "__wrapped__") else None
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
        return "NodeError" in text
    if param.name not in INJECTED:
        return False
    expected = _ANNOTATIONS.get(param.name)
    if expected is None or param.annotation is inspect.Parameter.empty or param.name == "writer":
        return True
    return expected in text


def _collect(func: Callable[..., Any]) -> Callable[..., Any]:
    flags = func.__code__.co_flags if type(func) is FunctionType else inspect.CO_GENERATOR
    if not flags & inspect.CO_GENERATOR or not inspect.isgeneratorfunction(func):
        return func

    def collected(*args: Any, **kwargs: Any) -> Any:
        total: Any = None
        for index, chunk in enumerate(func(*args, **kwargs)):
            total = chunk if index == 0 else _add(total, chunk)
        return total

    return collected


def _acollect(func: Callable[..., Any]) -> Callable[..., Any]:
    if not inspect.isasyncgenfunction(func):
        return func

    async def collected(*args: Any, **kwargs: Any) -> Any:
        total: Any = None
        first = True
        async for chunk in func(*args, **kwargs):
            total, first = (chunk if first else _add(total, chunk)), False
        return total

    return collected


def _add(total: Any, chunk: Any) -> Any:
    try:
        return total + chunk
    except TypeError:
        return chunk


def _running(config: RunnableConfig | None) -> Any:
    ambient = current_task.get()
    return Detached(config) if ambient is None or config else ambient


def _configs(config: RunnableConfig | Sequence[RunnableConfig] | None, n: int) -> list[RunnableConfig]:
    if isinstance(config, Sequence):
        if len(config) != n:
            raise InvalidInputError(f"{n} inputs but {len(config)} configs.", fix="Give one config an input, or one.")
        return list(config)
    return [config or {}] * n
