"""Runs threads anew that ended while an event was on its way which their run would have read.

A run reads its events when it takes its thread up. One that comes after that, before the run ends, is kept and nobody
reads it: the thread is at its end, and waits for nothing. Whoever sees that starts the thread again. The guard of the
thread's row, as it was loaded before the events were read, sees to it that one does, and only with an unread event.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.records import Mail, Saved
from pregel.config import RunnableConfig
from pregel.engine.authority import ClaimMissed
from pregel.engine.effects import Flow, Loaded, Result, Step
from pregel.engine.frame import Frame
from pregel.engine.journal import BlockingJournal
from pregel.engine.resume import Entry, begin
from pregel.engine.started import STARTED_WITH
from pregel.engine.starts import Admission, left_to_workers
from pregel.engine.tries import adriven, awaiting_journal, driven
from pregel.errors import ThreadBusy, ThreadDeleted

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel

ELSEWHERE = (ClaimMissed, ThreadBusy, ThreadDeleted)  # somebody else has gone on with the thread, or ended it


def start_anew(graph: Pregel, thread: str, name: str, input: Any) -> bool:
    """Admit a run of a thread that has ended with an unread event of this name; False when it is no such thread."""
    admission = _admission(graph, thread, input, graph.saver.look(thread, ""))
    frame = admission.call.frame(BlockingJournal)
    try:
        admission.done(driven(_anew_flow(frame, name, input), frame))
    except ELSEWHERE:
        return False
    return True


async def astart_anew(graph: Pregel, thread: str, name: str, input: Any) -> bool:
    """Async twin of `start_anew`."""
    admission = _admission(graph, thread, input, await graph.saver.alook(thread, ""))
    frame = admission.call.frame(awaiting_journal())
    try:
        admission.done(await adriven(_anew_flow(frame, name, input), frame))
    except ELSEWHERE:
        return False
    return True


def _admission(graph: Pregel, thread: str, input: Any, saved: Saved | None) -> Admission:
    """With the config of the start before, if there was one."""
    config: RunnableConfig = json.loads("{}" if saved is None else saved.metadata.get(STARTED_WITH, "{}"))
    config["configurable"] = {**config.get("configurable", {}), "thread_id": thread}
    return Admission(graph, input, config, None, None)


def _anew_flow(frame: Frame, name: str, input: Any) -> Flow[Result]:
    opening = yield from begin(frame, Entry(input))
    if isinstance(opening, Result):
        return opening
    assert frame.journal is not None
    told = yield Step(load=[Mail()])
    unread = [event for one in told if isinstance(one, Loaded) for page in one.pages for event in page]
    if not frame.journal.row.is_done or all(event.name != name for event in unread):
        raise ClaimMissed
    yield left_to_workers(opening)
    return Result("done")
