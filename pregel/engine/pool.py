"""Threads that run task bodies, and jobs that anyone who waits may claim.

1. A job is run by whoever claims it first: a worker, or a waiting driver that sits on a worker itself. So nobody waits
   with a free hand, and nested runs cannot use up the pool.
2. A job ends in exactly one event, given to its `post`, whatever its body did.
3. Threads are daemons, started on demand and kept.
4. An attempt that passed a limit is left behind: its thread goes on, its news is dropped, and the pool may start one
   thread more while it lasts. The same task does not start again in this process before it has ended.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextvars import Context
from queue import SimpleQueue

from pregel.engine.body import run_body
from pregel.engine.effects import Event, Failed
from pregel.engine.task import Task


class Job:
    """One attempt of a task, waiting for a hand."""

    __slots__ = ("body", "context", "is_over", "post", "task", "ticket")

    def __init__(
        self, task: Task, context: Context, post: Callable[[Event], None], body: Callable[[Task], Event] = run_body
    ) -> None:
        self.body = body
        self.task = task
        self.context = context
        self.post = post
        self.ticket = [None]
        self.is_over = False

    def claim(self) -> bool:
        """Whether the caller is the one to run (or to withdraw) it; true exactly once."""
        try:
            self.ticket.pop()
        except IndexError:
            return False
        return True

    def run(self) -> None:
        """Run the body; the caller has claimed the job."""
        clock = self.task.clock
        if clock is not None:
            clock.begin()
        event: Event
        try:
            event = self.context.run(self.body, self.task)
        except BaseException as error:  # KeyboardInterrupt or SystemExit in a worker: the driver raises it
            event = Failed(self.task, error)
        if clock is not None:
            event = clock.judged(event)
            with _left_lock:
                self.is_over = True
                _left.pop(_name(self.task), None)
        self.post(event)

    def leave(self) -> bool:
        """Leave the attempt behind; whether its thread still runs."""
        with _left_lock:
            if not self.is_over:
                _left[_name(self.task)] = self
            return not self.is_over


class Pool:
    """A growing set of worker threads, at most `size`."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._queue: SimpleQueue[Job] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = 0
        self._free = 0  # hands without a job; below 0, jobs without a hand

    def submit(self, job: Job) -> None:
        """Queue a job, with one more thread when none is free."""
        with self._lock:
            self._free -= 1
            if self._free < 0 and self._threads < self.size + len(_left):
                self._threads += 1
                self._free += 1
                threading.Thread(target=self._work, name="pregel-worker", daemon=True).start()
        self._queue.put(job)

    def _work(self) -> None:
        _local.worker = True
        while True:
            job = self._queue.get()
            if job.claim():
                job.run()
            del job
            with self._lock:
                self._free += 1

    @property
    def is_idle(self) -> bool:
        """Whether no job waits or runs; the news of all of them is posted then."""
        with self._lock:
            return self._free == self._threads


_left: dict[tuple[str, str], Job] = {}  # attempts that were left behind and still run, by thread and task id
_left_lock = threading.Lock()


def _name(task: Task) -> tuple[str, str]:
    return task.frame.run.thread, task.id


def still_runs(task: Task) -> bool:
    """Whether an earlier attempt of a watched task was left behind in this process and has not ended."""
    return bool(_left) and _name(task) in _left


_local = threading.local()


def on_worker() -> bool:
    """Whether this code runs on a worker thread."""
    return getattr(_local, "worker", False)


_shared: Pool | None = None


def shared_pool() -> Pool:
    """The pool of this process: 32 threads, or four more than there are cores when those are many."""
    global _shared
    if _shared is None:
        _shared = Pool(max(32, (os.cpu_count() or 1) + 4))
    return _shared


def _after_fork() -> None:
    global _shared
    _shared = None
    _left.clear()


os.register_at_fork(after_in_child=_after_fork)
