"""What a task makes once and for all (`runtime.step`): stored under the task, and read again by its later attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.checkpoint.keys import hash16
from pregel.checkpoint.records import MEMO, TaskWrites
from pregel.engine.effects import Noted
from pregel.engine.future import CallFuture
from pregel.engine.ids import uuid_text
from pregel.engine.state import hand_out
from pregel.engine.task import PUSH, path_text

if TYPE_CHECKING:
    from pregel.engine.task import Task


def noted(task: Task, key: str, value: Any) -> CallFuture[Any]:
    """Have a value stored that a task made once and for all; the future is done when it is.

    SerializationError, and nothing stored, for a value that would not come back.
    """
    future: CallFuture[Any] = CallFuture(task)
    run = task.frame.run
    value = as_stored(task, value)
    if run.host is None:
        future.settle(value)
    else:
        run.host.push(Noted(task, key, value, future))
    return future


def memo_record(task: Task, key: str, value: Any) -> TaskWrites:
    """A value that a task made once and for all, as the journal keeps it: a record of its own for each key."""
    name = memo_id(task, key)
    return TaskWrites(
        task.frame.ns, task.checkpoint, name, task.name, path_text((PUSH, task.path, "step", key)), [(MEMO, value)]
    )


def memo_id(task: Task, key: str) -> str:
    """What a task's value is stored under."""
    return uuid_text(hash16((task.id, "step", key)))


def memo(task: Task, key: str) -> tuple[Any, ...]:
    """The value that a task made before; empty when it made none."""
    return tuple(as_stored(task, write.value) for write in task.frame.recalled.get(memo_id(task, key), ()))


def as_stored(task: Task, value: Any) -> Any:
    """A value as it comes back from the saver: nothing that a node does to its own changes what is kept."""
    if task.frame.journal is None:
        return hand_out(value)
    serde = task.frame.journal.saver.serde
    return serde.loads_typed(serde.dumps_typed(value))
