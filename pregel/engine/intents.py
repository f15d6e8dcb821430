"""Work outside that a task declares (`runtime.effect`): its intent is stored before it is begun, its outcome after it.

1. An intent is stored, with all that came before it, before its producer is called, whatever the durability; and the
   outcome before the task goes on. So what was called, and may have happened, is known after any death.
2. What was begun and has no outcome is done again only if it was begun as idempotent: under the same key. Else its task
   fails with OutcomeUnknownError, whatever it makes of that: it is not tried again and no handler has it.
3. An outcome is a memo of the task, as a value of `runtime.step` is. It is stored for a task that is being cancelled
   too: the work was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pregel.checkpoint.keys import hash16
from pregel.checkpoint.records import EFFECT, MEMO, TaskWrites
from pregel.config import unscoped
from pregel.engine.effects import Begun, CameOut
from pregel.engine.future import CallFuture
from pregel.engine.ids import TICKS, idempotency_key, uuid_text
from pregel.engine.memos import as_stored
from pregel.engine.task import PUSH, path_text
from pregel.errors import NoCheckpointerError, NotBuiltError, OutcomeUnknownError

if TYPE_CHECKING:
    from pregel.engine.task import Task

BEGUN, WITHDRAWN, SETTLED = "begun", "withdrawn", "settled"
"""The states of an intent: called and not known to be over; it did not happen; somebody said what came of it."""


def effect_id(task: Task, key: str) -> str:
    """What an effect of a task is stored under."""
    return uuid_text(hash16((task.id, "effect", key)))


def outcome_of(task: Task, key: str) -> tuple[Any, ...]:
    """The recorded result of an effect; empty when there is none."""
    rows = task.frame.recalled.get(effect_id(task, key), ())
    return tuple(as_stored(task, row.value) for row in rows if row.channel == MEMO)


def begin(task: Task, key: str, *, idempotent: bool) -> CallFuture[str]:
    """Have an intent stored; the future gives the key to offer, or OutcomeUnknownError."""
    run, journal = task.frame.run, task.frame.journal
    what = f"Effect {unscoped(key)!r} of node {task.name!r}"
    if journal is None and run.journal is not None:
        raise NoCheckpointerError(
            f"{what} cannot be kept: its graph was compiled with checkpointer=False.",
            fix="Leave checkpointer= out, so that the graph shares the saver of the graph around it.",
            node=task.name,
        )
    if journal is not None and not journal.renews:
        raise NotBuiltError(
            f"{what} cannot be kept: the saver has only the verbs of the reference, or overrides some of them.",
            fix="Use InMemorySaver, SqliteSaver or PostgresSaver, or give the provider runtime.idempotency_key.",
            node=task.name,
        )
    offered = idempotency_key(run.thread or task.frame.state.checkpoint, task.lineage, task.path_text, f"effect {key}")
    intent = {
        "key": unscoped(key),
        "task": task.id,
        "idempotency_key": offered,
        "idempotent": idempotent,
        "attempt": task.attempt,
        "at": run.ids.clock() / TICKS,
        "state": BEGUN,
    }
    return _told(task, Begun, key, intent, offered)


def come_out(task: Task, key: str, value: Any) -> CallFuture[Any]:
    """Have the result of an effect stored; SerializationError, and nothing stored, for one that would not come back."""
    value = as_stored(task, value)
    return _told(task, CameOut, key, [(MEMO, value)], value)


def withdraw(task: Task, key: str, why: str) -> CallFuture[Any]:
    """Have it stored that an effect did not happen: the next attempt begins it anew."""
    return _told(task, CameOut, key, [(EFFECT, {"state": WITHDRAWN, "key": unscoped(key), "why": why})], None)


def record_of(task: Task, key: str, rows: list[tuple[str, Any]]) -> TaskWrites:
    """What the journal keeps of an effect."""
    path = path_text((PUSH, task.path, key, "effect"))
    return TaskWrites(task.frame.ns, task.checkpoint, effect_id(task, key), task.name, path, rows)


def unknown(task: Task, key: str) -> OutcomeUnknownError:
    """The error of an effect that was begun, and of which nothing more is known."""
    return OutcomeUnknownError(
        f"Effect {unscoped(key)!r} of node {task.name!r} was begun, and its outcome is unknown: it may have happened.",
        fix="Find out, then app.threads.settle(thread_id, key, result=...) if it did, or (thread_id, key, retry=True) "
        "if it did not, and resume. With idempotent=True the provider is asked again with the same key.",
        key=unscoped(key),
        effect_id=effect_id(task, key),
        thread=task.frame.run.thread or None,
        step=task.step,
        node=task.name,
        task=task.id,
    )


def _told(task: Task, kind: type[Begun | CameOut], key: str, rows: Any, value: Any) -> CallFuture[Any]:
    """The future of a note to the run; done at once where nobody runs the task."""
    future: CallFuture[Any] = CallFuture(task)
    host = task.frame.run.host
    if host is None:
        future.settle(value)
    else:
        host.push(kind(task, key, rows, future))
    return future
