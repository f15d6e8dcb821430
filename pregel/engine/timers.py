"""The timers of one awaited run: what it is to hear later, and the limits of its attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pregel.engine.effects import Event, Timeout
from pregel.engine.task import Task


class Timers:
    """What is due later in one event loop; each event goes to `post` when its time has come."""

    __slots__ = ("_limits", "_loop", "_post", "_running")

    def __init__(self, loop: asyncio.AbstractEventLoop, post: Callable[[Event], None]) -> None:
        self._loop = loop
        self._post = post
        self._running: dict[asyncio.TimerHandle, None] = {}
        self._limits: dict[Task, list[asyncio.TimerHandle]] = {}  # those of them that watch an attempt

    def __bool__(self) -> bool:
        """Whether something is due."""
        return bool(self._running)

    def start(self, seconds: float, event: Event) -> None:
        """Post an event then; a limit that was moved on meanwhile is watched for what is left of it."""
        handle: asyncio.TimerHandle = self._loop.call_later(seconds, lambda: self._ring(handle, event))
        self._running[handle] = None
        if isinstance(event, Timeout):
            others = [other for other in self._limits.get(event.task, ()) if other in self._running]  # not rung yet
            self._limits[event.task] = [*others, handle]

    def _ring(self, handle: asyncio.TimerHandle, event: Event) -> None:
        self._running.pop(handle, None)
        if isinstance(event, Timeout) and event.task.clock is not None:
            if (left := event.task.clock.left(event.kind)) > 0:
                self.start(left, event)
                return
            event.elapsed = event.task.clock.elapsed
        self._post(event)

    def drop(self, task: Task) -> None:
        """Watch an attempt no longer: it has ended."""
        for handle in self._limits.pop(task, ()):
            handle.cancel()
            self._running.pop(handle, None)

    def clear(self) -> None:
        """Nothing is due any more."""
        for handle in self._running:
            handle.cancel()
        self._running.clear()
