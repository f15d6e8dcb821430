"""What a node can reach while it runs: its config, its runtime, its questions, its stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pregel.config import RunnableConfig
from pregel.engine.ids import idempotency_key, interrupt_id
from pregel.engine.task import Task
from pregel.errors import GraphInterrupt, InternalError
from pregel.runtime import ExecutionInfo, Runtime
from pregel.types import Interrupt


class Running:
    """One attempt of a task, as `config.current_task` holds it."""

    asked: tuple[Interrupt, ...] = ()
    closed = False
    _counts: dict[str, int] | None = None  # what this attempt has asked for, by kind
    _made: dict[str, Any] | None = None  # config and runtime, made when first asked for

    def __init__(self, task: Task) -> None:
        self.task = task
        self.writes: list[tuple[str, Any]] = []

    def count(self, kind: str) -> int:
        """How many of a kind this attempt has asked for before."""
        counts = self._counts = self._counts or {}
        counts[kind] = counts.get(kind, -1) + 1
        return counts[kind]

    def ask(self, value: Any, response_schema: Any = None) -> Any:
        """The answer to the next question of this task; raises GraphInterrupt when there is none yet."""
        id = interrupt_id(self.task.id, "", self.count("question"))
        if id in self.task.answers:
            return self.task.answers[id]
        question = Interrupt(value, id, response_schema=response_schema)
        self.asked = (*self.asked, question)
        raise GraphInterrupt((question,))

    def give(self, kind: str) -> Any:
        """The value for an injected parameter."""
        return _GIVEN[kind](self)

    def fresh_values(self, channels: tuple[str, ...]) -> dict[str, Any]:
        """The available values of channels, with what this task wrote so far on top."""
        return self.task.frame.state.fresh(channels, self.writes)

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

    @property
    def config(self) -> RunnableConfig:
        """The config of this task, made when it is first asked for."""
        made = self._made = self._made or {}
        if "config" not in made:
            made["config"] = task_config(self.task)
        return made["config"]  # type: ignore[no-any-return]

    @property
    def runtime(self) -> Runtime[Any]:
        """The runtime of this task, made when it is first asked for."""
        made = self._made = self._made or {}
        if "runtime" not in made:
            made["runtime"] = self._make_runtime()
        return made["runtime"]  # type: ignore[no-any-return]

    def _make_runtime(self) -> Runtime[Any]:
        task, run = self.task, self.task.frame.run
        return Runtime(
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

    def _next_key(self) -> str:
        task = self.task
        thread = task.frame.run.thread or task.frame.state.checkpoint
        return idempotency_key(thread, task.frame.state.lineage, task.path_text, self.count("key"))


_GIVEN: dict[str, Callable[[Running], Any]] = {
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
