"""What a node calls, and the paths of its branches, where LangChain's handlers hear of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pregel.config import inside
from pregel.engine.calls import CallTask
from pregel.engine.running import task_config
from pregel.interop.langchain_chain import FIRST, ChainRun, under
from pregel.runnable import Runnable, acall_anywhere

if TYPE_CHECKING:
    from pregel.interop.langchain_runs import ChainRuns


class HeardBound(Runnable):
    """What a node calls; its run begins here, when its input is there, and ends with the node's body."""

    def __init__(self, runs: ChainRuns, bound: Runnable | None) -> None:
        self.runs, self.bound = runs, bound
        if bound is not None:
            self.name = bound.get_name()
            self.has_sync, self.has_async = bound.has_sync, bound.has_async

    def call(self, value: Any, running: Any) -> Any:
        chain = self._chain(value, running)
        self.runs.say(chain.begin(self.runs.kind))
        with _within(chain, running, FIRST):
            chain.output = value if self.bound is None else self.bound.call(value, running)
            while isinstance(chain.output, Runnable):
                chain.output = chain.output.call(value, running)
        return chain.output

    async def acall(self, value: Any, running: Any) -> Any:
        chain = self._chain(value, running)
        await self.runs.asay(chain.begin(self.runs.kind))
        with _within(chain, running, FIRST):
            chain.output = value if self.bound is None else await acall_anywhere(self.bound, value, running)
            while isinstance(chain.output, Runnable):
                chain.output = await acall_anywhere(chain.output, value, running)
        return chain.output

    def _chain(self, value: Any, running: Any) -> ChainRun:
        chain = self.runs.tasks[running]
        chain.inputs = _arguments(self.bound, value) if isinstance(running, CallTask) else value
        return chain


class HeardPath(Runnable):
    """The path of a branch, which has a run of its own inside the node's."""

    def __init__(self, runs: ChainRuns, path: Runnable, tag: str) -> None:
        self.runs, self.path, self.tag = runs, path, tag
        self.name = path.get_name()
        self.has_sync, self.has_async = path.has_sync, path.has_async

    def call(self, value: Any, running: Any) -> Any:
        chain = self._chain(value, running)
        self.runs.say(chain.begin(self.runs.kind))
        try:
            with _within(chain, running, None):
                chain.output = self.path.call(value, running)
        finally:
            self.runs.say(chain.end(chain.error))
        return chain.output

    async def acall(self, value: Any, running: Any) -> Any:
        chain = self._chain(value, running)
        await self.runs.asay(chain.begin(self.runs.kind))
        try:
            with _within(chain, running, None):
                chain.output = await acall_anywhere(self.path, value, running)
        finally:
            await self.runs.asay(chain.end(chain.error))
        return chain.output

    def _chain(self, value: Any, running: Any) -> ChainRun:
        return ChainRun(self.runs.tasks[running], self.tag, self.get_name(), value, task_config(running))


@contextmanager
def _within(chain: ChainRun, running: Any, tag: str | None) -> Iterator[None]:
    """What is done here is done inside of a run: its config, and LangChain's, have the handlers as children of it."""
    before = running.config
    config: Any = {**inside(before), "callbacks": chain.child(tag)}
    running.configure(config)
    try:
        with under(chain, config):
            yield
    except BaseException as error:
        chain.error = error
        raise
    finally:
        if tag is None:
            running.configure(before)


def _arguments(called: Any, value: Any) -> dict[str, Any]:
    """The arguments of a call by name, those of ``**kwargs`` among them."""
    function: Callable[..., Any] = called.func
    args, kwargs = value
    signature = inspect.signature(function)
    bound = signature.bind_partial(*args, **kwargs)
    bound.apply_defaults()
    named = {name: given for name, given in bound.arguments.items() if name not in ("self", "cls")}
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            named.update(named.pop(name, {}))
    return named
