"""What mode ``messages`` shows: token chunks as models report them, and whole messages that nodes return, each once.

1. A message that shows is known by its id for the rest of the run: a node that returns what its model has streamed, or
   what it was given, shows nothing again.
2. A message is shown as it is and never changed: one without an id gets its id from the reducer, later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pregel.constants import TAG_NOSTREAM
from pregel.tokens import is_message

if TYPE_CHECKING:
    from pregel.engine.effects import Step
    from pregel.engine.frame import Frame
    from pregel.engine.running import Running
    from pregel.engine.task import Task


WHOLE = frozenset(
    ("__root__", "__end__", "__return__")
)  # channels that take all that a node gives, others one key of it


def note_inputs(frame: Frame, tasks: Iterable[Task]) -> None:
    """The messages that tasks are given are known already."""
    for task in tasks:
        if task.path[0] == "__pregel_push":
            given: Any = task.arg
        elif isinstance(task.node.channels, str):
            given = frame.state.channels[task.node.channels].get()
        else:
            given = frame.state.view(task.node.keys).values
        for message in _messages(given):
            frame.run.spoken.add(message.id)


def show_messages(frame: Frame, step: Step, task: Task) -> None:
    """The messages among a task's writes that nobody has seen yet."""
    spoken = frame.run.spoken
    inside = task.node.subgraph is not None and frame.run.subgraphs  # they showed in the subgraph that wrote them
    metadata: dict[str, Any] | None = None
    for channel, value in task.writes:
        for message in _messages(value) if channel in WHOLE else _listed(value):
            if message.id is not None and message.id in spoken:
                continue
            spoken.add(message.id)
            if not inside:
                metadata = metadata or about(task)
                step.emit.append((frame.ns, "messages", (message, metadata)))


def _messages(value: Any) -> Iterator[Any]:
    """The messages in what a node was given or gave: itself, its items, or the same for the values of a dict."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _listed(inner)
    else:
        yield from _listed(value)


def _listed(value: Any) -> Iterator[Any]:
    if is_message(value):
        yield value
    elif isinstance(value, list | tuple):
        yield from (item for item in value if is_message(item))


def about(task: Running, tags: Sequence[str] = (), metadata: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Where a message comes from: the node, its step, trigger, path and namespace, and what the caller attached."""
    config = task.config
    shown = {**config["metadata"], **(metadata or {})}
    if task.frame.run.thread:
        shown.setdefault("thread_id", task.frame.run.thread)
    all_tags = list(dict.fromkeys([*config["tags"], *tags]))
    return {**shown, "tags": all_tags} if all_tags else shown


def speaker(task: Running, tags: Sequence[str], metadata: Mapping[str, Any] | None) -> Callable[[Any], None] | None:
    """What a model call inside a task reports to; None when nobody listens."""
    if not task.listens("messages") or TAG_NOSTREAM in (*tags, *task.config["tags"]):
        return None
    return Speaker(task, about(task, tags, {"checkpoint_ns": task.ns, **(metadata or {})}))


class Speaker:
    """One model call that reports what it produces."""

    __slots__ = ("metadata", "task")

    def __init__(self, task: Running, metadata: dict[str, Any]) -> None:
        self.task = task
        self.metadata = metadata

    def __call__(self, message: Any) -> None:
        spoken = self.task.frame.run.spoken
        if message.id is not None:
            if message.id in spoken and not type(message).__name__.endswith("Chunk"):
                return  # its chunks have shown
            spoken.add(message.id)
        self.task.show("messages", (message, self.metadata))
