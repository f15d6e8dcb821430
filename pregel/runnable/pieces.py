"""Small runnables to build chains of: pass on, add keys, pick keys, choose, map."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pregel.errors import InvalidInputError
from pregel.runnable.base import Runnable
from pregel.runnable.compose import RunnableParallel, acall_anywhere, coerce_to_runnable


class RunnablePassthrough(Runnable):
    """Gives its input back; `func`, when there is one, sees it on the way."""

    def __init__(self, func: Callable[[Any], Any] | None = None) -> None:
        self.step = coerce_to_runnable(func) if func is not None else None
        self.has_async = self.step is not None and self.step.has_async
        self.has_sync = self.step is None or self.step.has_sync

    def call(self, value: Any, running: Any) -> Any:
        if self.step is not None:
            self.step.call(value, running)
        return value

    async def acall(self, value: Any, running: Any) -> Any:
        if self.step is not None:
            await acall_anywhere(self.step, value, running)
        return value

    @classmethod
    def assign(cls, **steps: Any) -> Runnable:
        """The input, a dict, with more keys, each made from it."""
        return RunnableAssign(RunnableParallel(steps))


class RunnableAssign(Runnable):
    """Adds the outputs of a RunnableParallel to its input, a dict."""

    def __init__(self, mapper: RunnableParallel) -> None:
        self.mapper = mapper
        self.has_sync, self.has_async = mapper.has_sync, mapper.has_async

    def call(self, value: Any, running: Any) -> Any:
        return {**_dict(value, self), **self.mapper.call(value, running)}

    async def acall(self, value: Any, running: Any) -> Any:
        return {**_dict(value, self), **await acall_anywhere(self.mapper, value, running)}


class RunnablePick(Runnable):
    """One value of a dict; or, of a list of keys, a dict of those that are there."""

    def __init__(self, keys: str | Sequence[str]) -> None:
        self.keys = keys if isinstance(keys, str) else list(keys)

    def call(self, value: Any, running: Any) -> Any:
        found = _dict(value, self)
        if isinstance(self.keys, str):
            return found.get(self.keys)
        return {key: found[key] for key in self.keys if key in found}


class RunnableBranch(Runnable):
    """``RunnableBranch((condition, runnable), ..., default)``: the first whose condition holds."""

    def __init__(self, *branches: Any) -> None:
        if len(branches) < 2:
            raise InvalidInputError("A branch needs at least one (condition, runnable) and a default.")
        *pairs, default = branches
        self.branches = [(coerce_to_runnable(condition), coerce_to_runnable(step)) for condition, step in pairs]
        self.default = coerce_to_runnable(default)
        every = [self.default, *(one for pair in self.branches for one in pair)]
        self.has_sync = all(one.has_sync for one in every)
        self.has_async = any(one.has_async for one in every)

    def call(self, value: Any, running: Any) -> Any:
        for condition, step in self.branches:
            if condition.call(value, running):
                return step.call(value, running)
        return self.default.call(value, running)

    async def acall(self, value: Any, running: Any) -> Any:
        for condition, step in self.branches:
            if await acall_anywhere(condition, value, running):
                return await acall_anywhere(step, value, running)
        return await acall_anywhere(self.default, value, running)


class RunnableEach(Runnable):
    """A runnable over each item of a list."""

    def __init__(self, bound: Any) -> None:
        self.bound = coerce_to_runnable(bound)
        self.has_sync, self.has_async = self.bound.has_sync, self.bound.has_async

    def call(self, value: Any, running: Any) -> Any:
        return self.bound.batch(value, None if running.config == {} else running.config)

    async def acall(self, value: Any, running: Any) -> Any:
        return await self.bound.abatch(value, None if running.config == {} else running.config)


def _dict(value: Any, runnable: Runnable) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidInputError(
            f"{type(runnable).__name__} needs a dict as input, got {type(value).__name__}.", fix="Pass a dict."
        )
    return value
