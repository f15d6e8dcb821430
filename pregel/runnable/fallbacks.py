"""A runnable with others that stand in for it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from pregel.config import RunnableConfig
from pregel.errors import InvalidInputError
from pregel.owned import Owned
from pregel.runnable.base import ErrorTypes, Runnable
from pregel.runnable.compose import acall_anywhere, coerce_to_runnable
from pregel.runnable.retry import wanting


class RunnableWithFallbacks(Runnable):
    """A runnable, then others in order until one does not fail; when all do, the first error is raised."""

    def __init__(
        self, runnable: Any, fallbacks: Sequence[Any], errors: ErrorTypes, exception_key: str | None = None
    ) -> None:
        self.runnable = coerce_to_runnable(runnable)
        self.fallbacks = [coerce_to_runnable(fallback) for fallback in fallbacks]
        self.handles = wanting(errors)
        self.exception_key = exception_key
        self.name = self.runnable.get_name()
        self.has_sync = all(one.has_sync for one in self.runnables)
        self.has_async = any(one.has_async for one in self.runnables)

    @property
    def runnables(self) -> list[Runnable]:
        """All of them, in the order in which they are tried."""
        return [self.runnable, *self.fallbacks]

    def call(self, value: Any, running: Any) -> Any:
        errors: list[Exception] = []
        for one in self.runnables:
            try:
                return one.call(self._input(value, errors), running)
            except Exception as error:
                self._note(errors, error)
        raise errors[0]

    async def acall(self, value: Any, running: Any) -> Any:
        errors: list[Exception] = []
        for one in self.runnables:
            try:
                return await acall_anywhere(one, self._input(value, errors), running)
            except Exception as error:
                self._note(errors, error)
        raise errors[0]

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """The chunks of the first that gives one; after that nothing stands in."""
        errors: list[Exception] = []
        for one in self.runnables:
            chunks = one.stream(self._input(input, errors), config, **kwargs)
            try:
                first = next(chunks)
            except StopIteration:
                return
            except Exception as error:
                self._note(errors, error)
                continue
            yield first
            yield from chunks
            return
        raise errors[0]

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """The chunks of the first that gives one, awaited."""
        errors: list[Exception] = []
        for one in self.runnables:
            async with Owned(one.astream(self._input(input, errors), config, **kwargs)) as chunks:
                try:
                    first = await anext(chunks)
                except StopAsyncIteration:
                    return
                except Exception as error:
                    self._note(errors, error)
                    continue
                yield first
                async for chunk in chunks:
                    yield chunk
                return
        raise errors[0]

    def _input(self, value: Any, errors: Sequence[Exception]) -> Any:
        if self.exception_key is None:
            return value
        if not isinstance(value, Mapping):
            raise InvalidInputError("Fallbacks with an exception_key need a dict as input.", fix="Pass a dict.")
        return {**value, self.exception_key: errors[-1]} if errors else value

    def _note(self, errors: list[Exception], error: Exception) -> None:
        if not self.handles(error):
            raise error
        errors.append(error)
