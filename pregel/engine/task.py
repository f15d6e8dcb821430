"""A task: one node, about to run in one superstep of one graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pregel.checkpoint.keys import PULL as PULL
from pregel.checkpoint.keys import TaskName, task_parts, uuid_of
from pregel.engine.running import Running
from pregel.engine.state import hand_out
from pregel.errors import NodeError
from pregel.types import CacheKey

if TYPE_CHECKING:
    from pregel.engine.frame import Frame
    from pregel.engine.future import CallFuture
    from pregel.engine.node import PregelNode

PUSH, HANDLER = "__pregel_push", "node_error_handler"
PULL_TEXT = f"~{PULL}, "
Path = tuple[Any, ...]


class Tries(NamedTuple):
    """How often a task was tried before: what the journal keeps of it.

    `deliveries`: how often a process died with it; `failures`: how often it failed and was to be tried again. Only
    failures use up the allowance of a retry policy. `first` is when it was first tried, in unix seconds, 0 if unknown;
    `error` is the last failure as text.
    """

    deliveries: int = 0
    failures: int = 0
    first: float = 0.0
    error: str = ""

    def delivered(self) -> Tries:
        """After one more death."""
        return self._replace(deliveries=self.deliveries + 1)

    def failed(self, error: str, first: float) -> Tries:
        """After one more failure."""
        return self._replace(failures=self.failures + 1, error=error, first=self.first or first)


class Task(Running):
    """One run of a node. A second attempt is another object with the same id."""

    # what most tasks have; kept on the class so that making a task stores little
    arg: Any = None
    phase = "run"  # enter and leave: the two ends of a subgraph task
    output: Any = None
    child: Frame | None = None
    call: CallFuture[Any] | None = None  # whose waiting thread may run this
    writes_stored = False  # they come from the journal, the task does not run
    handled = False  # it failed, and its error handler's task stands in for it
    cached = False  # its output comes from the cache, the node did not run
    cache_key: CacheKey | None = None  # where its output is cached, once its input is known
    origin: Task | None = None  # the failed task that this one, an error handler's, is for
    _id = ""
    _path_text = ""

    def __init__(self, frame: Frame, name: str, node: PregelNode, path: Path, triggers: Sequence[str]) -> None:
        self.frame = frame
        self.name = name
        self.node = node
        self.path = path
        self.triggers = triggers
        self.step = frame.state.step
        self.checkpoint = frame.state.checkpoint
        self.fresh = frame.tasks_fresh

    @property
    def id(self) -> str:
        """The task id, hashed when it is first needed."""
        if not self._id:
            self._id = uuid_of(self.parts)
        return self._id

    @property
    def key(self) -> TaskName:
        """The id for a record: hashed where nobody asked for it yet."""
        return self._id or self.parts

    @property
    def parts(self) -> tuple[str, ...]:
        """What the id is the hash of."""
        kind = self.path[0]
        if self.origin is not None:
            parts: Sequence[str] = (HANDLER, self.origin.id)
        else:
            parts = self.triggers if kind == PULL else (str(self.path[1]),)
        return task_parts(self.checkpoint, self.frame.ns, self.step, self.name, kind, *parts)

    @property
    def path_text(self) -> str:
        """The path as text, made when it is first needed."""
        if not self._path_text:
            self._path_text = PULL_TEXT + self.name if self.path[0] == PULL else _pushed_text(self.path)
        return self._path_text

    @property
    def ns(self) -> str:
        """The namespace of what runs inside this task."""
        own = f"{self.name}:{self.id}"
        return f"{self.frame.ns}|{own}" if self.frame.ns else own

    @property
    def order(self) -> tuple[Any, ...]:
        """Where its writes stand: pulled nodes by name, then Sends by index; an error handler's behind its node's."""
        return self.path if self.origin is None else (*self.origin.path, HANDLER)

    def again(self) -> Task:
        """The next attempt."""
        task = Task(self.frame, self.name, self.node, self.path, self.triggers)
        task._id, task.arg, task.answers, task.tries = self._id, self.arg, self.answers, self.tries
        task.step, task.checkpoint, task.fresh = self.step, self.checkpoint, False
        task.origin, task.error, task.began = self.origin, self.error, self.began
        return task

    def read(self) -> Any:
        """The node's input: the Send's argument as it is, one channel's value, or a dict of channels."""
        if self.path[0] == PUSH and (self.origin is None or self.origin.path[0] == PUSH):
            return hand_out(self.arg)
        node, state = self.node, self.frame.state
        if isinstance(node.channels, str):
            return hand_out(state.channels[node.channels].get())
        values = state.read(node.keys)
        if node.managed:
            for key, managed in node.managed.items():
                values[key] = managed.get(state)
        return values if node.mapper is None else node.mapper(values)


def handling(failed: Task, error: BaseException) -> Task:
    """The task of a failed task's error handler: it runs in the same step and gets the same input."""
    name = failed.node.error_handler
    assert name is not None
    path = (PUSH, failed.path, HANDLER, False)
    task = Task(failed.frame, name, failed.frame.plan.nodes[name], path, ())
    task.step, task.checkpoint, task.answers = failed.step, failed.checkpoint, failed.frame.answers
    task.origin, task.error, task.arg = failed, NodeError(failed.name, error), failed.arg
    return task


def _pushed_text(path: Path) -> str:
    """The text of a path that is mostly that of a Send, which is spelled out here."""
    if len(path) == 3 and type(path[1]) is int:
        return f"~{path[0]}, {path[1]:010d}, {path[2]}"
    return path_text(path)


def path_text(path: Path) -> str:
    """A path as text that sorts like the path: ``~__pregel_push, 0000000003, False``."""
    parts = (path_text(p) if isinstance(p, tuple) else f"{p:010d}" if type(p) is int else str(p) for p in path)
    return "~" + ", ".join(parts)
