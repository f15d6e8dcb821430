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
from pregel.channels.base import DeltaSnapshot
from pregel.channels.batches import Unfolded
from pregel.checkpoint.records import ERROR, ERROR_SOURCE, INTERRUPT, MEMO, RESUME, Saved, Write
from pregel.config import RunnableConfig
from pregel.engine.apply import Input, apply
from pregel.engine.frame import Frame
from pregel.engine.nested import graphs_of, stable_namespace
from pregel.engine.pending import handler_tasks, outside_of, rewinds_of
from pregel.engine.plan import plan
from pregel.engine.resume import restore
from pregel.engine.show import state_values
from pregel.engine.state import COPIERS, Channels, State
from pregel.engine.task import Task
from pregel.engine.trace import task_result
from pregel.types import Interrupt, PregelTask, StateSnapshot

if TYPE_CHECKING:
    from pregel.engine.node import PregelNode
    from pregel.engine.pregel import Pregel

FOLDED = frozenset((Unfolded, DeltaSnapshot))  # what a channel makes a value of
NO_ANSWERS: Mapping[str, Any] = {}

_snapshot = partial(tuple.__new__, StateSnapshot)  # a third of the cost of calling the class
_task = partial(tuple.__new__, PregelTask)


def checkpoint_config(thread: str, ns: str, checkpoint: str | None) -> RunnableConfig:
    """The config that addresses a checkpoint."""
    configurable: dict[str, Any] = {"thread_id": thread, "checkpoint_ns": ns}
    if checkpoint is not None:
        configurable["checkpoint_id"] = checkpoint
    return {"configurable": configurable}


def _address(thread: str, saved: Saved, id: str) -> RunnableConfig:
    """The config of a checkpoint, or of its parent, with where it hangs when it is a subgraph's."""
    if not saved.ns:
        return {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": id}}
    hangs = {**saved.metadata.get("parents", {}), saved.ns: id}
    place = {"thread_id": thread, "checkpoint_ns": saved.ns, "checkpoint_id": id, "checkpoint_map": hangs}
    return {"configurable": place}


def empty_snapshot(config: RunnableConfig) -> StateSnapshot:
    """The snapshot of a thread that has no checkpoint."""
    return StateSnapshot({}, (), config, None, None, None, (), ())


class Inside:
    """Which graphs the nodes of a look run, and where the states of these are."""

    __slots__ = ("_found", "_thread")

    def __init__(self, thread: str) -> None:
        self._thread = thread
        self._found: dict[int, tuple[PregelNode, Pregel | None]] = {}  # by the node's id, which is kept alive here

    def place(self, task: Task) -> RunnableConfig | None:
        """The config of the state of the graph that a task runs; None when it runs none, or several."""
        node = task.node
        if (found := self._found.get(id(node))) is None:
            graphs = graphs_of(node)  # of several that a node calls none is its state
            found = self._found[id(node)] = node, graphs[0] if len(graphs) == 1 else None
        graph = found[1]
        if graph is None:
            return None
        ns = task.ns if node.subgraph is not None else f"{task.ns}|call:0"
        return checkpoint_config(self._thread, stable_namespace(ns) if graph.checkpointer is True else ns, None)


def snapshot(graph: Pregel, thread: str, saved: Saved, inside: Inside, *, live: bool) -> StateSnapshot:
    """The snapshot of a checkpoint."""
    frame = Still(graph, saved)
    if live and saved.writes:
        frame.apply_outside(saved)
    tasks = coming = plan(frame.plan, frame)
    shown: list[PregelTask] = []
    asked: tuple[Interrupt, ...] = ()
    if tasks and saved.writes:
        shown, coming = _with_results(frame, saved, tasks, inside, live)
        asked = tuple([question for task in shown for question in task.interrupts])
    elif tasks:
        shown = [_task((task.id, task.name, task.path, None, (), inside.place(task), None)) for task in tasks]
    parent, metadata = saved.parent, saved.metadata
    if saved.writes and (rewinds := rewinds_of(saved)):
        metadata = {**metadata, "rewinds": rewinds}
    return _snapshot(
        (
            frame.values(saved),
            tuple([task.name for task in coming]) if coming else (),
            _address(thread, saved, saved.id),
            metadata,
            saved.created_at,
            _address(thread, saved, parent) if parent else None,
            tuple(shown),
            asked,
        )
    )


class Still(Frame):
    """A graph as it stood at a checkpoint: what planning and showing need of a frame. Nothing runs in it."""

    __slots__ = ()

    def __init__(self, graph: Pregel, saved: Saved) -> None:
        self.graph, self.ns, self.stream_keys = graph, saved.ns, graph.stream_keys
        self.tasks_fresh, self.answers = False, NO_ANSWERS
        self.plan = plan = graph.plan
        self.state = state = StillState.__new__(StillState)
        state.channels = channels = StillChannels()
        channels.prototypes, channels.stored = plan.channels, saved.values
        state.counters, state.seen, state.updated = saved.counters, saved.seen, saved.updated
        state.checkpoint, state.step = saved.id, saved.step + 1

    def moves(self, saved: Saved) -> None:
        """Take the whole state from the checkpoint, so that writes can be applied to it."""
        self.state = State(self.plan)
        restore(self, saved)

    def apply_outside(self, saved: Saved) -> None:
        """Bring in what a command wrote from outside and no checkpoint carries yet."""
        outside = outside_of(saved)
        if outside:
            self.moves(saved)
            apply(self.plan, self.state, [Input(outside)])
            self.state.updated = None

    def values(self, saved: Saved) -> Any:
        """What the state shows, for its receiver to keep."""
        keys, state = self.stream_keys, self.state
        if isinstance(keys, str):
            return state_values(self, keys)
        stored = saved.values if isinstance(state, StillState) else {}
        prototypes, shown = self.plan.channels, dict[str, Any]()
        for key in keys:
            if key in stored and prototypes[key].bare and type(value := stored[key]) not in FOLDED:
                pass  # there is no need to make the channel
            elif state.channels[key].is_available():
                value = state.channels[key].get()
            else:
                continue
            copier = COPIERS.get(type(value))
            shown[key] = value if copier is None else copier(value)
        return shown


class StillState(State):
    """The state of a checkpoint that is looked at: each channel is made when it is asked for. Nothing changes it."""

    __slots__ = ()


class StillChannels(Channels):
    """The channels of a checkpoint."""

    __slots__ = ("stored",)

    prototypes: Mapping[str, BaseChannel[Any, Any, Any]]
    stored: Mapping[str, Any]

    def __init__(self) -> None:
        """Empty; the two mappings are for the maker to fill."""

    def __contains__(self, name: object) -> bool:
        return name in self.stored

    def __missing__(self, name: str) -> BaseChannel[Any, Any, Any]:
        value = self.stored.get(name, MISSING)
        if type(value) is Unfolded and not isinstance(self.prototypes[name], DeltaChannel):
            raise value.changed(name, "is no DeltaChannel now")
        channel = self[name] = self.prototypes[name].from_checkpoint(value)
        return channel


def _with_results(
    frame: Still, saved: Saved, tasks: list[Task], inside: Inside, live: bool
) -> tuple[list[PregelTask], list[Task]]:
    """The tasks of a step with what is stored of them, and those that are next."""
    stored: dict[str, list[Write]] = {}
    every, handlers = tasks, list[Task]()
    for write in saved.writes:
        if write.task in stored:
            stored[write.task].append(write)
        else:
            stored[write.task] = [write]
        if write.channel == ERROR_SOURCE and not handlers:
            handlers = handler_tasks(saved, tasks)
            every = [*tasks, *handlers]
    shown = [_shown(frame, task, stored, inside, live) for task in every]
    if not live:
        return shown, tasks
    finished = [task.origin for task in handlers if task.writes_stored and task.origin is not None]
    finished += [task for task in every if task.writes_stored]
    return shown, _coming(frame, saved, tasks, finished) if finished else tasks


def _shown(frame: Still, task: Task, stored: Mapping[str, Sequence[Write]], inside: Inside, live: bool) -> PregelTask:
    """A task with what is stored of it: its error, its result, its questions (in a live view those without answers)."""
    id = task.id
    error: Any = None
    questions: Sequence[Interrupt] = ()
    answered: Mapping[str, Any] = {}
    writes = []
    for write in stored.get(id, ()):
        channel = write.channel
        if write.idx >= 0 or channel == MEMO:
            if not live or write.child is None:  # an update left it for display: a later checkpoint has it
                writes.append((channel, write.value))
        elif channel == ERROR:
            error = write.value
        elif channel == INTERRUPT:
            questions = write.value
        elif channel == RESUME and live:
            answered = write.value
    result = None
    if writes:
        task.writes, task.writes_stored = writes, True
        result = task_result(frame, task)
    asked = tuple([question for question in questions if question.id not in answered]) if questions else ()
    return _task((id, task.name, task.path, error, asked, inside.place(task), result))


def _coming(frame: Still, saved: Saved, tasks: list[Task], finished: list[Task]) -> list[Task]:
    """What is next once the finished tasks of a step are applied to the state, which they are."""
    done = set(finished)
    coming = [task for task in tasks if task not in done]
    finished.sort(key=lambda task: task.order)
    if isinstance(frame.state, StillState):
        frame.moves(saved)
    try:
        apply(frame.plan, frame.state, finished)
        # a step that is whole and was not applied: a resume does that, and goes on with what comes then
        return coming or plan(frame.plan, frame)
    except Exception:  # what the step's barrier met, or will meet: the state is as before it
        frame.moves(saved)
        frame.apply_outside(saved)
        return tasks
