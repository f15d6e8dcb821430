"""A stored checkpoint as users see it: a StateSnapshot.

Two views. *Live* (no checkpoint id was given): results of finished tasks of the step are folded in, they are not
``next``, and only unanswered questions show. *Addressed* (a checkpoint id, and every history entry): the state as of
that checkpoint, all its tasks, all its questions.
"""

from __future__ import annotations

from typing import Any

from pregel.checkpoint.records import Load, Saved
from pregel.config import RunnableConfig
from pregel.engine.apply import Input, apply
from pregel.engine.effects import Flow, Loaded, Step
from pregel.engine.frame import Frame
from pregel.engine.ids import NULL_TASK
from pregel.engine.nested import graphs_of, stable_namespace
from pregel.engine.plan import plan
from pregel.engine.resume import handler_tasks, restore, stored_results
from pregel.engine.show import state_values
from pregel.engine.task import Task
from pregel.engine.trace import shown_task
from pregel.types import StateSnapshot


def checkpoint_config(thread: str, ns: str, checkpoint: str | None) -> RunnableConfig:
    """The config that addresses a checkpoint."""
    configurable: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ns}
    if checkpoint is not None:
        configurable["checkpoint_id"] = checkpoint
    return {"configurable": configurable}


def empty_snapshot(config: RunnableConfig) -> StateSnapshot:
    """The snapshot of a thread that has no checkpoint."""
    return StateSnapshot({}, (), config, None, None, None, (), ())


def snapshot(frame: Frame, saved: Saved, *, live: bool, subgraphs: bool) -> Flow[StateSnapshot]:
    """The snapshot of a checkpoint; asks for the states of subgraphs when they are wanted."""
    _restore(frame, saved, live)
    pending, answers = stored_results(saved, shown=not live)
    tasks = plan(frame.plan, frame)
    handlers = handler_tasks(saved, tasks)
    for task in (*tasks, *handlers):
        task.writes = [(write.channel, write.value) for write in pending.get(task.id, ())]
        task.writes_stored = task.id in pending
    shown = []
    for task in (*tasks, *handlers):
        state = yield from _inner_state(frame, task, subgraphs)
        shown.append(shown_task(frame, saved.writes, task, answers.get(task.id, {}) if live else {}, state))
    handled = [task.origin for task in handlers if task.writes_stored and task.origin is not None]
    stored = [*handled, *(task for task in (*tasks, *handlers) if task.writes_stored)]
    finished = sorted(stored, key=lambda task: task.order)
    coming = [task for task in tasks if not (live and task in stored)]
    if live and finished:
        try:
            apply(frame.plan, frame.state, finished)
            if not coming:  # the step is whole and was not applied: a resume does that, and goes on with these
                coming = plan(frame.plan, frame)
        except Exception:  # what the step's barrier met, or will meet: the state is as before it
            _restore(frame, saved, live)
            coming = tasks
    thread = frame.run.thread
    config = checkpoint_config(thread, saved.ns, saved.id)
    if saved.ns:
        config["configurable"]["checkpoint_map"] = {**saved.metadata.get("parents", {}), saved.ns: saved.id}
    return StateSnapshot(
        values=state_values(frame, frame.stream_keys),
        next=tuple(task.name for task in coming),
        config=config,
        metadata=saved.metadata,
        created_at=saved.created_at,
        parent_config=checkpoint_config(thread, saved.ns, saved.parent) if saved.parent else None,
        tasks=tuple(shown),
        interrupts=tuple(question for task in shown for question in task.interrupts),
    )


def _restore(frame: Frame, saved: Saved, live: bool) -> None:
    restore(frame, saved)
    outside = [(write.channel, write.value) for write in saved.writes if write.task == NULL_TASK and write.idx >= 0]
    if live and outside:
        apply(frame.plan, frame.state, [Input(outside)])
        frame.state.updated = None


def _inner_state(frame: Frame, task: Task, subgraphs: bool) -> Flow[Any]:
    inside = graphs_of(task.node)
    if len(inside) != 1:  # of several that a node calls, none is its state
        return None
    graph = inside[0]
    ns = task.ns if task.node.subgraph is not None else f"{task.ns}|call:0"
    if graph.checkpointer is True:
        ns = stable_namespace(ns)
    config = checkpoint_config(frame.run.thread, ns, None)
    if not subgraphs:
        return config
    events = yield Step(load=[Load(ns)])
    loaded = next(event for event in events if isinstance(event, Loaded))
    saved = loaded.opened.saved[0] if loaded.opened is not None else None
    if saved is None:
        return config
    inner = Frame(frame.run, graph, ns, is_root=False)
    return (yield from snapshot(inner, saved, live=True, subgraphs=True))
