"""Nodes whose work is done elsewhere: the caller names the work, never a host or a process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pregel.config import running_task
from pregel.errors import InvalidInputError

FIRST = "1"
"""The version of work that names none."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """What the code of a `NodeWorker` may know of what it does, beside the input.

    - `idempotency_key`: the same whenever this item is tried, by whichever worker: give it to what is called outside.
    - `attempt`: from 1; one that a worker died in counts.
    """

    idempotency_key: str
    name: str
    version: str
    attempt: int
    thread_id: str
    graph: str


def elsewhere(name: str, *, version: str = FIRST) -> Callable[[Any], Any]:
    """A node that has this work done by whichever `NodeWorker` has the code for it: its input goes there, its result is
    what the node returns.

    Meanwhile the thread is ``waiting``, and nothing is held. WorkFailedError in the node when the work failed.
    """
    for text in (name, version):
        if not isinstance(text, str) or not text:
            raise InvalidInputError(
                f"Work has a name and a version, not {text!r}.", fix='elsewhere("Ship", version="1")'
            )

    def node(state: Any) -> Any:
        task: Any = running_task()
        return task.work(name, version, state)

    node.__name__ = node.__qualname__ = name
    node.stays_here = True  # type: ignore[attr-defined]  # where the run is: it only waits
    return node
