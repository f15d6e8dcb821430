"""One run of LangChain's tree, and how its handlers are told of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from typing import Any, Protocol

from pregel.config import RunnableConfig, inside
from pregel.types import TracePolicy

CONFIG = "langchain_core.runnables.config"
FIRST = "seq:step:1"  # what a node calls, as LangChain counts the steps of a sequence
Said = Generator[Any, Any, None]
"""What is to be said to handlers: it yields what a manager returned, and is sent what that came to."""


class ChainRun:
    """One run of the tree: a graph, a task, or the path of a branch. `around`: the run it is in, or callbacks."""

    __slots__ = (
        "around",
        "error",
        "inputs",
        "is_graph",
        "manager",
        "name",
        "output",
        "over",
        "policy",
        "run_id",
        "tag",
        "told",
    )

    def __init__(
        self, around: Any, tag: str | None, name: str, inputs: Any, config: Any, policy: TracePolicy | None = None
    ) -> None:
        self.around, self.tag, self.name, self.inputs = around, tag, name, inputs
        self.told = list(config.get("tags") or ()), dict(config.get("metadata") or {})
        self.is_graph = False
        self.run_id: Any = None
        self.policy = policy
        self.manager: Any = None  # none before it begins
        self.output: Any = None
        self.error: BaseException | None = None  # what its code raised, whatever becomes of that
        self.over = False

    def begin(self, kind: Any) -> Said:
        """Tell the handlers that it starts; nothing when what it lies in has never begun."""
        callbacks = self.around
        if isinstance(callbacks, ChainRun):
            if callbacks.manager is None:
                return
            callbacks = callbacks.manager.get_child(self.tag)
        tags, metadata = self.told
        if isinstance(callbacks, kind) and not self.is_graph:  # only a call of a graph looks for handlers anew
            manager = callbacks.copy()
            manager.add_tags(tags)
            manager.add_metadata(metadata)
        else:
            manager = kind.configure(callbacks, inheritable_tags=tags, inheritable_metadata=metadata)
        shown = _processed(self.policy.process_inputs if self.policy else None, self.inputs)
        if shown is self.inputs:
            self.manager = yield manager.on_chain_start(None, self.inputs, name=self.name, run_id=self.run_id)
            return
        plain, tracers = _split(manager)
        self.manager = yield plain.on_chain_start(None, self.inputs, name=self.name, run_id=self.run_id)
        yield tracers.on_chain_start(None, shown, name=self.name, run_id=self.manager.run_id)
        self.manager.handlers = manager.handlers

    def end(self, error: BaseException | None) -> Said:
        """Tell them how it ended, once."""
        if self.manager is None or self.over:
            return
        self.over = True
        if error is not None:
            yield self.manager.on_chain_error(error)
            return
        shown = _processed(self.policy.process_outputs if self.policy else None, self.output)
        if shown is self.output:
            yield self.manager.on_chain_end(self.output)
            return
        plain, tracers = _split(self.manager)
        yield tracers.on_chain_end(shown)
        yield plain.on_chain_end(self.output)

    def child(self, tag: str | None) -> Any:
        """The handlers for what its code calls."""
        return None if self.manager is None else self.manager.get_child(tag)


def _processed(process: Callable[[Any], Any] | None, value: Any) -> Any:
    """What a TracePolicy lets a tracer see of a value: the value itself without one, nothing when it fails."""
    if process is None:
        return value
    try:
        return process(value)
    except Exception:
        return {}


def _split(manager: Any) -> tuple[Any, Any]:
    """The same handlers as two managers: those that are no tracers, and the tracers."""
    tracer = getattr(sys.modules.get("langchain_core.tracers.base"), "BaseTracer", ())
    plain, tracers = copy(manager), copy(manager)
    tracers.handlers = [one for one in manager.handlers if isinstance(one, tracer)]
    plain.handlers = [one for one in manager.handlers if not isinstance(one, tracer)]
    return plain, tracers


class Begun(Protocol):
    """A run that has begun, if its manager is there."""

    manager: Any


def ambient_config() -> Any:
    """LangChain's ambient config; empty where there is none."""
    return sys.modules[CONFIG].var_child_runnable_config.get() or {}


@contextmanager
def under(chain: Begun, config: RunnableConfig) -> Iterator[None]:
    """LangChain's ambient config, and LangSmith's parent, for what the code of a run calls."""
    ambient = sys.modules[CONFIG].var_child_runnable_config
    before = ambient.get()
    with _traced(chain.manager):
        ambient.set(inside(config))
        try:
            yield
        finally:
            ambient.set(before)


def _traced(manager: Any) -> AbstractContextManager[Any]:
    """The context in which LangSmith's own functions find the run that they lie in."""
    tracer: Any = getattr(sys.modules.get("langchain_core.tracers.langchain"), "LangChainTracer", None)
    if manager is None or tracer is None or "langsmith.run_helpers" not in sys.modules:
        return nullcontext()
    found = next((one for one in manager.handlers if isinstance(one, tracer)), None)
    run = None if found is None else found.run_map.get(str(manager.run_id))
    if run is None:
        return nullcontext()
    return sys.modules["langsmith.run_helpers"].tracing_context(parent=run)  # type: ignore[no-any-return]


def said(saying: Said) -> None:
    """Say something by blocking."""
    told: Any = None
    try:
        while True:
            told = saying.send(told)
    except StopIteration:
        return


async def asaid(saying: Said) -> None:
    """The same, awaited."""
    told: Any = None
    try:
        while True:
            told = await saying.send(told)
    except StopIteration:
        return
