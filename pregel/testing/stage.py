"""A task's body on a stage: it plays only while it is told to, and steps off where it waits for a call."""

from __future__ import annotations

from contextvars import Context
from queue import SimpleQueue
from threading import Thread
from typing import Any

from pregel.engine.body import run_body
from pregel.engine.effects import Failed, TaskEvent
from pregel.engine.future import CallFuture
from pregel.engine.task import Task


class Stage:
    """The body of one attempt. A thread of its own plays it, never at the same time as the driver."""

    def __init__(self, task: Task, context: Context) -> None:
        self.task = task
        self.context = context
        self.waits_for: CallFuture[Any] | None = None
        self.event: TaskEvent | None = None
        self._go: SimpleQueue[None] = SimpleQueue()
        self._back: SimpleQueue[None] = SimpleQueue()
        Thread(target=self._play, name="pregel-stage", daemon=True).start()

    def play(self) -> TaskEvent | None:
        """The event that the body ends in; None when it waits for a call."""
        self._go.put(None)
        self._back.get()
        return self.event

    def wait(self, future: CallFuture[Any]) -> None:
        """From inside the body: step off until a future is settled."""
        while not future.done():
            self.waits_for = future
            self._back.put(None)
            self._go.get()

    def _play(self) -> None:
        self._go.get()
        try:
            self.event = self.context.run(run_body, self.task)
        except BaseException as error:
            self.event = Failed(self.task, error)
        self._back.put(None)
