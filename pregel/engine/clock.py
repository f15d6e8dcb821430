"""The clock of one attempt: how long it has run, how long it was idle, and whether it came in too late.

1. It starts when the node's code does, not when the task is queued. A subgraph's starts when its task does.
2. Whoever watches it asks `left`: a limit that an activity moved on is watched again for what is left of it.
3. An attempt that ends after a limit has failed, also when nobody was there to cancel it: a stream that nobody pulls
   watches no clock.
"""

from __future__ import annotations

import time
from typing import Literal

from pregel.engine.effects import Done, Event, Failed
from pregel.engine.task import Task
from pregel.errors import NodeTimeoutError
from pregel.types import seconds

Limit = Literal["run", "idle", "step"]


class Clock:
    """How one attempt stands against its limits. All times are seconds."""

    __slots__ = ("auto", "begun", "idle", "late", "over", "run", "touched")

    def __init__(self, task: Task) -> None:
        policy = task.node.timeout
        self.run = seconds(policy.run_timeout) if policy is not None else None
        self.idle = seconds(policy.idle_timeout) if policy is not None else None
        self.auto = policy is None or policy.refresh_on == "auto"  # whether any activity counts, or heartbeats only
        self.begun: float | None = None
        self.touched = 0.0
        self.late: Limit | None = None  # the first limit that was passed
        self.over = False  # the attempt has ended, or was given up
        if task.node.subgraph is not None:
            self.begin()

    def begin(self) -> None:
        """The node's code starts."""
        self.begun = self.touched = time.monotonic()

    def touch(self) -> None:
        """The attempt showed that it is alive; that does not mend a silence which was too long."""
        self.late = self.late or self._passed()
        self.touched = time.monotonic()

    def left(self, limit: Limit) -> float:
        """Seconds until this limit is passed, as far as is known now; 0 or less when it is."""
        now = time.monotonic()
        if limit == "step":
            return 0.0
        whole = (self.run if limit == "run" else self.idle) or 0.0
        if self.begun is None:
            return whole
        return whole - (now - (self.begun if limit == "run" else self.touched))

    @property
    def elapsed(self) -> float:
        """Seconds since the node's code started."""
        return 0.0 if self.begun is None else time.monotonic() - self.begun

    def judged(self, event: Event) -> Event:
        """The end of the attempt: as it is, or the failure of having come too late."""
        late = self.late or self._passed()
        if late is None or not isinstance(event, Done):
            return event
        return Failed(event.task, timed_out(event.task, late, self.elapsed))

    def _passed(self) -> Limit | None:
        if self.run is not None and self.left("run") <= 0:
            return "run"
        return "idle" if self.idle is not None and self.left("idle") <= 0 else None


def timed_out(task: Task, limit: Limit, elapsed: float) -> NodeTimeoutError:
    """The error of an attempt that passed a limit."""
    policy = task.node.timeout
    run = seconds(policy.run_timeout) if policy is not None else None
    idle = seconds(policy.idle_timeout) if policy is not None else None
    what = "was idle for" if limit == "idle" else "ran for"
    return NodeTimeoutError(
        f"Node {task.name!r} {what} more than its {limit} timeout of {run if limit == 'run' else idle} s.",
        elapsed=elapsed,
        kind=limit,
        idle_timeout=idle,
        run_timeout=run,
        thread=task.frame.run.thread or None,
        step=task.step,
        node=task.name,
        task=task.id,
    )


def left_behind(error: NodeTimeoutError) -> NodeTimeoutError:
    """The error of an attempt whose thread goes on."""
    error.still_running = True
    error.fix = "Its thread cannot be stopped and goes on; resume once that has ended, or make the node async."
    return error
