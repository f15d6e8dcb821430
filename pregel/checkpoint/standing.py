"""How a thread stands, in plain words: its status, whether it can go on, and why it is where it is.

1. `abandoned` is never stored, since whoever could store it is gone: it is `running` with an owner that is dead, or
   that was not heard of for its lease. It is computed here, at each read.
2. No clean-up has to have run for any of this to be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, get_args

from pregel.checkpoint.labels import named
from pregel.checkpoint.lease import is_dead, this_owner
from pregel.checkpoint.records import ThreadRow

ThreadStatus = Literal["idle", "pending", "running", "interrupted", "waiting", "failed", "abandoned"]
STATUSES: tuple[ThreadStatus, ...] = get_args(ThreadStatus)

_USUAL = {
    "idle": "it is at rest",
    "pending": "it was started, and waits for a worker",
    "interrupted": "it waits for an answer",
    "waiting": "it waits for a time or an event",
    "failed": "its last run failed",
}
_HOPELESS = "JoinStarvedError"  # to go on would come to the same rest again


@dataclass(frozen=True, slots=True)
class ThreadInfo:
    """A thread as `app.threads` shows it.

    - `status`: ``idle`` (nothing runs), ``pending`` (for a worker), ``running``, ``interrupted`` (paused by a question
      or a breakpoint), ``waiting`` (for a time or an event), ``failed``, ``abandoned`` (its process died or was not
      heard of).
    - `reason`: why, in plain words.
    - `can_resume`: whether a call without input has something to go on with.
    - `updated_at`: when it was written last, in UTC; None where the saver does not say.
    - `version`: of the graph that began its present execution; None where that has none.
    - `takeovers`: how often in a row a run of it was taken over from a process that had died or frozen.
    """

    thread_id: str
    status: ThreadStatus
    reason: str
    can_resume: bool
    updated_at: datetime | None = None
    takeovers: int = 0
    version: str | None = None


def info_of(row: ThreadRow) -> ThreadInfo:
    """A thread's row in plain words."""
    status = standing(row)
    return ThreadInfo(
        row.thread,
        status,
        _reason(row, status),
        _can_resume(row, status),
        datetime.fromtimestamp(row.updated_at, UTC) if row.updated_at else None,
        row.crashes,
        named(row.graph)[1],
    )


def standing(row: ThreadRow) -> ThreadStatus:
    """The status of a thread: `abandoned` when it says `running` but nothing that could run it is alive."""
    if row.status != "running":
        return row.status
    return "abandoned" if row.lapsed or _is_dead(row) else "running"


def _is_dead(row: ThreadRow) -> bool:
    return row.owner is not None and row.run is not None and is_dead(row.owner, row.run)


def _reason(row: ThreadRow, status: ThreadStatus) -> str:
    if status not in ("running", "abandoned"):
        return row.reason or _USUAL[status]
    who = "a process" if row.owner is None else f"process {row.owner.pid} on {row.owner.host or 'this host'}"
    if status == "running":
        return f"{who} runs it"
    kept = "" if row.last_id != row.pin else "; no step of that run was stored"
    if not _is_dead(row):
        return f"{who} was not heard of for longer than its lease, or gave it up{kept}"
    if row.owner is not None and row.owner[:4] == this_owner()[:4]:
        return f"a run of this process broke off, and how it ended could not be stored{kept}"
    return f"{who} died while it ran{kept}"


def _can_resume(row: ThreadRow, status: ThreadStatus) -> bool:
    if status == "idle":
        return bool(row.reason)  # it was stopped between two steps: drained, cancelled, or copied from a running one
    if status == "abandoned" and not row.last_id:
        return False  # durability "exit": the input is stored at the end
    return status != "running" and not row.reason.startswith(_HOPELESS)
