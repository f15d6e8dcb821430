"""The step that a thread stands in, over all graphs inside of it: what failed in it, and what it has begun outside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pregel.checkpoint.pages import Pages
from pregel.checkpoint.records import ATTEMPT, EFFECT, ERROR, MEMO, Load, Opened, Page, Saved, ThreadRow, Write
from pregel.engine.effects import Flow, Loaded, Step
from pregel.engine.frame import Frame
from pregel.engine.intents import BEGUN
from pregel.errors import ThreadNotFoundError
from pregel.types import Effect, FailedTask


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
    if frame.journal is not None:
        frame.journal.graph = opened.thread.graph or frame.journal.graph  # what is done here is no version's work
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
        if write.channel == EFFECT and write.task not in known and write.value["state"] == BEGUN
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
