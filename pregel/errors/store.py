"""Whose fault: the store's."""

from __future__ import annotations

from typing import Any

from pregel.errors.base import PregelError


class StoreError(PregelError):
    """The saver refused, failed or lost something; nothing after it was written."""

    code = "STORE"


class ThreadBusy(StoreError):
    """Another run owns this thread.

    `asked`: what this call had asked of that run before its `wait` was over, ``interrupt`` or ``rollback``. It stands:
    that run stops for it.
    """

    code = "THREAD_BUSY"
    fix = (
        "Wait for the other run to end, or use another thread_id. concurrency='enqueue' waits for it,"
        " 'interrupt' and 'rollback' make it stop."
    )

    def __init__(self, message: str | None = None, *, reason: str = "held", asked: str = "", **place: Any) -> None:
        super().__init__(message, **place)
        self.reason = reason
        self.asked = asked


class AuthorityLost(StoreError):
    """Another owner took the thread over; this run wrote nothing after that."""

    code = "AUTHORITY_LOST"


class ThreadDeleted(StoreError):
    """The thread was deleted while it ran."""

    code = "THREAD_DELETED"


class StoreMoved(StoreError):
    """The database file was moved or replaced under an open connection."""

    code = "STORE_MOVED"


class JournalDamaged(StoreError):
    """A stored record that the thread needs is missing or does not fit."""

    code = "JOURNAL_DAMAGED"


class ReducerChanged(StoreError):
    """A stored value can only be made again by a reducer that the channel does not have any more."""

    code = "REDUCER_CHANGED"


class SerializationError(StoreError, TypeError):
    """A value cannot be stored so that it comes back equal."""

    code = "SERIALIZATION"
