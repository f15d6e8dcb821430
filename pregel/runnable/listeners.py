"""A runnable with listeners, who hear of each call of it: when it starts, and how it ended.

1. A listener is told of a `Run`; one with a parameter `config` gets the config of the call as well.
2. What a listener raises is logged, and changes nothing.
3. The engine's signals are no end: a question or a drain is told to nobody, and the call starts again later.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias
from uuid import UUID, uuid4

from pregel.config import RunnableConfig
from pregel.errors import AsyncOnlyError
from pregel.owned import Owned
from pregel.runnable.base import Detached, Runnable, added, running_for
from pregel.runnable.compose import acall_anywhere, coerce_to_runnable

log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class Run:
    """One call of a runnable. `inputs` and `outputs` are dicts: any other value stands under ``input``, ``output``.

    `error` is the representation of what it raised. Times are in UTC.
    """

    name: str
    inputs: dict[str, Any]
    outputs: dict[str, Any] | None = None
    error: str | None = None
    tags: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=uuid4)
    start_time: datetime = field(default_factory=lambda: datetime.now(UTC))
    end_time: datetime | None = None

    def ended(self, output: Any) -> Run:
        """The same, with its output."""
        return replace(self, outputs=_named("output", output), end_time=datetime.now(UTC))

    def failed(self, error: Exception) -> Run:
        """The same, with what it raised."""
        return replace(self, error=repr(error), end_time=datetime.now(UTC))


Listener: TypeAlias = Callable[[Run], object] | Callable[[Run, RunnableConfig], object]
AsyncListener: TypeAlias = Callable[[Run], Awaitable[object]] | Callable[[Run, RunnableConfig], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Listeners:
    """Who hears of the start, of the end and of a failure."""

    on_start: Listener | None = None
    on_end: Listener | None = None
    on_error: Listener | None = None
    awaited: bool = False


class RunnableListening(Runnable):
    """A runnable whose calls listeners hear of."""

    def __init__(self, bound: Any, listeners: Listeners) -> None:
        self.bound = coerce_to_runnable(bound)
        self.listeners = listeners
        self.name = self.bound.get_name()
        self.has_sync = self.bound.has_sync and not listeners.awaited
        self.has_async = self.bound.has_async or listeners.awaited

    def call(self, value: Any, running: Any) -> Any:
        return self.call_with(value, running, {})

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.acall_with(value, running, {})

    def call_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        run = self._begun(value, running)
        try:
            if kwargs:  # a graph takes them by its own verbs only
                output = self.bound.invoke(value, _config(running), **kwargs)
            else:
                output = self.bound.call(value, running)
        except Exception as error:
            self._tell(self.listeners.on_error, run.failed(error), running)
            raise
        self._tell(self.listeners.on_end, run.ended(output), running)
        return output

    async def acall_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        run = await self._abegun(value, running)
        try:
            if kwargs:
                output = await self.bound.ainvoke(value, _config(running), **kwargs)
            else:
                output = await acall_anywhere(self.bound, value, running)
        except Exception as error:
            await self._atell(self.listeners.on_error, run.failed(error), running)
            raise
        await self._atell(self.listeners.on_end, run.ended(output), running)
        return output

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """The chunks of the bound runnable; the end is told with all of them added up."""
        running = running_for(config)
        run, total, first = self._begun(input, running), None, True
        try:
            for chunk in self.bound.stream(input, config, **kwargs):
                total, first = (chunk if first else added(total, chunk)), False
                yield chunk
        except Exception as error:
            self._tell(self.listeners.on_error, run.failed(error), running)
            raise
        self._tell(self.listeners.on_end, run.ended(total), running)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """The same, awaited."""
        running = running_for(config)
        run, total, first = await self._abegun(input, running), None, True
        try:
            async with Owned(self.bound.astream(input, config, **kwargs)) as chunks:
                async for chunk in chunks:
                    total, first = (chunk if first else added(total, chunk)), False
                    yield chunk
        except Exception as error:
            await self._atell(self.listeners.on_error, run.failed(error), running)
            raise
        await self._atell(self.listeners.on_end, run.ended(total), running)

    def _begun(self, value: Any, running: Any) -> Run:
        if self.listeners.awaited:
            raise AsyncOnlyError(
                f"The listeners of {self.get_name()!r} are coroutine functions, and this call blocks.",
                fix="Use ainvoke or astream, or give plain functions to with_listeners.",
            )
        run = self._run(value, running)
        self._tell(self.listeners.on_start, run, running)
        return run

    async def _abegun(self, value: Any, running: Any) -> Run:
        run = self._run(value, running)
        await self._atell(self.listeners.on_start, run, running)
        return run

    def _run(self, value: Any, running: Any) -> Run:
        config = running.config
        tags, metadata = list(config.get("tags") or ()), dict(config.get("metadata") or {})
        return Run(self.get_name(), _named("input", value), tags=tags, metadata=metadata)

    def _tell(self, listener: Any, run: Run, running: Any) -> None:
        if listener is not None:
            try:
                listener(*_arguments(listener, run, running))
            except Exception:
                _failed(listener)

    async def _atell(self, listener: Any, run: Run, running: Any) -> None:
        if listener is not None:
            try:
                told = listener(*_arguments(listener, run, running))
                if inspect.isawaitable(told):
                    await told
            except Exception:
                _failed(listener)


def _config(running: Any) -> RunnableConfig | None:
    """The config of a call from outside; None inside a task, whom the bound runnable finds by itself."""
    return running.config if isinstance(running, Detached) else None


def _named(name: str, value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {name: value}


def _arguments(listener: Any, run: Run, running: Any) -> tuple[Any, ...]:
    return (run, running.config) if "config" in inspect.signature(listener).parameters else (run,)


def _failed(listener: Any) -> None:
    log.exception("The listener %s failed.", getattr(listener, "__qualname__", listener))
