"""What an update of a subgraph does to the graphs around it: they no longer ask what it had asked.

The subgraph goes on from the new checkpoint, where its questions are asked anew, under other ids, or not at all. An
answer to the old ones would reach nobody, so they are open no more and such an answer is refused by name.
"""

from __future__ import annotations

from pregel.checkpoint.records import INTERRUPT, Load, Saved, TaskWrites
from pregel.engine.authority import ClaimMissed
from pregel.engine.effects import Flow, Loaded, Step
from pregel.engine.frame import Frame


def unasked_flow(frame: Frame, checkpoint: str | None) -> Flow[tuple[list[TaskWrites], Saved | None]]:
    """The rows that take the open questions of this subgraph from the tasks that it runs in.

    And the addressed checkpoint (None: the newest), loaded last: the next one is stored as what differs from that.
    """
    parents = frame.metadata.get("parents") or {}
    journal = frame.journal
    assert journal is not None
    seq = journal.row.seq
    loads = [Load(frame.ns), *(Load(ns, parent) for ns, parent in parents.items())]
    events = yield Step(load=[*loads, Load(frame.ns, checkpoint)])
    opened = next(event for event in events if isinstance(event, Loaded)).opened
    assert opened is not None
    if opened.thread.seq != seq:  # what was loaded before is not what this claim would stand on
        raise ClaimMissed
    newest, *around, addressed = opened.saved
    own = newest.writes if newest is not None else ()
    gone = {question.id for write in own if write.channel == INTERRUPT for question in write.value}
    rows = list[TaskWrites]()
    for saved in around:
        if saved is None or opened.heads.get(saved.ns) != saved.id:
            continue
        for write in saved.writes:
            if write.channel == INTERRUPT and not gone.isdisjoint(question.id for question in write.value):
                left = [question for question in write.value if question.id not in gone]
                rows.append(TaskWrites(saved.ns, saved.id, write.task, write.name, write.path, [(INTERRUPT, left)]))
    return rows, addressed
