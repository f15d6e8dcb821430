"""An async generator that another one reads, and that ends with that one.

An event loop that ends closes the async generators that it knows of all at once. Of two that stand in each other, the
outer one then closes the inner one while the loop does, which is an error ("already running"), and what the inner one
still had to do is cut off. So the loop hears of the outer one only (PEP 525, `sys.set_asyncgen_hooks`).
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")


class Owned(Generic[T]):
    """The chunks of an async generator, for an owner that closes it: ``async with Owned(chunks()) as chunks``.

    It takes any other async iterator as well.
    """

    __slots__ = ("_begun", "_chunks")

    def __init__(self, chunks: AsyncIterator[T]) -> None:
        self._chunks = chunks
        self._begun = False

    def __aiter__(self) -> Self:
        return self

    def __anext__(self) -> Awaitable[T]:
        if self._begun:
            return self._chunks.__anext__()
        self._begun = True
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=None, finalizer=_left_to_its_owner)
        try:
            return self._chunks.__anext__()  # a generator looks at the hooks when it is first asked
        finally:
            sys.set_asyncgen_hooks(*hooks)

    @property
    def ag_running(self) -> bool:
        """Whether somebody awaits a chunk now."""
        return bool(getattr(self._chunks, "ag_running", False))

    async def aclose(self) -> None:
        """End it; what it does at its end has then been done."""
        close = getattr(self._chunks, "aclose", None)
        if close is not None:
            self._begun = True
            await close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is GeneratorExit and self.ag_running:
            return  # the owner is thrown away while it waits inside, and so is this one: nobody can await its end
        await self.aclose()


def _left_to_its_owner(chunks: Any) -> None:
    """Nothing, when it is collected: it is together with its owner, which the loop closes, and so closes this one."""
