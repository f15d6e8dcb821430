"""What a store keeps of waits and events, as flows.

1. The waits of a thread are rows from the append that lets the thread rest until the claim that takes it up: no row, no
   wait. When one is over is told by whoever asks (`due_flow`): a store needs no clock for them.
2. An event needs no authority. It comes in under the lock of the thread's row, so it either sees a wait, or is seen by
   the run that begins one. Its id is kept for ever, so the same event sent again is dropped.
3. It is taken in the append that stores what it was taken for, by the claim that compares the thread with what was
   read.
"""

from __future__ import annotations

from pregel.checkpoint.flows import Sql
from pregel.checkpoint.records import EventRow, Sent
from pregel.flow import Flow


def send_flow(thread: str, event: EventRow) -> Flow[Sent]:
    """Put an event into a thread's mailbox, unless it was sent before, or the thread waits for another key."""
    rows = yield Sql("lock_thread", (thread,))
    if not rows:
        return Sent(False)
    tno = rows[0][0]
    if (yield Sql("event", (tno, event.id))):
        return Sent(True, repeated=True)
    keys = [key for (key,) in (yield Sql("awaited", (tno, event.name)))]
    awaited = any(key is None or key == event.key for key in keys)
    if keys and not awaited:
        return Sent(True, keys=keys)
    yield Sql("send_event", (tno, *event))
    yield Sql("count_event", (tno,))
    return Sent(True, awaited=awaited)


def events_flow(thread: str, limit: int | None) -> Flow[list[EventRow]]:
    """The events of a thread that nobody has taken, in the order in which they were sent."""
    rows = yield Sql("thread", (thread,))
    if not rows:
        return []
    return [EventRow(*row) for row in (yield Sql("events", (rows[0][0], limit)))]


def unread_flow(name: str, limit: int | None) -> Flow[list[tuple[str, str]]]:
    """(thread, its graph) of those that have ended, with an event of this name that nobody has taken."""
    return [(row[0], row[1]) for row in (yield Sql("unread", (name, limit)))]


def due_flow(now: float, limit: int | None) -> Flow[list[tuple[str, str]]]:
    """(thread, its graph) of those that could be woken: a time has come, or an event that they wait for."""
    return [(row[0], row[1]) for row in (yield Sql("due", (now, limit)))]
