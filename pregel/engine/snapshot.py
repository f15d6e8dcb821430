"""A stored checkpoint as users see it: a StateSnapshot.

Two views. *Live* (no checkpoint id was given): results of finished tasks of the step are folded in, they are not
``next``, and only unanswered questions show. *Addressed* (a checkpoint id, and every history entry): the state as of
that checkpoint, all its tasks, all its questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pregel.channels import MISSING, BaseChannel, DeltaChannel
from pregel.channels.batches import Unfolded
from pregel.checkpoint.records import Saved, Write
from pregel.config import RunnableConfig
from pregel.engine.apply import Input, apply
from pregel.engine.frame import Frame
from pregel.engine.ids import NULL_TASK
from pregel.engine.nested import graphs_of, stable_namespace
from pregel.engine.plan import Plan, plan
from pregel.engine.resume import handler_tasks, restore, stored_results
from pregel.engine.show import state_values
from pregel.engine.state import Channels, State, hand_out
from pregel.engine.task import Task
from pregel.engine.trace import shown_task
from pregel.types import PregelTask, StateSnapshot

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel

_snapshot = partial(tuple.__new__, StateSnapshot)  # a third of the cost of calling the class
_task = partial(tuple.__new__, PregelTask)


def checkpoint_config(thread: str, ns: str, checkpoint: str | None) -> RunnableConfig:
    """The config that addresses a checkpoint."""
    configurable: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ns}
    if checkpoint is not None:
        configurable["checkpoint_id"] = checkpoint
    return {"configurable": configurable}


def empty_snapshot(config: RunnableConfig) -> StateSnapshot:
    """The snapshot of a thread that has no checkpoint."""
    return StateSnapshot({}, (), config, None, None, None, (), ())


def snapshot(
    graph: Pregel, thread: str, saved: Saved, *, live: bool, known: dict[str, Pregel | None] | None = None
) -> StateSnapshot:
    """The snapshot of a checkpoint. `known`: which graphs the nodes run, for several of one graph."""
    frame = Still(graph, saved)
    if live and saved.writes:
        frame.apply_outside(saved)
    tasks = coming = plan(frame.plan, frame)
    shown: Sequence[PregelTask] = ()
    if tasks:
        places = _Places(thread, {} if known is None else known)
        if saved.writes:
            shown, coming = _with_results(frame, saved, tasks, places, live)
        else:
            shown = [_task((task.id, task.name, task.path, None, (), places.inside(task), None)) for task in tasks]
    config = checkpoint_config(thread, saved.ns, saved.id)
    if saved.ns:
        config["configurable"]["checkpoint_map"] = {**saved.metadata.get("parents", {}), saved.ns: saved.id}
    return _snapshot(
        (
            frame.values(),
            tuple([task.name for task in coming]),
            config,
            saved.metadata,
            saved.created_at,
            checkpoint_config(thread, saved.ns, saved.parent) if saved.parent else None,
            tuple(shown),
            tuple([question for task in shown for question in task.interrupts]),
        )
    )


class Still(Frame):
    """A graph as it stood at a checkpoint: what planning and showing need of a frame. Nothing runs in it."""

    __slots__ = ()

    def __init__(self, graph: Pregel, saved: Saved) -> None:
        self.graph, self.plan, self.ns = graph, graph.plan, saved.ns
        self.stream_keys = graph.stream_keys
        self.tasks_fresh, self.answers = False, {}
        self.state = StillState(self.plan, saved)

    def moves(self, saved: Saved) -> None:
        """Take the whole state from the checkpoint, so that writes can be applied to it."""
        self.state = State(self.plan)
        restore(self, saved)

    def apply_outside(self, saved: Saved) -> None:
        """Bring in what a command wrote from outside and no checkpoint carries yet."""
        outside = [(write.channel, write.value) for write in saved.writes if write.task == NULL_TASK and write.idx >= 0]
        if outside:
            self.moves(saved)
            apply(self.plan, self.state, [Input(outside)])
            self.state.updated = None

    def values(self) -> Any:
        """What the state shows, for its receiver to keep."""
        channels, keys = self.state.channels, self.stream_keys
        if isinstance(keys, str):
            return state_values(self, keys)
        shown: dict[str, Any] = {}
        for key in keys:
            channel = channels[key]
            if channel.is_available():
                shown[key] = hand_out(channel.get())
        return shown


class StillState(State):
    """The state of a checkpoint that is looked at: each channel is made when it is asked for. Nothing changes it."""

    __slots__ = ()

    def __init__(self, plan: Plan, saved: Saved) -> None:
        self.plan = plan
        self.channels = StillChannels(plan.channels, saved.values)
        self.counters, self.seen, self.updated = saved.counters, saved.seen, saved.updated
        self.checkpoint, self.step = saved.id, saved.step + 1


class StillChannels(Channels):
    """The channels of a checkpoint."""

    __slots__ = ("stored",)

    def __init__(self, prototypes: Mapping[str, BaseChannel[Any, Any, Any]], stored: Mapping[str, Any]) -> None:
        self.prototypes, self.stored = prototypes, stored

    def __contains__(self, name: object) -> bool:
        return name in self.stored

    def __missing__(self, name: str) -> BaseChannel[Any, Any, Any]:
        value = self.stored.get(name, MISSING)
        if type(value) is Unfolded and not isinstance(self.prototypes[name], DeltaChannel):
            raise value.changed(name, "is no DeltaChannel now")
        channel = self[name] = self.prototypes[name].from_checkpoint(value)
        return channel


def _with_results(
    frame: Still, saved: Saved, tasks: list[Task], places: _Places, live: bool
) -> tuple[list[PregelTask], list[Task]]:
    """The tasks of a step with what is stored of them, and those that are next."""
    pending, answers = stored_results(saved, shown=not live)
    handlers = handler_tasks(saved, tasks)
    stored: dict[str, list[Write]] = {}
    for write in saved.writes:
        stored.setdefault(write.task, []).append(write)
    shown = []
    for task in (*tasks, *handlers):
        task.writes = [(write.channel, write.value) for write in pending.get(task.id, ())]
        task.writes_stored = task.id in pending
        answered = answers.get(task.id, {}) if live else {}
        shown.append(shown_task(frame, stored.get(task.id, ()), task, answered, places.inside(task)))
    if not live:
        return shown, tasks
    handled = [task.origin for task in handlers if task.writes_stored and task.origin is not None]
    finished = [*handled, *(task for task in (*tasks, *handlers) if task.writes_stored)]
    coming = [task for task in tasks if task not in finished]
    if finished:
        finished.sort(key=lambda task: task.order)
        if isinstance(frame.state, StillState):
            frame.moves(saved)
        try:
            apply(frame.plan, frame.state, finished)
            if not coming:  # the step is whole and was not applied: a resume does that, and goes on with these
                coming = plan(frame.plan, frame)
        except Exception:  # what the step's barrier met, or will meet: the state is as before it
            frame.moves(saved)
            frame.apply_outside(saved)
            coming = tasks
    return shown, coming


class _Places:
    """Where the states are of the graphs that tasks run."""

    __slots__ = ("known", "thread")

    def __init__(self, thread: str, known: dict[str, Pregel | None]) -> None:
        self.thread, self.known = thread, known

    def inside(self, task: Task) -> RunnableConfig | None:
        """The config of the state of the graph that a task runs; None when it runs none, or several."""
        name = task.name
        if name not in self.known:
            inside = graphs_of(task.node)
            self.known[name] = inside[0] if len(inside) == 1 else None  # of several that a node calls none is its state
        graph = self.known[name]
        if graph is None:
            return None
        ns = task.ns if task.node.subgraph is not None else f"{task.ns}|call:0"
        return checkpoint_config(self.thread, stable_namespace(ns) if graph.checkpointer is True else ns, None)
