"""Nodes whose code runs on an executor of the user's: other processes, a cluster, another durable engine.

1. What goes there is a `Work`: the code, its input, and what of the run it may know. What comes back is an `Outcome`.
   Everything else stays here: what is due, what is stored, what is tried again. The executor tries nothing again.
2. A work's `key` is the same whenever this node offers it, after a crash and in each attempt, so an engine that keeps
   the outcomes without an error by it does nothing twice. With one answer more it is other work.
3. There, a node has its input, config, context, answers, error and keys for outside effects. Whatever else it asks of
   its run is an OutsideRunError, and so is a call of a task or a graph.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol

from pregel.config import RunnableConfig, current_task, question_scope, scoped
from pregel.engine.body import without_our_frames
from pregel.engine.calls import CallTask
from pregel.engine.ids import TICKS, idempotency_key, interrupt_id
from pregel.engine.node import PregelNode
from pregel.engine.running import Running
from pregel.engine.waiting import wait_of
from pregel.errors import ContinueAsNew, DefinitionError, GraphInterrupt, NodeError, OutsideRunError, WorkFailedError
from pregel.runnable import Runnable
from pregel.runtime import Runtime
from pregel.types import Interrupt
from pregel.waits import Wait

if TYPE_CHECKING:
    from concurrent.futures import Future

    from pregel.engine.task import Task, Tries


class Executor(Protocol):
    """What runs the code of nodes: any `concurrent.futures.Executor`, or whatever has this method of one."""

    def submit(self, work: Callable[[], Any], /) -> Future[Any]:
        """A future of ``work()``, which is a `Work`: its `key` says what is the same work."""


Executors = Executor | Mapping[str, Executor]


class Outcome(NamedTuple):
    """What came of a work: what its node returned, asked or raised (`notes` are the error's), and what it streamed."""

    output: Any = None
    asked: tuple[Interrupt, ...] = ()
    error: BaseException | None = None
    notes: tuple[str, ...] = ()
    chunks: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    """One attempt of a node, to be called wherever its code and its input can be unpickled.

    - `key`: 32 hex characters, the same whenever this work is offered: also by a run that was resumed, and after a
      failure.
    - `node`, `graph`, `thread_id`, `attempt`: what it is, for whoever looks at the executor. Attempts count from 1.
    """

    key: str
    node: str
    graph: str
    thread_id: str
    attempt: int
    bound: Runnable = field(repr=False)
    value: Any = field(repr=False)
    given: Given = field(repr=False)

    def __call__(self) -> Outcome:
        away = Away(self)
        token = current_task.set(away)
        try:
            output = _run(self.bound, self.value, away)
            return Outcome(output, away.asked, chunks=tuple(away.chunks))
        except (Exception, GraphInterrupt, ContinueAsNew) as error:
            asked = away.asked or (error.interrupts if isinstance(error, GraphInterrupt) else ())
            if asked:
                return Outcome(None, tuple(asked), chunks=tuple(away.chunks))
            return Outcome(None, (), _portable(error), _notes(error), tuple(away.chunks))
        finally:
            current_task.reset(token)


class Given(NamedTuple):
    """What of its run a node knows on an executor."""

    id: str
    ns: str
    path_text: str
    asks_as: tuple[str, str]  # what questions are named after: a task, and a call of it
    lineage: bytes
    now: float
    answers: Mapping[str, Any]
    config: RunnableConfig
    runtime: dict[str, Any]
    error: NodeError | None
    tries: Tries | None


class Away(Running):
    """What a node's code sees on an executor."""

    def __init__(self, work: Work) -> None:
        given = work.given
        self.name, self.work_key, self.given = work.node, work.key, given
        self.answers, self.error, self.tries = given.answers, given.error, given.tries
        self.chunks: list[Any] = []
        self._made = {"config": given.config, "runtime": self._told(given.runtime)}

    def _told(self, fields: Mapping[str, Any]) -> Runtime[Any]:
        return Runtime(
            **fields,
            store=_Missing(self),
            stream_writer=self.write_chunk,
            heartbeat=self.heartbeat,
            _key=self._next_key,
            _steps=self,
        )

    @property
    def frame(self) -> NoReturn:  # type: ignore[override]  # everything of a run that is not given
        """OutsideRunError."""
        raise OutsideRunError(
            f"Node {self.name!r} runs on an executor, away from its run: it has its input, config, context, answers.",
            fix="Have it run here (`executor={...}` names the nodes that do not), or do this in another node.",
            node=self.name,
        )

    @property
    def id(self) -> str:
        return self.given.id

    @property
    def ns(self) -> str:
        return self.given.ns

    @property
    def path_text(self) -> str:
        return self.given.path_text

    @property
    def previous(self) -> Any:
        return self.runtime.previous

    def question_id(self, scope: str, index: int) -> str:
        task, call = self.given.asks_as
        return interrupt_id(task, " ".join(part for part in (call, scope) if part), index)

    def waited(self, made: Callable[[float], Wait]) -> tuple[str, Any]:
        scope = question_scope.get()
        id = self.question_id(scope, self.count(f"question {scope}"))
        if id in self.answers:
            return id, self.answers[id]
        raise self.asks(Interrupt(made(self.given.now), id))

    def give(self, kind: str) -> Any:
        return self.frame if kind == "store" else super().give(kind)

    def write_chunk(self, chunk: Any) -> None:
        """Shown when the node has come back."""
        self.chunks.append(chunk)

    def heartbeat(self) -> None:
        """Nobody waits for it: an idle limit is refused."""

    def _next_key(self) -> str:
        scope = question_scope.get()
        nth = self.count(f"key {scope}") if scope else self.count("key")
        place = scoped(f"key {nth}") if scope else nth
        thread, given = self.runtime.execution_info, self.given
        assert thread is not None
        return idempotency_key(thread.thread_id or thread.checkpoint_id, given.lineage, given.path_text, place)


class _Missing:
    """What a node has no access to."""

    def __init__(self, away: Away) -> None:
        self._away = away

    def __getattr__(self, name: str) -> Any:
        return self._away.frame


def _run(bound: Runnable, value: Any, away: Away) -> Any:
    output: Any = bound
    while isinstance(output, Runnable):
        if output.has_sync:
            output = output.call(value, away)
        else:
            import asyncio  # as dear to import as this package, where nothing awaits

            output = asyncio.run(output.acall(value, away))
    return output


def _portable(error: BaseException) -> BaseException:
    """The error; one that says what it was, where it would not come back itself."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        kind, text = type(error).__name__, str(error)
        return WorkFailedError(f"{kind}: {text}", error_type=kind, error_message=text)
    return error


def _notes(error: BaseException) -> tuple[str, ...]:
    """Its notes, and where it was raised: tracebacks do not travel."""
    where = "".join(traceback.format_tb(without_our_frames(error.__traceback__))).rstrip()
    return (f"On the executor:\n{where}", *getattr(error, "__notes__", ()))


class Submitted(Runnable):
    """What a node calls in place of its own code, which runs on an executor."""

    has_async = True

    def __init__(self, bound: Runnable, executor: Executor) -> None:
        self.bound, self.executor = bound, executor
        self.name = bound.get_name()

    def call(self, value: Any, running: Any) -> Any:
        return _come_back(running, self.executor.submit(_work(self.bound, value, running)).result())

    async def acall(self, value: Any, running: Any) -> Any:
        import asyncio

        future = self.executor.submit(_work(self.bound, value, running))
        return _come_back(running, await asyncio.wrap_future(future))


def _work(bound: Runnable, value: Any, task: Task) -> Work:
    run, path = task.frame.run, task.path_text
    runtime = task.runtime
    root: Any = task
    while isinstance(root, CallTask):
        root = root.parent
    lineage = bytes(task.lineage)
    answered = " ".join(sorted(task.answers))
    key = idempotency_key(run.thread or task.frame.state.checkpoint, lineage, path, f"work {answered}")
    given = Given(
        task.id,
        task.ns,
        path,
        (root.id, "" if root is task else task.id),
        lineage,
        run.ids.clock() / TICKS,
        dict(task.answers),
        {name: part for name, part in task.config.items() if name != "callbacks"},  # type: ignore[arg-type]  # it stays a config
        {name: getattr(runtime, name) for name in ("context", "previous", "fence", "execution_info", "server_info")},
        task.error,
        task.tries,
    )
    return Work(key, task.name, task.frame.graph.get_name(), run.thread, task.attempt, bound, value, given)


def _come_back(task: Task, outcome: Outcome) -> Any:
    """What a node returns here, or raises, of what it did there."""
    for chunk in outcome.chunks:
        task.write_chunk(chunk)
    if outcome.asked:
        for asked in outcome.asked:
            task.asks(Interrupt(_stood(task, asked), asked.id, response_schema=asked.response_schema))
        raise GraphInterrupt(task.asked)
    if outcome.error is not None:
        for note in outcome.notes:
            if note not in getattr(outcome.error, "__notes__", ()):
                outcome.error.add_note(note)
        raise outcome.error
    return outcome.output


def _stood(task: Task, asked: Interrupt) -> Any:
    """What is asked; a wait stands as it was first stored."""
    return wait_of(task, asked.id, lambda _: asked.value) if isinstance(asked.value, Wait) else asked.value


# -- which nodes -------------------------------------------------------------------------------------------------------


def placed(nodes: Mapping[str, PregelNode], executors: Executors) -> dict[str, PregelNode]:
    """The nodes, with those whose code runs on an executor changed; DefinitionError for what cannot be."""
    if not isinstance(executors, Mapping):
        executors = {name: executors for name, node in nodes.items() if _can_go(node)}
    if unknown := executors.keys() - nodes.keys():
        raise DefinitionError(
            f"executor names {', '.join(map(repr, sorted(unknown)))}, which is no node.",
            fix=f"The nodes are {', '.join(map(repr, nodes))}.",
        )
    return {name: sent(name, node, executors[name]) if name in executors else node for name, node in nodes.items()}


def _can_go(node: PregelNode) -> bool:
    """Whether a node has code that another process can run; a graph's own loop, and what only waits, stay here."""
    return node.bound is not None and node.subgraph is None and not _stays(node.bound)


def _stays(bound: Any) -> bool:
    return bool(getattr(getattr(bound, "func", None), "stays_here", False))


def sent(name: str, node: PregelNode, executor: Any) -> PregelNode:
    """A copy of a node whose code runs on an executor."""
    if not _can_go(node):
        raise DefinitionError(
            f"Node {name!r} is a graph, or its work is done elsewhere: no executor runs it.",
            fix="Compile the inner graph with the executor.",
        )
    checked_executor(executor)
    if node.timeout is not None and node.timeout.idle_timeout is not None:
        raise DefinitionError(
            f"Node {name!r} has an idle_timeout, which an executor cannot tell.", fix="Give it a run_timeout."
        )
    _check_pickle(name, node.bound, executor)
    made = node.under()
    made.bound, made.plain, made.calls = Submitted(node.bound, executor), None, False  # type: ignore[arg-type]  # it has code
    return made


def checked_executor(executor: Any) -> Executor:
    """The executor; DefinitionError for what is none."""
    if not callable(getattr(executor, "submit", None)):
        raise DefinitionError(
            f"{executor!r} is no executor: it has no method submit.",
            fix="Give a concurrent.futures.Executor, such as a ProcessPoolExecutor.",
        )
    return executor  # type: ignore[no-any-return]  # looked at above


def _check_pickle(name: str, bound: Any, executor: Executor) -> None:
    """Processes take code by its name: what has none is refused before it fails each time that the node runs."""
    from concurrent.futures import ProcessPoolExecutor

    if not isinstance(executor, ProcessPoolExecutor):
        return
    try:
        pickle.dumps(bound)
    except Exception as error:
        raise DefinitionError(
            f"The code of node {name!r} cannot be sent to another process: {error}",
            fix="Give a function that stands at the top of a module.",
        ) from error
