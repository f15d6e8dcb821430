"""A runnable that is tried again. A node of a graph has a RetryPolicy for that, which survives the process."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pregel.errors import GraphBubbleUp, InvalidInputError
from pregel.runnable.base import Configs, ErrorTypes, Runnable
from pregel.runnable.compose import coerce_to_runnable

WAITS = {"initial": 1.0, "max": 60.0, "exp_base": 2.0, "jitter": 1.0}  # seconds, and the factor


class RunnableRetry(Runnable):
    """Another runnable, tried again when it raises what is wanted; the last error is raised."""

    def __init__(self, bound: Any, errors: ErrorTypes, attempts: int, waits: Mapping[str, float] | None = None) -> None:
        if attempts < 1 or not set(waits or ()) <= set(WAITS):
            raise InvalidInputError(
                "A retry needs at least one attempt, and waits by the names " + ", ".join(WAITS) + "."
            )
        self.bound = coerce_to_runnable(bound)
        self.wants = wanting(errors)
        self.attempts = attempts
        self.waits = {**WAITS, **(waits or {})}
        self.name = self.bound.get_name()
        self.has_sync, self.has_async = self.bound.has_sync, self.bound.has_async

    def call(self, value: Any, running: Any) -> Any:
        return self.call_with(value, running, {})

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.acall_with(value, running, {})

    def call_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        for attempt in range(1, self.attempts):
            try:
                return self._once(value, running, kwargs)
            except Exception as error:
                if not self.wants(error):
                    raise
            time.sleep(self.wait(attempt))
        return self._once(value, running, kwargs)

    async def acall_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        import asyncio

        for attempt in range(1, self.attempts):
            try:
                return await self._aonce(value, running, kwargs)
            except Exception as error:
                if not self.wants(error):
                    raise
            await asyncio.sleep(self.wait(attempt))
        return await self._aonce(value, running, kwargs)

    def batch(
        self, inputs: Sequence[Any], config: Configs = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> list[Any]:
        """One output an input; each is tried again by itself."""
        return super().batch(inputs, config, return_exceptions=return_exceptions, **kwargs)

    def wait(self, attempt: int) -> float:
        """Seconds after so many attempts."""
        try:
            grown = self.waits["initial"] * self.waits["exp_base"] ** (attempt - 1)
        except OverflowError:
            grown = self.waits["max"]
        return float(min(self.waits["max"], grown) + random.uniform(0, self.waits["jitter"]))

    def _once(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        return self.bound.call_with(value, running, kwargs) if kwargs else self.bound.call(value, running)

    async def _aonce(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        return await (self.bound.acall_with(value, running, kwargs) if kwargs else self.bound.acall(value, running))


def wanting(errors: ErrorTypes) -> Callable[[BaseException], bool]:
    """A predicate from a predicate or from exception types. A signal of the engine is never wanted."""
    if isinstance(errors, type) or not callable(errors):
        kinds = (errors,) if isinstance(errors, type) else tuple(errors)
        return lambda error: isinstance(error, kinds) and not isinstance(error, GraphBubbleUp)
    return lambda error: not isinstance(error, GraphBubbleUp) and bool(errors(error))
