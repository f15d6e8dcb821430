"""Who pulls an awaited run, and the cancellations that the run itself asks of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import ref


class Puller:
    """The asyncio task that pulls a run. A stream may go from one to another, so each pull notes it anew.

    A node that is awaited in place runs in that very task: to cancel the node is to cancel the task, and to take that
    back once the node has ended.
    """

    __slots__ = ("_cancels", "_task", "_torn")

    def __init__(self) -> None:
        self._task: Callable[[], asyncio.Task[Any] | None] = _nobody  # looked up: it holds the run
        self._cancels = 0  # how often it was to be cancelled when it began to pull
        self._torn = False  # it is to be cancelled once more, for the node

    def note(self) -> None:
        """Note the running task as the one that pulls."""
        task = asyncio.current_task()
        self._task, self._cancels = (_nobody, 0) if task is None else (ref(task), task.cancelling())

    def tear(self) -> None:
        """Cancel the node that is awaited in place."""
        task = self._task()
        if task is not None and not self._torn:
            self._torn = True
            task.cancel()

    def was_torn_alone(self) -> bool:
        """Take that cancellation back; whether it was there and nobody else cancels the task."""
        torn, self._torn = self._torn, False
        task = self._task()
        return torn and task is not None and task.uncancel() <= self._cancels


def _nobody() -> None:
    return None
