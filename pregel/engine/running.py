"""What a node can reach while it runs: its config, its runtime, its questions, its stream."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import ref

from pregel.config import RunnableConfig, merge_configs, question_scope, scoped
from pregel.engine.ids import TICKS, Lineage, idempotency_key, interrupt_id
from pregel.engine.spoken import about, speaker
from pregel.engine.state import hand_out
from pregel.errors import CallWithdrawn, GraphInterrupt, InternalError, InvalidUpdateError, NodeError, NodeTimeoutError
from pregel.runtime import ExecutionInfo, Runtime, ServerInfo
from pregel.types import Interrupt

if TYPE_CHECKING:
    from pregel.engine.clock import Clock
    from pregel.engine.frame import Frame
    from pregel.engine.future import CallFuture
    from pregel.engine.node import PregelNode
    from pregel.engine.task import Tries
    from pregel.waits import Wait


_ASKING = Lock()

PREVIOUS = "__previous__"
"""The channel that hands something from one run of an entrypoint to the next."""


class Running:
    """The side of a Task that its node's code sees: `config.current_task` holds it."""

    frame: Frame
    name: str
    node: PregelNode
    path: tuple[Any, ...]
    triggers: Sequence[str]
    step: int
    checkpoint: str
    tries: Tries | None = None  # what came before this attempt
    began = 0.0  # unix seconds of the first attempt in this run; 0 where nobody counts
    clock: Clock | None = None
    error: NodeError | None = None  # what this task, an error handler's, is to handle
    answers: Mapping[str, Any] = {}
    writes: list[tuple[str, Any]] = []

    parent: Running | None = None  # the task that calls this one, if it is a call
    outside = False  # it writes what an update from outside gives; its node does not run
    asked: tuple[Interrupt, ...] = ()
    asleep: tuple[Interrupt, ...] = ()  # what it waits for still, so that it does not run
    closed = False
    went_on = False  # this attempt has come to something that was not recorded before
    met: set[str] | None = None  # what it has come to of what was: keys of values, paths of calls
    ahead: set[str] | None = None  # what of that is left, once somebody has asked
    owed: Sequence[ref[CallFuture[Any]]] = ()  # calls that had ended, whose results it may still take
    _counts: dict[str, int] | None = None  # what this attempt has asked for, by kind
    _made: dict[str, Any] | None = None  # config and runtime, made when first asked for

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1: one more than deaths and failures before it."""
        return 1 if self.tries is None else 1 + self.tries.deliveries + self.tries.failures

    @property
    def id(self) -> str:
        """The task id."""
        raise NotImplementedError

    @property
    def ns(self) -> str:
        """The namespace of what runs inside this task."""
        raise NotImplementedError

    @property
    def path_text(self) -> str:
        """The path as text."""
        raise NotImplementedError

    def count(self, kind: str) -> int:
        """How many of a kind this attempt has asked for before."""
        counts = self._counts = self._counts or {}
        counts[kind] = counts.get(kind, -1) + 1
        return counts[kind]

    @property
    def come_to(self) -> int:
        """How many answers and values of steps this attempt has had."""
        return sum(last + 1 for kind, last in (self._counts or {}).items() if kind.startswith(("question ", "step")))

    def question_id(self, scope: str, index: int) -> str:
        """The id of the question that this attempt asks in a scope after `index` others."""
        return interrupt_id(self.id, scope, index)

    def ask(self, value: Any, response_schema: Any = None) -> Any:
        """The answer to the next question of this task; raises GraphInterrupt when there is none yet."""
        scope = question_scope.get()
        with _ASKING:  # parts of a task may ask from several threads
            id = self.question_id(scope, self.count(f"question {scope}"))
            if response_schema is not None:
                return self._ask_typed(id, value, response_schema)
            if id in self.answers:
                return self.answers[id]
            raise self.asks(Interrupt(value, id))

    def wait(self, made: Callable[[float], Wait]) -> Any:
        """What came of the next wait of this task; raises GraphInterrupt when it is not over."""
        return self.waited(made)[1]

    def work(self, name: str, version: str, input: Any) -> Any:
        """What came of work that is done elsewhere; raises GraphInterrupt when it is not done."""
        from pregel.engine.items import work_of

        return work_of(self, name, version, input)  # type: ignore[arg-type]  # what runs is a Task

    def waited(self, made: Callable[[float], Wait]) -> tuple[str, Any]:
        """The id of the next wait of this task, and what came of it; raises GraphInterrupt when it is not over."""
        from pregel.engine.waiting import wait_of

        scope = question_scope.get()
        with _ASKING:
            id = self.question_id(scope, self.count(f"question {scope}"))
            if id in self.answers:
                return id, self.answers[id]
            raise self.asks(Interrupt(wait_of(self, id, made), id))

    def _ask_typed(self, id: str, value: Any, schema: Any) -> Any:
        from pregel.engine.pydantic_answers import json_schema, remember, validated

        if id in self.answers:
            return validated(self.answers[id], schema, id)
        remember(id, schema)
        raise self.asks(Interrupt(value, id, response_schema=json_schema(schema)))

    def asks(self, question: Interrupt) -> GraphInterrupt:
        """Note a question that has no answer; what to raise."""
        self.asked = (*self.asked, question)
        self.goes_on()
        return GraphInterrupt((question,))

    def give(self, kind: str) -> Any:
        """The value for an injected parameter."""
        return _GIVEN[kind](self)

    def fresh_values(self, channels: tuple[str, ...]) -> dict[str, Any]:
        """The available values of channels, with what this task wrote so far on top."""
        return self.frame.state.fresh(channels, self.writes)

    def write(self, channel: str, value: Any) -> None:
        """Write to a channel beside what the node returns: it counts, and is given up, with the node's own writes."""
        if channel not in self.frame.plan.channels:
            raise InvalidUpdateError(
                f"Node {self.name!r} wrote to {channel!r}, which is no key of its graph's state.",
                fix="Add the key to the state schema.",
                node=self.name,
                channel=channel,
            )
        if self.closed:
            raise InternalError("A node wrote after it had ended.", fix="Write only while the node runs.")
        self.writes.append((channel, value))

    def state_values(self) -> dict[str, Any]:
        """The available values of all keys of the graph's state."""
        keys = self.frame.graph.stream_keys
        return self.fresh_values((keys,) if isinstance(keys, str) else keys)

    def managed_values(self, managed: Mapping[str, Any]) -> dict[str, Any]:
        """What managed values are at this step."""
        return {key: value.get(self.frame.state) for key, value in managed.items()}

    def write_chunk(self, chunk: Any) -> None:
        """Stream a value in mode ``custom``; nothing when nobody listens, InternalError after the attempt is over."""
        if self.closed:
            raise InternalError("A node streamed after it had ended.", fix="Stream only while the node runs.")
        if self.is_watched:
            self.touch()
        if self.listens("custom"):
            self.frame.run.post((self.frame.ns, "custom", chunk), self)

    def listens(self, mode: str) -> bool:
        """Whether what this task shows in a mode reaches anybody."""
        return mode in self.frame.shows

    def show(self, mode: str, data: Any) -> None:
        """Show something in a mode that `listens`; what comes after the attempt is over is dropped."""
        if not self.closed:
            if self.is_watched:
                self.touch()
            self.frame.run.post((self.frame.ns, mode, data), self)

    def push_message(self, message: Any, channel: str | None) -> None:
        """Show a message at once in mode ``messages``, after writing it to a channel, if one is given."""
        if channel is not None:
            self.write(channel, message)
        elif self.closed:
            raise InternalError("A node pushed a message after it had ended.", fix="Push only while the node runs.")
        if self.listens("messages"):
            self.frame.run.spoken.add(message.id)
            self.show("messages", (message, about(self)))

    def token_sink(self, tags: Sequence[str], metadata: Mapping[str, Any] | None) -> Callable[[Any], None] | None:
        """Where a model call inside this task reports its chunks; None when nobody listens."""
        return speaker(self, tags, metadata) if self.listens("messages") else None

    def heartbeat(self) -> None:
        """Say that this attempt is alive, and let a blocking node end: NodeTimeoutError when it was given up,
        CallWithdrawn when its run makes way.
        """
        if self.closed:
            raise NodeTimeoutError(f"This attempt of node {self.name!r} was given up.", node=self.name, step=self.step)
        self.make_way()
        self.touch(beat=True)

    def make_way(self) -> None:
        """Raise CallWithdrawn, which no `except Exception` catches, when another run has asked for the thread."""
        journal = self.frame.run.journal
        if journal is not None and journal.asked:
            raise CallWithdrawn()

    @property
    def is_watched(self) -> bool:
        """Whether this task, or one around it, may have a limit."""
        return self.clock is not None or self.frame.inside is not None or self.parent is not None

    def touch(self, *, beat: bool = False) -> None:
        """Something happened in this task: it, its callers, and the tasks around its graph, are not idle."""
        task: Running | None = self
        while task is not None:
            if task.clock is not None and (beat or task.clock.auto):
                task.clock.touch()
            task = task.frame.inside if task.parent is None else task.parent

    @property
    def config(self) -> RunnableConfig:
        """The config of this task, made when it is first asked for."""
        made = self._made = self._made or {}
        if "config" not in made:
            made["config"] = task_config(self)
        return made["config"]  # type: ignore[no-any-return]

    def configure(self, config: RunnableConfig) -> None:
        """Have its code see another config from here on."""
        self._made = {**(self._made or {}), "config": config}

    @property
    def runtime(self) -> Runtime[Any]:
        """The runtime of this task, made when it is first asked for."""
        made = self._made = self._made or {}
        if "runtime" not in made:
            made["runtime"] = self._make_runtime()
        return made["runtime"]  # type: ignore[no-any-return]

    def _make_runtime(self) -> Runtime[Any]:
        run = self.frame.run
        return Runtime(
            context=run.context,
            store=run.store,
            stream_writer=self.write_chunk,
            heartbeat=self.heartbeat,
            control=run.control,
            previous=self.previous,
            fence=run.journal.epoch if run.journal is not None else 0,
            execution_info=ExecutionInfo(
                checkpoint_id=self.checkpoint,
                checkpoint_ns=self.ns,
                task_id=self.id,
                thread_id=run.thread or None,
                run_id=str(run.config["run_id"]) if run.config.get("run_id") else None,
                node_attempt=self.attempt,
                node_first_attempt_time=self._first_tried(),
            ),
            server_info=_server_info(run.config),
            _key=self._next_key,
            _steps=self,
        )

    @property
    def previous(self) -> Any:
        """What the run before this one left for it (`entrypoint`); None when it left nothing."""
        state = self.frame.state
        if PREVIOUS not in state.plan.channels or not state.channels[PREVIOUS].is_available():
            return None
        return hand_out(state.channels[PREVIOUS].get())

    def recall(self, key: str) -> tuple[Any, ...]:
        """The value of a step of this task that was made before, in a tuple that is empty when there is none."""
        from pregel.engine.memos import memo

        key = scoped(key)
        known = memo(self, key)  # type: ignore[arg-type]  # what runs is a Task
        if known:
            self.count("step")
            self.meets(f"step {key}")
            return known
        self.goes_on()
        self.make_way()
        return known

    def keep(self, key: str, value: Any) -> CallFuture[Any]:
        """Have the value of a step stored; done when it is."""
        from pregel.engine.memos import noted

        self.count("step")
        return noted(self, scoped(key), value)  # type: ignore[arg-type]  # what runs is a Task

    def outcome(self, key: str) -> tuple[Any, ...]:
        """The result of an effect of this task that was recorded, in a tuple that is empty when there is none."""
        from pregel.engine.intents import outcome_of  # few nodes declare what they do outside

        key = scoped(key)
        known = outcome_of(self, key)  # type: ignore[arg-type]  # what runs is a Task
        if known:
            self.count("step")
            self.meets(f"effect {key}")
        else:
            self.goes_on()
            self.make_way()
        return known

    def begin(self, key: str, *, idempotent: bool) -> CallFuture[str]:
        """Have the intent of an effect stored; gives the key to offer once it is."""
        from pregel.engine.intents import begin

        return begin(self, scoped(key), idempotent=idempotent)  # type: ignore[arg-type]

    def come_out(self, key: str, value: Any) -> CallFuture[Any]:
        """Have the result of an effect stored; done when it is."""
        from pregel.engine.intents import come_out

        self.count("step")
        return come_out(self, scoped(key), value)  # type: ignore[arg-type]

    def withdraw(self, key: str, why: str) -> CallFuture[Any]:
        """Have it stored that an effect did not happen; done when it is."""
        from pregel.engine.intents import withdraw

        return withdraw(self, scoped(key), why)  # type: ignore[arg-type]

    def meets(self, recorded: str) -> None:
        """Note that this attempt has come to something recorded."""
        self.met = self.met or set()
        self.met.add(recorded)
        if self.ahead is not None:
            self.ahead.discard(recorded)

    def goes_on(self) -> None:
        """Note that it has come to something new; a part of it that asks for itself says nothing of the others."""
        if not question_scope.get():
            self.went_on = True

    @property
    def is_replaying(self) -> bool:
        """Whether this attempt goes over what was recorded of this task before, and has not come to its end."""
        if self.went_on:
            return False
        from pregel.engine.replaying import is_replaying  # few nodes ask

        return is_replaying(self)

    def _first_tried(self) -> float:
        first = self.tries.first if self.tries is not None else 0.0
        return first or self.began or self.frame.run.ids.clock() / TICKS

    @property
    def lineage(self) -> Lineage | bytes:
        """The work that led to this task; of a graph that stores nothing, and keeps none, it is made here."""
        frame = self.frame
        if frame.journal is not None:
            return frame.state.lineage
        around = None if frame.is_root else frame.inside
        before = frame.state.lineage if around is None else around.lineage_inside
        return Lineage(before, (str(self.step),))

    @property
    def lineage_inside(self) -> Lineage:
        """What a graph starts from that this task runs: its siblings do other work."""
        return Lineage(self.lineage, (self.path_text,))

    def _next_key(self) -> str:
        thread = self.frame.run.thread or self.frame.state.checkpoint
        scope = question_scope.get()
        nth = self.count(f"key {scope}") if scope else self.count("key")
        return idempotency_key(thread, self.lineage, self.path_text, scoped(f"key {nth}") if scope else nth)


_GIVEN: dict[str, Callable[[Running], Any]] = {
    "config": lambda running: running.config,
    "runtime": lambda running: running.runtime,
    "writer": lambda running: running.write_chunk,
    "store": lambda running: running.frame.run.store,
    "previous": lambda running: running.previous,
    "error": lambda running: running.error,
}


_TOLD = ("thread_id", "checkpoint_id", "checkpoint_ns", "task_id", "run_id", "assistant_id", "graph_id")


def told_of(config: RunnableConfig) -> dict[str, Any]:
    """What of a config's place stands in its metadata as well, for whoever traces."""
    place = config.get("configurable") or {}
    return {key: place[key] for key in _TOLD if place.get(key)}


def _server_info(config: RunnableConfig) -> ServerInfo | None:
    """The server that runs the graph, as its configurable keys say."""
    place = config.get("configurable") or {}
    assistant, graph = place.get("assistant_id"), place.get("graph_id")
    if not assistant and not graph:
        return None
    return ServerInfo(
        assistant_id=str(assistant or ""), graph_id=str(graph or ""), user=place.get("langgraph_auth_user")
    )


def task_config(task: Running) -> RunnableConfig:
    """The config that a node sees: the caller's, with the task's coordinates."""
    run, graph = task.frame.run, task.frame.graph
    base = run.config if task.frame.is_root or not graph.config else merge_configs(run.config, graph.config)
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
        "metadata": {**told_of(base), **base.get("metadata", {}), **place, **task.node.metadata},
        "configurable": {
            **base.get("configurable", {}),
            "checkpoint_ns": task.ns,
            "checkpoint_id": None,
            "__pregel_task_id": task.id,
        },
        "run_name": task.name,
        "recursion_limit": run.limit,
    }
