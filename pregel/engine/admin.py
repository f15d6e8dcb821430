"""Updates of a thread from outside, as flows.

1. An update is one append: claim, records and release together, so it cannot meet a run half way.
2. The writers of the node an update is made for run as a task body, branches included; the node itself does not.
3. An update for a node that is pending completes the step: what its siblings finished stays. An update for another node
   plans anew what comes after it, and the pending step is given up with all that it finished.
4. What an updated subgraph had asked is open nowhere any more (`engine.unasked`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pregel.channels import LastValue
from pregel.checkpoint.keys import hash16
from pregel.checkpoint.records import Load, Release, Saved, Source, Status, TaskWrites
from pregel.engine.apply import Applied, Input, apply
from pregel.engine.commits import commit
from pregel.engine.effects import Done, Failed, Flow, Loaded, Result, Step
from pregel.engine.frame import Frame
from pregel.engine.ids import uuid_text
from pregel.engine.input import input_writes
from pregel.engine.pending import handler_tasks, outside_of, stored_results
from pregel.engine.plan import END, INPUT, START, TASKS, plan
from pregel.engine.resume import FINGERPRINT, restore
from pregel.engine.snapshot import checkpoint_config
from pregel.engine.started import BEGAN, STARTED_AS, STARTED_CODE, STARTED_WITH
from pregel.engine.task import PULL, Task
from pregel.engine.unasked import unasked_flow
from pregel.engine.versions import mismatch_of
from pregel.errors import CheckpointNotFoundError, InvalidUpdateError, PregelError
from pregel.types import StateUpdate

COPY = "__copy__"


def update_flow(frame: Frame, checkpoint: str | None, supersteps: Sequence[Sequence[StateUpdate]]) -> Flow[Result]:
    """Apply updates as if nodes had returned them, one checkpoint a superstep; the result's values are its config."""
    saved, head = yield from _load(frame, checkpoint)
    if checkpoint is not None and saved is None:
        raise CheckpointNotFoundError(
            f"Checkpoint {checkpoint!r} does not exist.",
            fix="Take an id from get_state_history(config).",
            thread=frame.run.thread,
        )
    if saved is not None and saved.ns:  # what it hangs on, so that its parent goes on with it
        kept = {key: saved.metadata[key] for key in ("parents", FINGERPRINT) if key in saved.metadata}
        frame.metadata = {**frame.metadata, **kept}
    elif saved is not None and STARTED_AS in saved.metadata:  # what its worker runs it with
        kept = {
            key: saved.metadata[key]
            for key in (STARTED_AS, STARTED_WITH, STARTED_CODE, "run_id")
            if key in saved.metadata
        }
        frame.metadata = {**kept, **frame.metadata}
    if saved is not None and BEGAN in saved.metadata:
        frame.metadata = {**frame.metadata, BEGAN: saved.metadata[BEGAN]}
    unasked: list[TaskWrites] = []
    if frame.ns:
        unasked, saved = yield from unasked_flow(frame, checkpoint)
    restore(frame, saved)
    if saved is None and supersteps[0][0].as_node != INPUT:
        frame.state.step = 0  # there is no input checkpoint before this one
    step = Step(wait=False)
    step.claim = True
    try:
        siblings, whole = list[Task](), False
        if saved is not None and checkpoint in (None, head) and not _stands_alone(supersteps[0]):
            _apply_outside(frame, saved)
            siblings, whole = _siblings(frame, saved, supersteps[0])
        for updates in supersteps:
            step = yield from _superstep(frame, saved, updates, siblings, step, whole=whole)
            saved, siblings = None, []
        tasks = plan(frame.plan, frame)
    except PregelError as error:
        return Result("failed", error=error)
    step.writes += unasked
    pending = bool(tasks or frame.ns)  # a subgraph's task is still to end
    step.release = Release(
        _standing(frame, pending=pending), "its state was updated, and steps are pending" if pending else ""
    )
    yield step
    config = checkpoint_config(frame.run.thread, frame.ns, frame.state.checkpoint)
    if frame.ns:
        config["configurable"]["checkpoint_map"] = {**frame.metadata["parents"], frame.ns: frame.state.checkpoint}
    return Result("done", config)


def _standing(frame: Frame, *, pending: bool) -> Status:
    """How a thread stands after an update: one that waits for a worker still does, if there is something to run."""
    if not pending:
        return "idle"
    return "pending" if frame.journal is not None and frame.journal.row.status == "pending" else "interrupted"


def _load(frame: Frame, checkpoint: str | None) -> Flow[tuple[Saved | None, str]]:
    events = yield Step(load=[Load(frame.ns, checkpoint)])
    loaded = next(event for event in events if isinstance(event, Loaded))
    assert loaded.opened is not None
    if other := mismatch_of(frame, loaded.opened, checkpoint=checkpoint, anew=False):
        raise other
    return loaded.opened.saved[0], loaded.opened.heads.get(frame.ns, "")


def _stands_alone(updates: Sequence[StateUpdate]) -> bool:
    """Whether the first superstep does its own folding, or starts from the checkpoint as it is."""
    return any(update.as_node in (COPY, INPUT, END) for update in updates)


def _superstep(
    frame: Frame,
    saved: Saved | None,
    updates: Sequence[StateUpdate],
    siblings: Sequence[Task],
    step: Step,
    *,
    whole: bool = False,
) -> Flow[Step]:
    """One superstep of updates, queued in a step that was not performed yet."""
    as_node = updates[0].as_node
    if as_node == COPY:
        return (yield from _copy(frame, saved, updates[0], step))
    if as_node == END and updates[0].values is None:
        return _clear(frame, saved, step)
    if as_node == INPUT:
        given_up = plan(frame.plan, frame) if frame.stored else []
        applied = apply(frame.plan, frame.state, [*given_up, Input(input_writes(frame, updates[0].values))])
        _commit(frame, step, applied, "input")
        return step
    nodes = [_node_of(frame, update, len(updates)) for update in updates]
    finished: list[Input] = []
    for name, update in zip(nodes, updates, strict=True):
        writes, step = yield from _written(frame, name, update.values, step)
        finished.append(Input(writes, name, _consumed_by(frame, name)))
        if frame.stored and writes:
            _show(frame, step, name, update, writes, len(finished))
    if whole:
        siblings = _agreeing(frame, siblings, finished)
    _commit(frame, step, apply(frame.plan, frame.state, [*siblings, *finished]), "update")
    return step


def _written(frame: Frame, name: str, values: Any, step: Step) -> Flow[tuple[list[tuple[str, Any]], Step]]:
    """What the writers of a node make of values; the step so far travels on, it is not performed yet."""
    task = Task(frame, name, frame.plan.nodes[name], (PULL, name), ("__interrupt__",))
    task.phase, task.output, task.outside = "leave", values, True
    ask = Step()
    ask.start.append(task)
    events = yield ask
    event = next(event for event in events if isinstance(event, Done | Failed))
    if isinstance(event, Failed):
        raise event.error
    return event.writes, step


def _consumed_by(frame: Frame, name: str) -> Sequence[str]:
    """What an update for a node counts as triggered by: a join or a deferral that is open, so that it closes again."""
    channels = frame.state.channels
    waits = [c for c in frame.plan.triggers[name] if channels[c].consumes and channels[c].is_available()]
    return waits or ("__interrupt__",)


def _show(frame: Frame, step: Step, name: str, update: StateUpdate, writes: list[tuple[str, Any]], index: int) -> None:
    """The update's writes on the checkpoint it was made to, for display; they are never applied from there."""
    checkpoint = frame.state.checkpoint
    taken = {row.task for row in step.writes if row.checkpoint == checkpoint}
    pending = next((t for t in plan(frame.plan, frame) if t.name == name and t.id not in taken), None)
    task = update.task_id or (pending.id if pending else uuid_text(hash16((checkpoint, "__interrupt__", str(index)))))
    shown = [(channel, value) for channel, value in writes if channel != TASKS]
    if shown:
        step.writes.append(TaskWrites(frame.ns, checkpoint, task, name, "", shown))


def _commit(frame: Frame, step: Step, applied: Applied, source: Source) -> None:
    frame.state.updated = None if source == "update" else frame.state.updated
    commit(frame, step, applied, source, [])
    child = frame.state.checkpoint
    step.writes = [record._replace(child=record.child or child) for record in step.writes]


def _node_of(frame: Frame, update: StateUpdate, n: int) -> str:
    """The node an update is made for, inferred when it does not say and there is just one."""
    nodes, state = frame.plan.nodes, frame.state
    if update.as_node is not None:
        if update.as_node not in nodes:
            known = ", ".join(name for name in nodes if name != START)
            raise InvalidUpdateError(f"Node {update.as_node!r} does not exist.", fix=f"Known nodes: {known}.")
        return update.as_node
    if n > 1:
        raise InvalidUpdateError("Several updates in one superstep must each say as_node.")
    if len(nodes) == 1:
        return next(iter(nodes))
    seen = {name: counters for name, counters in state.seen.items() if name in nodes and counters}
    if not seen:
        if isinstance(frame.graph.input_channels, str) and frame.graph.input_channels in nodes:
            return str(frame.graph.input_channels)
        raise InvalidUpdateError("Ambiguous update: no node has run yet.", fix="Pass as_node=.")
    latest = sorted(((max(counters.values()), name) for name, counters in seen.items()), reverse=True)
    if len(latest) > 1 and latest[0][0] == latest[1][0]:
        names = ", ".join(name for counter, name in latest if counter == latest[0][0])
        raise InvalidUpdateError(f"Ambiguous update: {names} ran last, together.", fix="Pass as_node=.")
    return latest[0][1]


def _apply_outside(frame: Frame, saved: Saved) -> None:
    """Bring in what a command wrote from outside and no checkpoint carries yet."""
    outside = outside_of(saved)
    if outside:
        frame.note(apply(frame.plan, frame.state, [Input(outside)]))
        frame.state.updated = None


def _pending(frame: Frame, saved: Saved) -> tuple[list[Task], list[Task]]:
    """The tasks of the pending step with their stored results, and those of them that have finished."""
    results, _ = stored_results(saved)
    planned = plan(frame.plan, frame)
    handlers = handler_tasks(saved, planned)
    tasks = sorted([*planned, *handlers], key=lambda task: task.order)
    for task in tasks:
        task.writes = [(write.channel, write.value) for write in results.get(task.id, ())]
    handled = {task.origin for task in handlers if task.writes}
    return tasks, [task for task in tasks if task.writes or task in handled]


def _siblings(frame: Frame, saved: Saved, updates: Sequence[StateUpdate]) -> tuple[list[Task], bool]:
    """The finished tasks of the pending step that stay, because the updates stand in for other tasks of that step.

    And whether the step is whole: then its barrier met an error, which the update is there to mend.
    """
    tasks, finished = _pending(frame, saved)
    for_tasks = {update.task_id for update in updates}
    for_nodes = {_node_of(frame, update, len(updates)) for update in updates if update.task_id is None}
    if not any(task.id in for_tasks or task.name in for_nodes for task in tasks):
        return [], False
    open_nodes = {task.name for task in tasks if not task.writes}
    replaced = for_nodes - open_nodes
    return [task for task in finished if task.id not in for_tasks and task.name not in replaced], not open_nodes


def _agreeing(frame: Frame, siblings: Sequence[Task], updates: Sequence[Input]) -> Sequence[Task]:
    """The siblings of a step that could not be applied, without the single values that an update writes in their place.

    All else that they did stays: what they wrote to other keys, and where they lead.
    """
    written = {channel for update in updates for channel, _ in update.writes}
    single = {channel for channel in written if isinstance(frame.plan.channels.get(channel), LastValue)}
    for task in siblings:
        task.writes = [write for write in task.writes if write[0] not in single]
    return siblings


def _clear(frame: Frame, saved: Saved | None, step: Step) -> Step:
    """Fold in what is finished and give up every pending task."""
    if saved is not None:
        _apply_outside(frame, saved)
        keys = set(frame.plan.channels) - set(frame.plan.trigger_to_nodes) - {TASKS}
        tasks, _ = _pending(frame, saved)
        for task in tasks:
            task.writes = [(channel, value) for channel, value in task.writes if channel in keys]
        if tasks:
            frame.note(apply(frame.plan, frame.state, tasks))
    _commit(frame, step, ((), ()), "update")
    return step


def _copy(frame: Frame, saved: Saved | None, update: StateUpdate, step: Step) -> Flow[Step]:
    """A sibling of the addressed checkpoint that says the same; with items, then those updates on top of it."""
    if saved is None:
        raise InvalidUpdateError("Cannot copy a checkpoint that does not exist.", fix="Address one that does.")
    state = frame.state
    woken = state.updated
    state.checkpoint, frame.stored = saved.parent or "", saved.parent is not None
    commit(frame, step, ((), ()), "fork", [])
    state.updated = woken
    items = [StateUpdate(*item) for item in update.values] if isinstance(update.values, list) else []
    if items:
        finished = []
        for item in items:
            name = _node_of(frame, item, len(items))
            writes, step = yield from _written(frame, name, item.values, step)
            finished.append(Input(writes, name, frame.plan.triggers[name]))
            _show(frame, step, name, item, writes, len(finished))
        _commit(frame, step, apply(frame.plan, state, finished), "update")
    return step
