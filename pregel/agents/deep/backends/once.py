"""Which edit of which task this is: kept beside what it made, so that a task that is run again finds it done."""

from __future__ import annotations

from hashlib import blake2b

from pregel.config import current_task, question_scope


def mark_of(*parts: object) -> str | None:
    """What names this edit of this task, the same in every attempt; None outside of a run."""
    running = current_task.get()
    info = None if running is None else running.runtime.execution_info
    if info is None:
        return None
    named = repr((info.task_id, question_scope.get(), parts))
    return blake2b(named.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def is_again() -> bool:
    """Whether the running task was begun before."""
    running = current_task.get()
    return running is not None and running.runtime.execution_info.node_attempt > 1
