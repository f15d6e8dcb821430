"""What a node can reach while it runs: its config, its runtime, its questions, its stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pregel.config import RunnableConfig
from pregel.engine.ids import idempotency_key, interrupt_id
from pregel.engine.task import Task, path_text
from pregel.errors import GraphInterrupt, InternalError
from pregel.runtime import ExecutionInfo, Runtime
from pregel.types import Interrupt


class Running:
    """One attempt of a task, as `config.current_task` holds it."""

    __slots__ = ("_config", "_runtime", "asked", "calls", "closed", "count", "keys", "task", "writes")

    def __init__(self, task: Task) -> None:
        self.task = task
        self.asked: list[Interrupt] = []
        self.count = 0
        self.keys = 0
        self.calls = 0
        self.writes: list[tuple[str, Any]] = []
        self.closed = False
        self._config: RunnableConfig | None = None
        self._runtime: Runtime[Any] | None = None

    def ask(self, value: Any, response_schema: Any = None) -> Any:
        """The answer to the next question of this task; raises GraphInterrupt when there is none yet."""
        id = interrupt_id(self.task.id, "", self.count)
        self.count += 1
        if id in self.task.answers:
            return self.task.answers[id]
        question = Interrupt(value, id, response_schema=response_schema)
        self.asked.append(question)
        raise GraphInterrupt((question,))

    def give(self, kind: str) -> Any:
        """The value for an injected parameter."""
        return _GIVEN[kind](self)

    def fresh_values(self, channels: Sequence[str]) -> dict[str, Any]:
        """The available values of channels, with what this task wrote so far on top."""
        return self.task.frame.state.fresh(tuple(channels), self.writes)

    def managed_values(self, managed: Mapping[str, Any]) -> dict[str, Any]:
        """What managed values are at this step."""
        return {key: value.get(self.task.frame.state) for key, value in managed.items()}

    def write_chunk(self, chunk: Any) -> None:
        """Stream a value in mode ``custom``; nothing when nobody listens, InternalError after the attempt is over."""
        if self.closed:
            raise InternalError("A node streamed after it had ended.", fix="Stream only while the node runs.")
        run = self.task.frame.run
        if "custom" in run.modes and (run.subgraphs or not self.task.frame.ns):
            run.post((self.task.frame.ns, "custom", chunk))

    def next_call(self) -> int:
        """How many graphs this task has called before."""
        self.calls += 1
        return self.calls - 1

    @property
    def config(self) -> RunnableConfig:
        """The config of this task, made when it is first asked for."""
        if self._config is None:
            self._config = task_config(self.task)
        return self._config

    @property
    def runtime(self) -> Runtime[Any]:
        """The runtime of this task, made when it is first asked for."""
        if self._runtime is None:
            task, run = self.task, self.task.frame.run
            self._runtime = Runtime(
                context=run.context,
                store=run.store,
                stream_writer=self.write_chunk,
                control=run.control,
                fence=run.journal.epoch if run.journal is not None else 0,
                execution_info=ExecutionInfo(
                    checkpoint_id=task.checkpoint,
                    checkpoint_ns=task.ns,
                    task_id=task.id,
                    thread_id=run.thread or None,
                    run_id=str(run.config["run_id"]) if run.config.get("run_id") else None,
                    node_attempt=task.attempt,
                ),
                _key=self._next_key,
            )
        return self._runtime

    def _next_key(self) -> str:
        task = self.task
        thread = task.frame.run.thread or task.frame.state.checkpoint
        key = idempotency_key(thread, task.frame.state.lineage, path_text(task.path), self.keys)
        self.keys += 1
        return key


_GIVEN = {
    "config": lambda running: running.config,
    "runtime": lambda running: running.runtime,
    "writer": lambda running: running.write_chunk,
    "store": lambda running: running.task.frame.run.store,
    "previous": lambda running: None,
    "error": lambda running: None,
}


def task_config(task: Task) -> RunnableConfig:
    """The config that a node sees: the caller's, with the task's coordinates."""
    run = task.frame.run
    base = run.config
    place = {
        "langgraph_step": task.step,
        "langgraph_node": task.name,
        "langgraph_triggers": tuple(task.triggers),
        "langgraph_path": task.path,
        "langgraph_checkpoint_ns": task.ns,
    }
    return {
        **base,
        "tags": [*base.get("tags", []), *task.node.tags],
        "metadata": {**base.get("metadata", {}), **place, **task.node.metadata},
        "configurable": {
            **base.get("configurable", {}),
            "checkpoint_ns": task.ns,
            "checkpoint_id": None,
            "__pregel_task_id": task.id,
        },
        "run_name": task.name,
        "recursion_limit": run.limit,
    }
