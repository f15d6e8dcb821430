"""Work that a node has done elsewhere: it waits for an item, which a worker takes, and goes on with the result.

1. An item is stored by the append that lets the thread rest for it, under the idempotency key of its task: a crash
   before it has made none, and a run that comes here again names the one that is there.
2. What came of it is an answer of the task like that of any wait, so it reaches the run through its history.
3. A failure is told once, in the run that took it. A task that is tried again after that, by its retry policy, or
   because somebody resumed the thread, asks for the work anew, under another key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.engine.ids import idempotency_key
from pregel.errors import WorkFailedError
from pregel.waits import ITEM, ItemWait

if TYPE_CHECKING:
    from pregel.engine.task import Task


def work_of(task: Task, name: str, version: str, input: Any) -> Any:
    """The result of the work; WorkFailedError when it failed, GraphInterrupt while it is not done."""
    run, nth = task.frame.run, 0
    while True:
        key = idempotency_key(run.thread or task.frame.state.checkpoint, task.lineage, task.path_text, f"item {nth}")
        id, outcome = task.waited(lambda now, key=key: _wait(task, name, version, input, key, now))  # type: ignore[misc]
        told = outcome["event"]["value"]
        if "error" not in told:
            return told["result"]
        if id in run.outcomes and id not in run.told:
            run.told.add(id)
            raise _failed(task, name, version, told["error"])
        nth += 1


def _wait(task: Task, name: str, version: str, input: Any, key: str, now: float) -> ItemWait:
    journal = task.frame.run.journal
    serde = None if journal is None else getattr(journal.saver, "serde", None)
    kind, blob = ("", b"") if serde is None else serde.dumps_typed(input)
    return ItemWait(ITEM, key, None, name, version, now, kind, blob)


def _failed(task: Task, name: str, version: str, error: dict[str, Any]) -> WorkFailedError:
    return WorkFailedError(
        f"{name!r} (version {version}) failed for node {task.name!r}: {error['type']}: {error['message']}",
        fix="Mend what it failed for, and resume the thread: the work is asked for once more.",
        error_type=error["type"],
        error_message=error["message"],
        thread=task.frame.run.thread or None,
        step=task.step,
        node=task.name,
    )
