"""Waits: what came of them, which tasks stay asleep, and what a thread rests for.

1. A wait is a question that nobody is asked: its `Interrupt` has a `Wait` for a value, and what came of it is its
   answer, stored with the claim like any other: it is decided once, and that append takes the event that decided it.
2. An event ends a wait when it was sent by the time that the wait was due; else the time ends it. Both are told by the
   clock of the graph, of which the due time was made when the wait was first stored.
3. A task whose questions are all waits that are not over does not run: it is paused as it was.
4. A thread whose waits are all open still is left as it is: such a run appends nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.records import INTERRUPT, EventRow, ItemRow, Mail, Release, Saved, Status, WaitRow
from pregel.engine.effects import Flow, Loaded, Step
from pregel.engine.ids import TICKS
from pregel.engine.pending import open_questions, stored_results
from pregel.errors import NoCheckpointerError, NotBuiltError
from pregel.types import Interrupt
from pregel.waits import ItemWait, Wait

if TYPE_CHECKING:
    from pregel.engine.frame import Frame
    from pregel.engine.running import Running


SOME = 8
"""How many events are read that may be none of those that are waited for, before all are."""


def wait_of(task: Running, id: str, made: Callable[[float], Wait]) -> Wait:
    """The wait with this id as it was first stored; a new one, of the clock of the run, where there is none like it."""
    run = task.frame.run
    new = made(run.ids.clock() / TICKS)
    stored = run.waits.get(id)
    if stored is not None and (stored.name, stored.key) == (new.name, new.key):
        return stored
    if not task.frame.keeps_questions:
        raise NoCheckpointerError(
            f"Node {task.name!r} waits, but no checkpointer could keep what it waits for.",
            fix="Compile the graph with InMemorySaver, SqliteSaver or PostgresSaver.",
            node=task.name,
        )
    if run.journal is not None and not hasattr(run.journal.saver, "events"):
        kind = getattr(run.journal.saver, "kind", type(run.journal.saver))
        raise NotBuiltError(
            f"{kind.__name__} keeps no waits and no events: it has only the verbs of the reference.",
            fix="Use InMemorySaver, SqliteSaver or PostgresSaver.",
            node=task.name,
        )
    return new


def waits_in(saved: Saved) -> dict[str, Wait]:
    """The waits of a checkpoint's tasks by id, those that are over too."""
    return {
        question.id: question.value
        for write in saved.writes
        if write.channel == INTERRUPT
        for question in write.value
        if isinstance(question.value, Wait)
    }


def outcomes_flow(frame: Frame, saved: Saved) -> Flow[None]:
    """Tell the run what has come of the waits of the checkpoint that it goes on from."""
    run, journal = frame.run, frame.journal
    run.waits.update(waits_in(saved))
    if not run.waits or journal is None:
        return
    open_ids = open_questions(saved, stored_results(saved)[1])
    waits = {id: wait for id, wait in run.waits.items() if id in open_ids}
    named = {id for id, wait in waits.items() if wait.name} if hasattr(journal.saver, "events") else set()
    limit: int | None = SOME + len(named)
    while True:
        events = (yield from _mail(limit)) if named else ()
        now, loads = run.ids.clock() / TICKS, journal.saver.serde.loads_typed
        run.outcomes, journal.taken = decided(waits, events, now, loads)
        if limit is None or len(events) < limit or len(journal.taken) == len(named):
            return
        limit = None  # what some of them wait for may be further behind


def _mail(limit: int | None) -> Flow[Sequence[EventRow]]:
    """The oldest events that nobody has taken."""
    for told in (yield Step(load=[Mail(limit)])):
        if isinstance(told, Loaded):
            events: Sequence[EventRow] = told.pages[0]
            return events
    return ()


def decided(
    waits: Mapping[str, Wait], events: Sequence[EventRow], now: float, loads: Callable[[Any], Any]
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What came of those that are over, and the events that this takes."""
    outcomes: dict[str, Any] = {}
    taken: dict[str, None] = {}
    named: dict[tuple[str, str | None], deque[EventRow]] = {}
    for event in events:
        for key in {None, event.key}:
            named.setdefault((event.name, key), deque()).append(event)
    for id, wait in waits.items():
        due = wait.due_at
        is_over = due is not None and due <= now
        matching = named.get((wait.name, wait.key)) or deque()
        while matching and matching[0].id in taken:
            matching.popleft()
        found = matching[0] if matching else None
        if found is not None and (due is None or found.at <= due or not is_over):
            taken[found.id] = None
            value = loads((found.type, found.blob))
            told = {"id": found.id, "name": found.name, "key": found.key, "at": found.at, "value": value}
            outcomes[id] = {"event": told}
        elif is_over:
            outcomes[id] = {"event": None}
    return outcomes, tuple(taken)


def asleep(saved: Saved, answers: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Interrupt, ...]]:
    """The tasks of a checkpoint that wait for nothing but what has not come yet, with what they wait for."""
    open_ids = open_questions(saved, answers)
    return {
        write.task: tuple(write.value)
        for write in saved.writes
        if write.channel == INTERRUPT
        and write.value
        and all(isinstance(asked.value, Wait) and asked.id in open_ids for asked in write.value)
    }


def release_of(status: Status, reason: str, asked: Sequence[Interrupt]) -> Release:
    """How a thread is given back; one that has asked for a time or an event is waiting, whatever else it has asked."""
    waits = [
        WaitRow(one.id, one.value.name, one.value.key, one.value.due_at) for one in asked if isinstance(one.value, Wait)
    ]
    if not waits:
        return Release(status, reason)
    return Release("waiting", reason, waits, [item_of(one.value) for one in asked if isinstance(one.value, ItemWait)])


def item_of(wait: ItemWait) -> ItemRow:
    """The work that a wait is for."""
    return ItemRow(wait.key or "", wait.work, wait.version, wait.at, wait.type, wait.blob)
