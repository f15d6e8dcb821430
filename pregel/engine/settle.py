"""What the tasks of a thread have begun outside, and recorded no outcome of: looked at, and settled by whoever knows.

1. Whoever settles takes the thread for one append, as an update does, so a run cannot meet it half way.
2. The thread stands as before, and goes on with a resume; one whose process had died is at rest then.
"""

from __future__ import annotations

from typing import Any

from pregel.channels import MISSING
from pregel.checkpoint.records import EFFECT, INTERRUPT, MEMO, Load, Opened, Release, Saved, TaskWrites, Write
from pregel.engine.authority import ClaimMissed
from pregel.engine.effects import Flow, Loaded, Result, Step
from pregel.engine.frame import Frame
from pregel.engine.intents import SETTLED, WITHDRAWN
from pregel.engine.open_step import begun, effect_of, effects_of, opened_flow, places_flow
from pregel.engine.pending import open_questions, stored_results
from pregel.engine.waiting import release_of
from pregel.errors import OutcomeUnknownError, UnknownEffectError


def effects_flow(frame: Frame) -> Flow[Result]:
    """What the open step of a thread has begun outside, and has recorded no outcome of."""
    opened = yield from opened_flow(frame)
    saved = opened.saved[0]
    if saved is None:
        return Result("done", [])
    return Result("done", effects_of((yield from places_flow(frame, opened.thread, saved))))


def settle_flow(frame: Frame, key: str, result: Any, operator: str | None) -> Flow[Result]:
    """Record what came of an effect: a result, or (MISSING) that it did not happen; the result's values are the Effect.

    `key` is the effect's, or its id.
    """
    journal = frame.run.journal
    assert journal is not None
    opened = yield from opened_flow(frame)
    journal.may_begin()
    row, saved = opened.thread, opened.saved[0]
    places = [] if saved is None else (yield from places_flow(frame, row, saved))
    waiting = [(place, write) for place in places for write in begun(place)]
    found = [pair for pair in waiting if key in (pair[1].value["key"], pair[1].task)]
    if len(found) != 1:
        return Result("failed", error=_not_one(row.thread, key, found or waiting, several=bool(found)))
    place, write = found[0]
    yield from _known_place(frame, place, row.seq)
    intent = {**write.value, "state": WITHDRAWN if result is MISSING else SETTLED, "operator": operator}
    rows: list[tuple[str, Any]] = [(EFFECT, intent)]
    if result is not MISSING:
        journal.saver.serde.dumps_typed(result)  # refused before anything is written
        rows.append((MEMO, result))
    step = Step(wait=False)
    step.claim = True
    step.writes.append(TaskWrites(place.ns, place.id, write.task, write.name, write.path, rows))
    left = [other.value["key"] for _, other in waiting if other is not write and not other.value["idempotent"]]
    step.release = _as_before(opened, intent["key"], left)
    yield step
    return Result("done", effect_of(place, write))


def _known_place(frame: Frame, place: Saved, seq: int) -> Flow[None]:
    """Have the journal know the namespace of a checkpoint; ClaimMissed when the thread has moved meanwhile."""
    if place.ns:
        events = yield Step(load=[Load(place.ns)])
        opened = next(event for event in events if isinstance(event, Loaded)).opened
        if opened is None or opened.thread.seq != seq:
            raise ClaimMissed


def _as_before(opened: Opened, key: str, left: list[str]) -> Release:
    """How the thread stands once an effect was settled; one that waits goes on waiting."""
    row, saved = opened.thread, opened.saved[0]
    if row.status == "waiting" and saved is not None:
        unanswered = open_questions(saved, stored_results(saved)[1])
        asked = [question for write in saved.writes if write.channel == INTERRUPT for question in write.value]
        return release_of(row.status, row.reason, [question for question in asked if question.id in unanswered])
    if row.status == "running":
        return Release("idle", f"effect {key!r} was settled after its process had died")
    if not row.reason.startswith(OutcomeUnknownError.__name__):
        return Release(row.status, row.reason)
    if left:
        return Release(row.status, f"{OutcomeUnknownError.__name__}: the outcome of {', '.join(left)} is unknown")
    return Release(row.status, f"effect {key!r} was settled, and nothing has run since")


def _not_one(thread: str, key: str, waiting: list[tuple[Saved, Write]], *, several: bool) -> UnknownEffectError:
    named = ", ".join(f"{write.value['key']!r} of {write.name!r} ({write.task})" for _, write in waiting) or "none"
    return UnknownEffectError(
        f"Several effects {key!r} wait to be settled." if several else f"No effect {key!r} waits to be settled.",
        fix=f"Name one by its id: {named}." if several else f"Those that wait: {named}.",
        effect_ids=[write.task for _, write in waiting],
        thread=thread,
    )
