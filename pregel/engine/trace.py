"""What modes ``tasks``, ``checkpoints`` and ``debug`` show: how each task starts and ends, and each checkpoint.

`debug` wraps what the other two show in its step, its kind and a time. A frame that shows none of the three never comes
here: `Frame.traced` says so once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.records import ERROR, INTERRUPT, Lone, Save, Saved, Write
from pregel.config import RunnableConfig
from pregel.engine.show import state_values, visible
from pregel.types import Interrupt, PregelTask

if TYPE_CHECKING:
    from pregel.engine.effects import Step
    from pregel.engine.frame import Frame
    from pregel.engine.task import Task

TRACES = frozenset(("tasks", "checkpoints", "debug"))
_UNIX_START = datetime(1970, 1, 1, tzinfo=UTC)


def show_starts(frame: Frame, step: Step, tasks: Iterable[Task]) -> None:
    """Every task of a superstep, also those whose results are stored already; an error handler's starts unseen."""
    for task in tasks:
        if task.name not in frame.plan.hidden and task.origin is None:
            started = {"id": task.id, "name": task.name, "input": _input(task), "triggers": tuple(task.triggers)}
            if metadata := _metadata(task):
                started["metadata"] = metadata
            _emit(frame, step, "tasks", "task", frame.state.step, started)


def show_end(
    frame: Frame,
    step: Step,
    task: Task,
    *,
    result: dict[str, Any] | None = None,
    error: BaseException | None = None,
    asked: Sequence[Interrupt] = (),
) -> None:
    """What a task that ran came to."""
    if task.name in frame.plan.hidden:
        return
    failed = error is not None or asked
    ended = {
        "id": task.id,
        "name": task.name,
        "error": error,
        "result": {} if failed else _by_key(frame, task) if result is None else result,
        "interrupts": [as_dict(question) for question in asked],
    }
    _emit(frame, step, "tasks", "task_result", frame.state.step, ended)


def _by_key(frame: Frame, task: Task) -> Any:
    """What a task wrote, by key also where only one key is shown."""
    keys = frame.stream_keys
    return _joined(visible((keys,) if isinstance(keys, str) else keys, task.writes))


def show_checkpoint(frame: Frame, step: Step, tasks: Iterable[Task], saved: Saved | None) -> None:
    """The checkpoint that the next tasks start from: the one this step saves, or the one that was loaded."""
    if frame.journal is None or frame.shows.isdisjoint(("checkpoints", "debug")):
        return
    made = next((save for save in reversed(step.saves) if save.ns == frame.ns), None)
    at: Save | Lone | Saved | None = made if made is not None else saved
    if at is None or at.id == frame.traced_id:
        return
    frame.traced_id = at.id
    parent = _stored_parent(frame, step, at.parent)
    metadata = {**frame.metadata, **at.metadata, "source": at.source, "step": at.step}
    writes = saved.writes if made is None and saved is not None else ()
    tasks = list(tasks)
    shown = {
        "config": _config(frame, at.id),
        "parent_config": _config(frame, parent) if parent else None,
        "values": state_values(frame, frame.stream_keys),
        "metadata": metadata,
        "next": [task.name for task in tasks],
        "tasks": [_pending(frame, writes, task) for task in tasks],
    }
    _emit(frame, step, "checkpoints", "checkpoint", at.step, shown)


def _stored_parent(frame: Frame, step: Step, parent: str | None) -> str | None:
    """What a checkpoint hangs on when it is stored: of those that a run in ``exit`` mode makes only the last one is."""
    journal = frame.journal
    if journal is None or journal.durability != "exit":
        return parent
    held = journal.held_saves.get(frame.ns)
    made = [save for save in step.saves if save.ns == frame.ns] + ([] if held is None else [held])
    parents = {save.id: save.parent for save in made}
    while parent is not None and parent in parents:
        parent = parents[parent]
    return parent


def _emit(frame: Frame, step: Step, mode: str, kind: str, number: int, payload: dict[str, Any]) -> None:
    if mode in frame.shows:
        step.emit.append((frame.ns, mode, payload))
    if "debug" in frame.shows:
        moment = _UNIX_START + timedelta(microseconds=frame.run.ids.clock() / 10)
        event = {"step": number, "timestamp": moment.isoformat(), "type": kind, "payload": payload}
        step.emit.append((frame.ns, "debug", event))


def _input(task: Task) -> Any:
    """What the node is given; the plain values where its own schema refuses them, which the task will say."""
    try:
        return task.read()
    except Exception:
        return task.frame.state.read(task.node.keys)


def _metadata(task: Task) -> dict[str, Any]:
    """What the caller and the node's definition attached to it."""
    config = task.frame.run.config
    shown = {**config.get("metadata", {}), **task.node.metadata}
    tags = [*config.get("tags", []), *task.node.tags]
    return {**shown, "tags": tags} if tags else shown


def _config(frame: Frame, checkpoint: str) -> RunnableConfig:
    """The config that addresses a checkpoint of this frame, with what the caller configured."""
    own = {k: v for k, v in frame.run.config.get("configurable", {}).items() if not k.startswith("__pregel_")}
    place = {**own, "thread_id": frame.run.thread, "checkpoint_ns": frame.ns, "checkpoint_id": checkpoint}
    if frame.ns:
        place["checkpoint_map"] = {**frame.parents, frame.ns: checkpoint}
    return {"configurable": place}


def _pending(frame: Frame, writes: Iterable[Write], task: Task) -> dict[str, Any]:
    """A task as the event of a checkpoint lists it: failed, finished or yet to run."""
    graph = task.node.subgraph
    state = None
    if graph is not None and graph.checkpointer is not False:
        state = {"configurable": {"thread_id": frame.run.thread, "checkpoint_ns": task.ns}}
    stored = [write for write in writes if write.task == task.id]
    shown = shown_task(frame, stored, task, {}, state)
    base: dict[str, Any] = {"id": task.id, "name": task.name}
    if shown.error is not None:
        return {**base, "error": shown.error, "state": state}
    if any(write.idx >= 0 for write in stored):
        base["result"] = task_result(frame, task, [(write.channel, write.value) for write in stored if write.idx >= 0])
    return {**base, "interrupts": tuple(as_dict(question) for question in shown.interrupts), "state": state}


def shown_task(
    frame: Frame, stored: Iterable[Write], task: Task, answered: Mapping[str, Any], state: Any
) -> PregelTask:
    """A task with what is stored of it: its error, the questions that have no answer yet, its result."""
    error: Any = None
    questions: list[Interrupt] = []
    for write in stored:
        if write.task == task.id:
            if write.channel == ERROR:
                error = write.value
            elif write.channel == INTERRUPT:
                questions = [question for question in write.value if question.id not in answered]
    result = task_result(frame, task) if task.writes_stored else None
    return PregelTask(task.id, task.name, task.path, error, tuple(questions), state, result)


def task_result(frame: Frame, task: Task, writes: Sequence[tuple[str, Any]] | None = None) -> Any:
    """What a task wrote, by key: ``{}`` for nothing, several writes of a key as ``{"$writes": [...]}``."""
    result = visible(frame.stream_keys, task.writes if writes is None else writes)
    if isinstance(frame.stream_keys, str):
        return {} if result is None else result
    return _joined(result)


def _joined(pieces: list[dict[str, Any]] | dict[str, Any] | None) -> dict[str, Any]:
    if not isinstance(pieces, list):
        return pieces or {}
    found: dict[str, list[Any]] = {}
    for piece in pieces:
        for key, value in piece.items():
            found.setdefault(key, []).append(value)
    return {key: values[0] if len(values) == 1 else {"$writes": values} for key, values in found.items()}


def as_dict(question: Interrupt) -> dict[str, Any]:
    """A question as plain data."""
    return {"value": question.value, "id": question.id, "response_schema": question.response_schema}
