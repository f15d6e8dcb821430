"""Runnables made of runnables: one after the other, side by side, with a config, and what somebody else made."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from types import FunctionType
from typing import Any

from pregel.config import RunnableConfig, inside, merge_configs
from pregel.flow import on_thread
from pregel.owned import Owned
from pregel.runnable.base import Detached, Runnable, running_for
from pregel.runnable.function import RunnableCallable, declares


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

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """The chunks of the last step."""
        running = running_for(config)
        for step in self.steps[:-1]:
            input = step.call(input, running)
        yield from self.steps[-1].stream(input, config, **kwargs)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """The chunks of the last step, awaited."""
        running = running_for(config)
        for step in self.steps[:-1]:
            input = await acall_anywhere(step, input, running)
        async with Owned(self.steps[-1].astream(input, config, **kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk


class RunnableParallel(Runnable):
    """A dict of runnables over one input; the output is a dict of theirs.

    They run at once: blocking ones on threads, at most ``max_concurrency``; in a node of a graph one after the other.
    """

    def __init__(self, steps: Mapping[str, Any] | None = None, **more: Any) -> None:
        self.steps = {key: coerce_to_runnable(step) for key, step in {**(steps or {}), **more}.items()}
        self.name = f"RunnableParallel<{','.join(self.steps)}>"
        self.has_sync = all(step.has_sync for step in self.steps.values())
        self.has_async = any(step.has_async for step in self.steps.values())

    def call(self, value: Any, running: Any) -> Any:
        if not isinstance(running, Detached) or len(self.steps) < 2:  # in a node: the same questions, in one order
            return {key: step.call(value, running) for key, step in self.steps.items()}
        from pregel.runnable.batch import at_once

        room = running.config.get("max_concurrency")
        calls = [partial(step.call, value, running) for step in self.steps.values()]
        return dict(zip(self.steps, at_once(calls, room), strict=True))

    async def acall(self, value: Any, running: Any) -> Any:
        import asyncio

        jobs = (acall_anywhere(step, value, running) for step in self.steps.values())
        return dict(zip(self.steps, await asyncio.gather(*jobs), strict=True))


class RunnableBinding(Runnable):
    """A runnable with a config that is merged under the caller's, and keyword arguments that each call gets."""

    def __init__(self, bound: Any, config: RunnableConfig, kwargs: Mapping[str, Any] | None = None) -> None:
        self.bound = coerce_to_runnable(bound)
        self.config = config
        self.kwargs = dict(kwargs or {})
        self.name = config.get("run_name") or self.bound.get_name()
        self.has_sync, self.has_async = self.bound.has_sync, self.bound.has_async

    def call(self, value: Any, running: Any) -> Any:
        return self.call_with(value, running, {})

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.acall_with(value, running, {})

    def call_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        return self.bound.invoke(value, self._config(running), **{**self.kwargs, **kwargs})

    async def acall_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        return await self.bound.ainvoke(value, self._config(running), **{**self.kwargs, **kwargs})

    def _config(self, running: Any) -> RunnableConfig | None:
        """The merged config; None where the bound one finds the running task, and with it the config, by itself."""
        return merge_configs(self.config, running.config) if self.config or isinstance(running, Detached) else None

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """The chunks of the bound runnable."""
        yield from self.bound.stream(input, merge_configs(self.config, config), **{**self.kwargs, **kwargs})

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """The chunks of the bound runnable, awaited."""
        merged = merge_configs(self.config, config)
        async with Owned(self.bound.astream(input, merged, **{**self.kwargs, **kwargs})) as chunks:
            async for chunk in chunks:
                yield chunk


ADAPTERS: list[Callable[[Any, Any], Any]] = []
"""(object, input) -> input as the object takes it: what `pregel.interop` knows of other libraries."""


class RunnableForeign(Runnable):
    """Somebody else's object with invoke and ainvoke."""

    def __init__(self, bound: Any) -> None:
        self.bound = bound
        self.name = bound.get_name() if hasattr(bound, "get_name") else getattr(bound, "name", type(bound).__name__)
        self.has_sync, self.has_async = hasattr(bound, "invoke"), hasattr(bound, "ainvoke")

    def call(self, value: Any, running: Any) -> Any:
        return self.bound.invoke(self._adapted(value), _config(running))

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.bound.ainvoke(self._adapted(value), _config(running))

    def call_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        return self.bound.invoke(self._adapted(value), _config(running), **kwargs)

    async def acall_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        return await self.bound.ainvoke(self._adapted(value), _config(running), **kwargs)

    def _adapted(self, value: Any) -> Any:
        for adapt in ADAPTERS:
            value = adapt(self.bound, value)
        return value

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """Its own chunks, where it streams."""
        if hasattr(self.bound, "stream"):
            yield from self.bound.stream(input, _config(running_for(config)), **kwargs)
        else:
            yield self.invoke(input, config, **kwargs)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """Its own chunks, where it streams, awaited."""
        if hasattr(self.bound, "astream"):
            async with Owned(self.bound.astream(input, _config(running_for(config)), **kwargs)) as chunks:
                async for chunk in chunks:
                    yield chunk
        else:
            yield await self.ainvoke(input, config, **kwargs)


def _config(running: Any) -> RunnableConfig:
    """What somebody else's object is called with: a node's is named by itself, not after the node."""
    config: RunnableConfig = running.config
    return config if isinstance(running, Detached) else inside(config)


def coerce_to_runnable(thing: Any, name: str | None = None) -> Runnable:
    """A runnable from a runnable, a callable or a dict of those; TypeError for anything else."""
    if type(thing) is FunctionType:
        return RunnableCallable(thing, name=name)
    if isinstance(thing, Runnable):
        return thing
    if declares(thing, "invoke") or declares(thing, "ainvoke"):
        return RunnableForeign(thing)
    if isinstance(thing, Mapping):
        return RunnableParallel(thing)
    if callable(thing):
        return RunnableCallable(thing, name=name)
    if hasattr(thing, "invoke") or hasattr(thing, "ainvoke"):  # by way of __getattr__
        return RunnableForeign(thing)
    raise TypeError(f"Expected a Runnable, a callable or a dict of them, got {type(thing).__name__}.")


def acall_anywhere(step: Runnable, value: Any, running: Any) -> Awaitable[Any]:
    """The output of a step under an event loop, to be awaited; it comes from a thread when the step can only block."""
    return step.acall(value, running) if step.has_async else on_thread(step.call, value, running)
