"""LangChain's callback handlers hear of graphs and nodes: each is a chain run, in one tree with what runs inside of it.

1. A graph's run stands around those of its tasks, a task's around what its code calls, with LangChain's own objects or
   graphs of ours. An attempt that follows a failure is a run of its own; what came from storage or a cache is none.
2. What nodes see in their config, and LangChain as its ambient config, are the handlers as children of the node's run.
3. Every run that began ends once: with its output or with what it raised. A question is raised (GraphInterrupt), except
   by the root, which ends with its values; a run that is still open when the root ends, ends with the root's error.
4. The side of the flow never waits. What it has to say in an awaited run is owed, and said before the next body starts,
   and before a node goes on that has called a graph.
5. A handler that raises is LangChain's to log; with its `raise_error` set, the node or the graph fails with that.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from copy import copy
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pregel.config import merge_callbacks
from pregel.constants import START
from pregel.engine.body import ended as ended_by
from pregel.engine.calls import CallTask, GraphCall
from pregel.engine.effects import Done, Failed, Paused, Result, TaskEvent
from pregel.engine.heard import surrounding
from pregel.engine.running import task_config, told_of
from pregel.errors import GraphInterrupt, ParentCommand
from pregel.interop.langchain_chain import CONFIG, FIRST, ChainRun, Said, asaid, said
from pregel.interop.langchain_nodes import HeardBound, HeardPath
from pregel.interop.langchain_tokens import TokenHandler
from pregel.types import TracePolicy

if TYPE_CHECKING:
    from pregel.engine.call import Call
    from pregel.engine.drive_async import AwaitingDriver
    from pregel.engine.drive_sync import BlockingDriver
    from pregel.engine.frame import Frame
    from pregel.engine.node import AskingWriter, PregelNode
    from pregel.engine.task import Task

MANAGERS, CONTEXT = "langchain_core.callbacks.manager", "langchain_core.tracers.context"
SWITCHES = tuple(f"{who}_{what}" for who in ("LANGSMITH", "LANGCHAIN") for what in ("TRACING_V2", "TRACING"))


def found(call: Call) -> ChainRuns | None:
    """Who hears of a call: the handlers of its config, and those that LangChain has for all of its runs right now."""
    callbacks = call.config.get("callbacks")
    if call.nested is None and (around := surrounding()) is not None:  # a chain that calls the graph
        callbacks = around if callbacks is None else merge_callbacks(around, callbacks)
    if not callbacks and not _is_traced():
        return None
    import_module(CONFIG)  # a node may load LangChain, and then its ambient config is to be there
    import_module(MANAGERS)
    runs = ChainRuns(call, _theirs(callbacks))
    return runs if runs.has_handlers() else None


def _is_traced() -> bool:
    """Whether LangChain has a handler for whatever runs here: a tracer that is switched on, or a collector."""
    context = sys.modules.get(CONTEXT)
    if context is None:
        return _is_switched_on()
    for hook in context._configure_hooks:
        if hook[0].get() is not None:
            return True
    return bool(context._tracing_v2_is_enabled())


@cache
def _is_switched_on() -> bool:
    """Whether the environment asks for a tracer: read once, as LangSmith does."""
    return any(os.environ.get(switch) == "true" for switch in SWITCHES)


def _theirs(callbacks: Any) -> Any:
    """The callbacks of a config as LangChain takes them: a manager, or a list without the handlers of ours."""
    if callbacks is None or hasattr(callbacks, "add_handler"):
        return callbacks
    handlers = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    return [one for one in handlers if hasattr(one, "on_chain_start")]


class ChainRuns:
    """The tree of one call, as far as it is open."""

    def __init__(self, call: Call, callbacks: Any) -> None:
        self.call = call
        self.kind = sys.modules[MANAGERS].CallbackManager
        config: Any = call.config
        metadata = {**told_of(config), "ls_integration": "pregel", **(config.get("metadata") or {})}
        name = config.get("run_name") or call.graph.get_name()
        self.root = ChainRun(callbacks, None, name, call.input, {**config, "metadata": metadata})
        self.root.is_graph, self.root.run_id = True, config.get("run_id")
        self.frame: Frame
        self.graphs: dict[Task, ChainRun] = {}  # by the task that runs them
        self.tasks: dict[Task, ChainRun] = {}
        self.open: dict[ChainRun, None] = {}
        self.nodes: dict[PregelNode, PregelNode] = {}  # as they are told of
        self.owed: list[Said] = []
        self.loop: asyncio.AbstractEventLoop | None = None  # of an awaited call
        self.telling = asyncio.Lock()
        self.inner: Callable[[Task], TaskEvent]
        self.ainner: Any = None

    def has_handlers(self) -> bool:
        """Whether anybody hears of it who is not ours."""
        return any(not isinstance(one, TokenHandler) for one in self.kind.configure(self.root.around).handlers)

    # -- the call ----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """The call begins."""
        self.say(self.root.begin(self.kind))
        self._begun()

    async def abegin(self) -> None:
        """The same, awaited."""
        self.loop, self.kind = asyncio.get_running_loop(), sys.modules[MANAGERS].AsyncCallbackManager
        await asaid(self.root.begin(self.kind))
        self._begun()

    def _begun(self) -> None:
        if self.call.callbacks is not None:
            self.call.callbacks.run_id = self.root.manager.run_id

    def ended(self, values: Any) -> None:
        """The call ends with these values."""
        for saying in self._ends(values, None):
            said(saying)

    def failed(self, error: BaseException) -> None:
        """The call raises."""
        for saying in self._ends(None, error):
            said(saying)

    async def aended(self, values: Any) -> None:
        """`ended`, awaited."""
        await self._pay()
        for saying in self._ends(values, None):
            await asaid(saying)

    async def afailed(self, error: BaseException) -> None:
        """`failed`, awaited."""
        await self._pay()
        for saying in self._ends(None, error):
            await asaid(saying)

    def _ends(self, values: Any, error: BaseException | None) -> Iterator[Said]:
        for chain in list(reversed(self.open)):
            yield chain.end(error or asyncio.CancelledError())
        self.open.clear()
        self.root.output = values
        yield self.root.end(error)

    # -- graphs inside, on the side of the flow ----------------------------------------------------------------------

    def admitted(self, task: Task, value: Any) -> None:
        """A graph inside starts for a task, with this input."""
        graph = task.node.subgraph
        config: Any
        if isinstance(task, GraphCall):
            config, around = task.inner_run.config, None
        else:
            config, around = graph.config or {}, self._task_run(task)
            around.inputs = value
            self._say_or_owe(around.begin(self.kind))
        name = config.get("run_name") or graph.get_name()
        chain = ChainRun(around or config.get("callbacks"), FIRST, name, value, config)
        chain.is_graph, chain.run_id = True, config.get("run_id")
        self.graphs[task] = chain
        self.open[chain] = None
        self._say_or_owe(chain.begin(self.kind))

    def over(self, task: Task, result: Result) -> None:
        """The graph that a task runs has ended; its task goes on to write its output if it is done."""
        chain, around = self.graphs.pop(task, None), self.tasks.get(task)
        if chain is None:
            return
        error = _error_of(result)
        chain.output = result.values
        self._say_or_owe(self._closed(chain, error))
        if around is not None and error is not None:
            del self.tasks[task]
            self._say_or_owe(self._closed(around, error))

    def _say_or_owe(self, saying: Said) -> None:
        if self.loop is None:
            said(saying)
        else:
            self.owed.append(saying)

    def catch_up(self) -> None:
        """Say what is owed before a node goes on that has called a graph."""
        if self.owed:
            self.say(_nothing())

    async def acatch_up(self) -> None:
        """The same, awaited."""
        await self._pay()

    async def _pay(self) -> None:
        """Say what is owed. Whoever comes second waits for the first: what it says may lie in what is told of here."""
        async with self.telling:
            while self.owed:
                await asaid(self.owed.pop(0))

    # -- tasks -------------------------------------------------------------------------------------------------------

    def attach(self, driver: BlockingDriver | AwaitingDriver, frame: Frame) -> None:
        """Have one try of the call tell of its tasks."""
        frame.run.bodies_heard, frame.run.heard = True, self
        self.frame = frame
        self.inner, driver.body = driver.body, self.body
        if driver.loop_body is not None:
            self.ainner, driver.loop_body = driver.loop_body, self.abody

    def body(self, task: Task) -> TaskEvent:
        """Run a task's body inside its run, on a thread."""
        chain = self._opened(task)
        if chain is None:
            return self.inner(task)
        node, task.node = task.node, self._heard(task.node)
        try:
            event = self.inner(task)
        except BaseException as error:
            self.say(self._closed(chain, error))
            raise
        finally:
            node.calls, task.node = task.node.calls, node
        try:
            self.say(self._ended(chain, event))
        except Exception as error:  # of a handler that is to be heard
            return ended_by(task, error)
        return event

    async def abody(self, task: Task) -> TaskEvent:
        """The same, awaited."""
        await self._pay()
        chain = self._opened(task)
        if chain is None:
            return await self.ainner(task)  # type: ignore[no-any-return]  # it is a body
        node, task.node = task.node, self._heard(task.node)
        try:
            event: TaskEvent = await self.ainner(task)
        except BaseException as error:
            await asaid(self._closed(chain, error))
            raise
        finally:
            node.calls, task.node = task.node.calls, node
        try:
            await asaid(self._ended(chain, event))
        except Exception as error:
            return ended_by(task, error)
        return event

    def say(self, saying: Said) -> None:
        """Tell the handlers something, from code that blocks: of an awaited call, on its loop."""
        if self.loop is None:
            said(saying)
        else:
            _waited(asyncio.run_coroutine_threadsafe(self.asay(saying), self.loop), self.loop)

    async def asay(self, saying: Said) -> None:
        """The same, awaited."""
        await self._pay()
        await asaid(saying)

    def run_of(self, task: Task) -> ChainRun | None:
        """The run of a task whose body runs now."""
        return self.tasks.get(task)

    def _opened(self, task: Task) -> ChainRun | None:
        """The run of a task whose body is about to run; None where it has none, or begins with the graph inside."""
        if task.phase == "leave":
            chain = self.tasks.get(task)
            if chain is not None:
                chain.output = task.output
            return chain
        if task.phase == "enter" or not _is_told(task.node, task.name):
            return None
        return self._task_run(task)

    def _task_run(self, task: Task) -> ChainRun:
        inputs: Any = None
        if isinstance(task, CallTask):
            around, tag, inputs = _ambient(task), None, task.arg
        else:
            frame = task.frame
            inside_of: Any = frame.inside
            around, tag = self.root if frame is self.frame else self.graphs[inside_of], f"graph:step:{task.step}"
        chain = ChainRun(around, tag, task.name, inputs, task_config(task), _policy_of(task.node))
        self.tasks[task] = chain
        self.open[chain] = None
        return chain

    def _heard(self, node: PregelNode) -> PregelNode:
        """A node as it is told of: it begins its run once its input is read, and its paths have runs of their own."""
        made = self.nodes.get(node)
        if made is None:
            made = copy(node)
            made.plain = None
            if node.subgraph is None and node.caching is not None:
                made.caching = made.bound = copy(node.caching)
                made.bound.bound = HeardBound(self, node.caching.bound)
            elif node.subgraph is None:
                made.bound = HeardBound(self, node.bound)
            made.writers, step = [], 1 + (node.bound is not None)
            for writer in node.writers:
                step += writer.asks
                made.writers.append(self._heard_path(writer, f"seq:step:{step}") if writer.asks else writer)
            self.nodes[node] = self.nodes[made] = made
        return made

    def _heard_path(self, writer: AskingWriter, tag: str) -> AskingWriter:
        made: Any = copy(writer)
        made.path = HeardPath(self, writer.path, tag)
        return made  # type: ignore[no-any-return]  # it is one

    def _ended(self, chain: ChainRun, event: TaskEvent) -> Said:
        error = chain.error
        if isinstance(event, Failed):
            error = error or event.error
        elif isinstance(event, Paused):
            error = error if isinstance(error, GraphInterrupt) else GraphInterrupt(event.asked)
        elif not isinstance(event, Done):
            error = error or asyncio.CancelledError()
        return self._closed(chain, error)

    def _closed(self, chain: ChainRun, error: BaseException | None) -> Said:
        self.open.pop(chain, None)
        return chain.end(error)


def _error_of(result: Result) -> BaseException | None:
    """What a graph inside raised, as the code that calls it sees it."""
    if result.status == "done":
        return None
    if result.status == "interrupted":
        return GraphInterrupt(result.asked)
    if result.status == "parent":
        return ParentCommand(*result.command)
    return result.error or asyncio.CancelledError()


def _is_told(node: PregelNode, name: str) -> bool:
    """Whether a task of the node has a run: it calls something. The node that brings the input in does for branches."""
    return any(writer.asks for writer in node.writers) if name == START else node.bound is not None


def _policy_of(node: PregelNode) -> TracePolicy | None:
    policy = node.trace_policy
    bound: Any = node.bound
    while policy is None and bound is not None and not getattr(bound, "is_graph", False):
        policy, bound = getattr(bound, "policy", None), getattr(bound, "bound", None)
        policy = policy if isinstance(policy, TracePolicy) else None
    return policy


def _ambient(call: CallTask) -> Any:
    """The handlers around a call of a task: of what called it, which may be an object of LangChain's in its caller."""
    config = call.future.context.get(sys.modules[CONFIG].var_child_runnable_config)
    return _theirs((config or call.parent.config).get("callbacks"))


def _nothing() -> Said:
    """Nothing to say but what is owed."""
    yield from ()


def _waited(saying: Future[None], loop: asyncio.AbstractEventLoop) -> None:
    """Wait for something that is said on a loop, as long as that runs: one that has stopped may never say it."""
    while not saying.done():
        try:
            saying.result(timeout=1)
        except TimeoutError:
            if not loop.is_running():
                return
    saying.result()
