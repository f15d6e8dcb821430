"""A rewind: a thread that failed is made ready to go on where it failed, and how it failed is kept.

1. It is one append: that the thread has failed is compared with its row in the transaction that says that it was
   rewound. Nothing runs, and nothing that ran is undone.
2. The checkpoint stays, so the tasks keep their ids: what had finished is not done again, values of `runtime.step` and
   idempotency keys are the same. What failed starts with a new allowance of failures, as after any resume.
3. A record of its own says who rewound it, why, and which attempts had failed of what, where later failures of the same
   tasks take the place of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from pregel.checkpoint.keys import hash16
from pregel.checkpoint.records import REWIND, Release, TaskWrites, ThreadRow
from pregel.checkpoint.standing import ThreadStatus, info_of
from pregel.engine.effects import Flow, Result, Step
from pregel.engine.frame import Frame
from pregel.engine.ids import TICKS, uuid_text
from pregel.engine.open_step import effects_of, failures_of, opened_flow, places_flow
from pregel.engine.pending import rewinds_of
from pregel.errors import CannotRewindError
from pregel.types import Effect, FailedTask, Rewind

REWOUND = "rewound"
"""How the reason of a thread begins that was rewound and not run since."""


def rewind_flow(frame: Frame, reason: str, operator: str | None) -> Flow[Result]:
    """Rewind a thread that failed; the result's values are the `Rewind`."""
    opened = yield from opened_flow(frame)
    row, saved = opened.thread, opened.saved[0]
    info = info_of(row)
    before = rewinds_of(saved) if saved is not None else []
    if before and info.status == "idle" and info.reason.startswith(REWOUND):
        return Result("done", replace(_rewind(frame, before[-1]), repeated=True))
    if saved is None or info.status != "failed":
        return Result("failed", error=_refused(row, info.status, can_resume=info.can_resume))
    places = yield from places_flow(frame, row, saved)
    execution = frame.run.ids.next(saved.step)
    record: dict[str, Any] = {
        "execution_id": execution,
        "reason": reason,
        "operator": operator,
        "at": frame.run.ids.clock() / TICKS,
        "error": row.reason,
        "failed": [list(task) for task in failures_of(places)],
        "effects": [asdict(effect) for effect in effects_of(places)],
    }
    step = Step(wait=False)
    step.claim = True
    task = uuid_text(hash16((saved.id, REWIND, execution)))
    step.writes.append(TaskWrites("", saved.id, task, "", "", [(REWIND, record)]))
    by = f" by {operator}" if operator else ""
    step.release = Release("idle", f"{REWOUND}{by}: {reason}")
    yield step
    return Result("done", _rewind(frame, record))


def _rewind(frame: Frame, record: Mapping[str, Any]) -> Rewind:
    return Rewind(
        thread_id=frame.run.thread,
        execution_id=record["execution_id"],
        reason=record["reason"],
        operator=record["operator"],
        at=record["at"],
        error=record["error"],
        failed=tuple([FailedTask(*task) for task in record["failed"]]),
        effects=tuple([Effect(**effect) for effect in record["effects"]]),
    )


def _refused(row: ThreadRow, status: ThreadStatus, *, can_resume: bool) -> CannotRewindError:
    """The error for a thread that cannot be rewound as it stands."""
    why: dict[str, tuple[str, str]] = {
        "running": ("is running", "Wait for its end, or drain it; it may be rewound once it has failed."),
        "abandoned": ("has not failed, its process died", "Go on with app.threads.resume(thread_id)."),
        "pending": ("waits for a worker", "A worker takes it up, or app.threads.resume(thread_id)."),
        "interrupted": ("waits for an answer", "Answer it with app.threads.resume(thread_id, answer)."),
        "waiting": ("waits for a time or an event", "It goes on by itself when that comes."),
        "stopped": ("was stopped, and has not failed", "Go on with app.threads.resume(thread_id)."),
        "finished": ("has come to its end", "Give it a new input, or fork one of its checkpoints."),
        "lost": ("has stored nothing to go back to", "Give it its input again."),
    }
    reason: str = status
    if status == "failed":
        reason = "lost"
    elif status == "idle":
        reason = "stopped" if can_resume else "finished"
    what, fix = why[reason]
    return CannotRewindError(f"Thread {row.thread!r} {what}.", fix=fix, reason=reason, thread=row.thread)
