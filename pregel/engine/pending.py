"""What the pending writes of a checkpoint say of its tasks: results, answers, failures, open questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pregel.checkpoint.records import (
    ATTEMPT,
    EFFECT,
    ERROR,
    ERROR_SOURCE,
    INTERRUPT,
    MEMO,
    RESUME,
    REWIND,
    Saved,
    Write,
)
from pregel.engine.ids import NULL_TASK
from pregel.engine.task import Task, handling
from pregel.errors import StoredError


def stored_results(saved: Saved, *, shown: bool = False) -> tuple[dict[str, list[Write]], dict[str, dict[str, Any]]]:
    """The finished tasks' writes, and every task's answers, of a checkpoint.

    Rows that an update left for display count only when they are to be `shown`: they are in a later checkpoint already.
    """
    pending: dict[str, list[Write]] = {}
    answers: dict[str, dict[str, Any]] = {}
    for write in saved.writes:
        if write.channel == RESUME:
            answers[write.task] = dict(write.value)
        elif write.task == NULL_TASK or not (shown or write.child is None):
            continue
        elif write.idx >= 0 or write.channel == MEMO or write.channel == EFFECT:
            pending.setdefault(write.task, []).append(write)
    return pending, answers


def outside_of(saved: Saved) -> list[tuple[str, Any]]:
    """What commands wrote beside the tasks of a checkpoint: no later one carries it yet."""
    return [(write.channel, write.value) for write in saved.writes if write.task == NULL_TASK and write.idx >= 0]


def stored_failures(saved: Saved) -> tuple[dict[str, list[Any]], dict[str, str]]:
    """How often the tasks of a checkpoint were tried, and the failures of them that are an error handler's.

    A failure that ended a run starts a new allowance: whoever resumes wants the task tried again.
    """
    attempts: dict[str, list[Any]] = {}
    failures: dict[str, str] = {}
    sources: set[str] = set()
    for write in saved.writes:
        if write.channel == ATTEMPT:
            attempts[write.task] = list(write.value)
        elif write.channel == ERROR:
            failures[write.task] = str(write.value)
        elif write.channel == ERROR_SOURCE:
            sources.add(write.task)
    for task in failures.keys() & attempts.keys():
        attempts[task][1] = 0
    return attempts, {task: error for task, error in failures.items() if task in sources}


def handler_tasks(saved: Saved, tasks: Sequence[Task]) -> list[Task]:
    """The tasks of the error handlers that a checkpoint's tasks have come to."""
    _, handled = stored_failures(saved)
    failed = [task for task in tasks if task.id in handled and task.node.error_handler] if handled else []
    return [handling(task, StoredError(handled[task.id])) for task in failed]


def open_questions(saved: Saved, answers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """interrupt id -> task id, for every question of a checkpoint that has no answer yet."""
    finished = {write.task for write in saved.writes if write.idx >= 0}
    return {
        question.id: write.task
        for write in saved.writes
        if write.channel == INTERRUPT and write.task not in finished
        for question in write.value
        if question.id not in answers.get(write.task, {})
    }


def rewinds_of(saved: Saved) -> list[dict[str, Any]]:
    """The records of the rewinds at a checkpoint, the first one first."""
    found = [write.value for write in saved.writes if write.channel == REWIND]
    return sorted(found, key=lambda record: str(record["execution_id"]))  # which rise, as ids of checkpoints do
