"""The checkpoint of a superstep, as the journal is told of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pregel.checkpoint.records import Lone, Save, Source
from pregel.engine.apply import Applied, stored_values, values_of
from pregel.engine.effects import Step
from pregel.engine.frame import Frame
from pregel.engine.ids import Lineage
from pregel.engine.task import Task

_lone = partial(tuple.__new__, Lone)
_save = partial(tuple.__new__, Save)  # a third of the cost of calling the class


def commit(frame: Frame, step: Step, applied: Applied, source: Source, paths: Sequence[str]) -> None:
    """Queue the checkpoint that an apply made, and move on to the next superstep."""
    state = frame.state
    if frame.journal is not None:
        changed, marked = applied
        if frame.seen_news or frame.changed_news:
            changed = (*changed, *frame.changed_news)
            marked = (*marked, *frame.seen_news)
            frame.seen_news, frame.changed_news = (), ()
        parent = state.checkpoint if frame.stored else None
        state.checkpoint = frame.run.ids.next(state.step)
        state.lineage = Lineage(state.lineage, paths if source == "loop" else (source, str(state.counter)))
        step.saves.append(
            _save(
                (
                    frame.ns,
                    state.checkpoint,
                    parent,
                    state.step,
                    source,
                    frame.metadata,
                    state.lineage,
                    values_of(state, changed),
                    # Copies: the record may wait while the next step, in the same transaction, moves these maps on.
                    {name: state.seen[name].copy() for name in marked},
                    None if state.updated is None else tuple(state.updated),
                    paths,
                )
            )
        )
        frame.stored = True
    state.step += 1


def commit_alone(frame: Frame, step: Step, applied: Applied, task: Task, kept: Sequence[tuple[str, Any]]) -> None:
    """The same for a superstep of one triggered task, with what the journal keeps of the task."""
    state = frame.state
    name, parent, (changed, marked) = task.name, state.checkpoint, applied
    state.checkpoint = id = frame.run.ids.next(state.step)
    state.lineage = lineage = Lineage(state.lineage, frame.plan.paths[name])
    step.saves.append(
        _lone(
            (
                frame.ns,
                id,
                parent,
                state.step,
                name,
                task.triggers,
                tuple(kept),
                state.counter,
                tuple(changed),
                tuple(stored_values(state, changed)),
                tuple(state.seen[name].items()) if marked else None,
                tuple(state.updated or ()),
                frame.metadata,
                lineage,
            )
        )
    )
    state.step += 1
