"""A rewind: a thread that failed is made ready to go on where it failed, and how it failed is kept.

1. It is one append: that the thread has failed is compared with its row in the transaction that says that it was
   rewound. Nothing runs, and nothing that ran is undone.
2. The checkpoint stays, so the tasks keep their ids: what had finished is not done again, values of `runtime.step` and
   idempotency keys are the same. What failed starts with a new allowance of failures, as after any resume.
3. A record of its own says who rewound it, why, and which attempts had failed of what, where later failures of the same
   tasks take the place of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pregel.checkpoint.keys import hash16
from pregel.checkpoint.pages import Pages
from pregel.checkpoint.records import (
    ATTEMPT,
    EFFECT,
    ERROR,
    MEMO,
    REWIND,
    Load,
    Opened,
    Page,
    Release,
    Saved,
    TaskWrites,
    ThreadRow,
    Write,
)
from pregel.checkpoint.standing import ThreadStatus, info_of
from pregel.engine.effects import Flow, Loaded, Result, Step
from pregel.engine.frame import Frame
from pregel.engine.ids import uuid_text
from pregel.engine.pending import rewinds_of
from pregel.engine.running import TICKS
from pregel.errors import CannotRewindError, ThreadNotFoundError
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


def effects_flow(frame: Frame) -> Flow[Result]:
    """What the open step of a thread has begun outside, and has recorded no outcome of; written nowhere."""
    opened = yield from opened_flow(frame)
    saved = opened.saved[0]
    if saved is None:
        return Result("done", [])
    return Result("done", effects_of((yield from places_flow(frame, opened.thread, saved))))


def opened_flow(frame: Frame) -> Flow[Opened]:
    """A thread as it stands, with its newest checkpoint; ThreadNotFoundError when there is none."""
    events = yield Step(load=[Load()])
    opened = next(event for event in events if isinstance(event, Loaded)).opened
    assert opened is not None
    if not opened.thread.tno:
        raise ThreadNotFoundError(
            f"There is no thread {frame.run.thread!r}.",
            fix="app.threads.list() shows those that are there.",
            thread=frame.run.thread,
        )
    return opened


def places_flow(frame: Frame, row: ThreadRow, saved: Saved) -> Flow[list[Saved]]:
    """The newest checkpoint of the thread, and those of the graphs that the tasks of its step run, to any depth.

    These came after it, and ids rise over all namespaces of a thread.
    """
    places = {"": saved}
    pages = Pages(Page(ns=None))
    while row.next_ns > 1 and (part := pages.next()) is not None:
        events = yield Step(load=[part])
        found = next(event for event in events if isinstance(event, Loaded)).pages[0]
        for inner in pages.took(part, found):
            if inner.id <= saved.id:
                return _hanging_on(places)
            places.setdefault(inner.ns, inner)
    return _hanging_on(places)


def _hanging_on(places: Mapping[str, Saved]) -> list[Saved]:
    """Those that hang on what is newest around them."""
    newest = {ns: saved.id for ns, saved in places.items()}
    return [saved for saved in places.values() if (saved.metadata.get("parents") or {}).items() <= newest.items()]


def failures_of(places: Sequence[Saved]) -> list[FailedTask]:
    """The tasks that failed, or were cut short by another one's failure, and have not ended since."""
    failed: list[FailedTask] = []
    for saved in places:
        ended = {write.task for write in saved.writes if write.idx >= 0}
        tries = {write.task: write.value for write in saved.writes if write.channel == ATTEMPT}
        for write in saved.writes:
            if write.channel == ERROR and write.task not in ended:
                deliveries, failures, *_ = tries.get(write.task, (0, 0))
                attempts = 1 + deliveries + failures
                failed.append(FailedTask(saved.ns, write.name, write.task, str(write.value), attempts))
    return failed


def effects_of(places: Sequence[Saved]) -> list[Effect]:
    """The effects that were begun and of which no outcome is recorded."""
    return [effect_of(saved, write) for saved in places for write in begun(saved)]


def begun(saved: Saved) -> list[Write]:
    """The intents of a checkpoint whose outcome is unknown."""
    known = {write.task for write in saved.writes if write.channel == MEMO}
    return [
        write
        for write in saved.writes
        if write.channel == EFFECT and write.task not in known and write.value["state"] == "begun"
    ]


def effect_of(saved: Saved, write: Write) -> Effect:
    """An intent as users see it."""
    intent = write.value
    return Effect(
        key=intent["key"],
        id=write.task,
        idempotency_key=intent["idempotency_key"],
        idempotent=intent["idempotent"],
        node=write.name,
        ns=saved.ns,
        task_id=intent["task"],
        attempt=intent["attempt"],
        begun_at=intent["at"],
    )


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
