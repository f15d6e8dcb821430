"""An event loop whose time passes only while nothing is ready: waits take none, and limits fit any machine."""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

T = TypeVar("T")


class Idling(selectors.DefaultSelector):
    """A selector that waits for nobody: it moves the clock on instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready. With nothing to wait for but other threads, it waits as ever."""
        ready = super().select(timeout if timeout is None else 0)
        if not ready and timeout is not None:
            self.now += max(timeout, 1e-6)  # a timer may ring a moment early, and what is left then must pass as well
        return ready


def played(main: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns, in virtual time; nothing in it may wait for another thread and a timer at once."""
    selector = Idling()
    with (
        pytest.MonkeyPatch.context() as patch,
        asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner,
    ):
        patch.setattr(time, "monotonic", lambda: selector.now)
        return runner.run(main)
