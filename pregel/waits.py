"""Durable waits: a node waits for a time or for an event, and nothing is held while it does.

They work like `pregel.types.interrupt`: the run ends, the thread is `waiting`, and the node runs again from its top
when what it waited for has come. The same call then returns what came of it, which is recorded once and for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol, cast, overload

from pregel.config import running_task
from pregel.errors import InvalidInputError
from pregel.text import checked_text


@dataclass(frozen=True, slots=True)
class Wait:
    """What a node waits for: the `value` of an `Interrupt` in snapshots, streams and under ``__interrupt__``.

    - `name`: that of an event; empty for a timer. `key`: which of the events of that name; None for any.
    - `due`: when the wait is over in any case; None when only an event ends it. It never moves.
    """

    name: str = ""
    key: str | None = None
    due: datetime | None = None

    @property
    def due_at(self) -> float | None:
        """`due` in unix seconds."""
        return None if self.due is None else self.due.timestamp()

    def takes(self, name: str, key: str | None) -> bool:
        """Whether an event of this name and key ends the wait."""
        return bool(self.name) and self.name == name and (self.key is None or self.key == key)


ITEM = "pregel.item"
"""The name of the event that says what came of an item."""


@dataclass(frozen=True, slots=True)
class ItemWait(Wait):
    """A wait for work that is done elsewhere, of which `key` is the item's id: the wait ends with what came of it.

    `work` and `version` say what is to be done, `at` since when (unix seconds); `type` and `blob` are its input, as it
    is stored.
    """

    work: str = ""
    version: str = ""
    at: float = 0.0
    type: str = ""
    blob: bytes = b""


@dataclass(frozen=True, slots=True)
class Event:
    """What was sent to a thread with `app.threads.send_event`, and ended a wait."""

    id: str
    name: str
    value: Any
    key: str | None
    sent_at: datetime


class Waiting(Protocol):
    """The task of a node, as it waits."""

    def wait(self, made: Callable[[float], Wait]) -> Any:
        """What came of its next wait, which `made` makes of the time in unix seconds, if it is a new one."""


def sleep(seconds: float) -> None:
    """Return when so many seconds have passed since the node first came here, however often its process restarts."""
    pause = _seconds(seconds, "A sleep")
    _wait(lambda now: Wait(due=_moment(now + pause)))


def sleep_until(due: datetime) -> None:
    """Return when this moment has come; at once, in the run that wakes the thread, when it has passed."""
    at = _aware(due, "sleep_until")
    _wait(lambda now: Wait(due=at))


@overload
def wait_for_event(name: str, *, key: str | None = None) -> Event: ...
@overload
def wait_for_event(name: str, *, key: str | None = None, timeout: float) -> Event | None: ...
@overload
def wait_for_event(name: str, *, key: str | None = None, deadline: datetime) -> Event | None: ...


def wait_for_event(
    name: str, *, key: str | None = None, timeout: float | None = None, deadline: datetime | None = None
) -> Event | None:
    """The next event of this name that is sent to the thread, or was sent to it before and not taken yet.

    With a `key` only one that was sent with it. None once `timeout` seconds have passed since the node first came here,
    or the `deadline` has: which of the two came first is decided once, by when the event was sent.
    """
    if not name or not isinstance(name, str):
        raise InvalidInputError(f"An event needs a name, not {name!r}.", fix='Give a text: wait_for_event("approved").')
    if timeout is not None and deadline is not None:
        raise InvalidInputError("A wait has a timeout or a deadline.", fix="Leave one of them out.")
    seconds = None if timeout is None else _seconds(timeout, "A timeout")
    at = None if deadline is None else _aware(deadline, "deadline")
    checked_text(name, "The name of an event")
    wanted = None if key is None else checked_text(str(key), "The key of an event")

    def made(now: float) -> Wait:
        return Wait(name, wanted, at if seconds is None else _moment(now + seconds))

    found = _wait(made)
    if found is None:
        return None
    return Event(found["id"], found["name"], found["value"], found["key"], _moment(found["at"]))


def _wait(made: Callable[[float], Wait]) -> Any:
    outcome = cast(Waiting, running_task()).wait(made)
    return outcome["event"]


def _seconds(given: Any, what: str) -> float:
    if isinstance(given, int | float) and 0 <= given < float("inf"):
        return given
    raise InvalidInputError(
        f"{what} of {given!r} seconds.",
        fix="Give a number of seconds, 0 or more: timedelta(days=3).total_seconds().",
    )


def _moment(at: float) -> datetime:
    try:
        return datetime.fromtimestamp(at, UTC)
    except (OverflowError, ValueError, OSError):
        raise InvalidInputError("A wait ends after the year 9999.", fix="Give fewer seconds.") from None


def _aware(due: datetime, what: str) -> datetime:
    if not isinstance(due, datetime) or due.tzinfo is None:
        raise InvalidInputError(
            f"{what} takes a datetime with a time zone, not {due!r}.", fix="Use datetime.now(UTC) + timedelta(...)."
        )
    return due.astimezone(UTC)
