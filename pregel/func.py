"""The functional API: workflows as plain functions (`entrypoint`), and steps of theirs that are done once (`task`)."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    ParamSpec,
    Protocol,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

from pregel.cache.base import BaseCache
from pregel.channels import EphemeralValue, LastValue
from pregel.checkpoint.serde.registry import register_types
from pregel.config import RunnableConfig, running_task
from pregel.constants import END, START
from pregel.engine.caching import Caching
from pregel.engine.calls import RETURNS, CallTask
from pregel.engine.fingerprint import fingerprint
from pregel.engine.future import CallFuture
from pregel.engine.node import ChannelWrite, ChannelWriteEntry, PregelNode
from pregel.engine.pregel import Pregel
from pregel.engine.running import PREVIOUS
from pregel.engine.task import Task
from pregel.errors import AsyncOnlyError, InvalidInputError, OutsideRunError
from pregel.interop import connected as connected
from pregel.runnable import Runnable, RunnableCallable, callable_name, injections, is_async_callable
from pregel.types import CachePolicy, RetryPolicy, TimeoutPolicy

if TYPE_CHECKING:
    from pregel.engine.away import Executor
    from pregel.graph.draw import Graph

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S")

__all__ = ["entrypoint", "task"]


# -- tasks -----------------------------------------------------------------------------------------------------------


class CalledFunction(Runnable):
    """A function with the arguments of a call; what it wants of the runtime and was not given is filled in."""

    def __init__(self, func: Callable[..., Any], name: str) -> None:
        self.func = func
        self.name = name
        self.has_async = is_async_callable(func)
        self.has_sync = not self.has_async
        self.injected = injections(func, given=0)
        names = list(inspect.signature(func).parameters) if self.injected else []
        self.places = {name: names.index(name) for name, _ in self.injected}

    def call(self, value: Any, running: Any) -> Any:
        if self.has_async:
            raise AsyncOnlyError(
                f"Task {self.name!r} is a coroutine function, and this run blocks.",
                fix="Run the graph with ainvoke or astream, or make the task a plain function.",
            )
        args, kwargs = value
        return self.func(*args, **self._filled(args, kwargs, running))

    async def acall(self, value: Any, running: Any) -> Any:
        args, kwargs = value
        result = self.func(*args, **self._filled(args, kwargs, running))
        return await result if self.has_async else result

    def _filled(self, args: tuple[Any, ...], kwargs: dict[str, Any], running: Any) -> dict[str, Any]:
        missing = [(n, kind) for n, kind in self.injected if n not in kwargs and self.places[n] >= len(args)]
        return {**kwargs, **{name: running.give(kind) for name, kind in missing}} if missing else kwargs


class _TaskFunction(Generic[P, T]):
    """A function whose calls from inside a run are tasks of their own: calling it returns a future at once.

    The result is stored before the future is done, so a caller that runs again after an interrupt or a crash gets it
    without another call. Calls are known by their order, so a caller must call in the same order each time.
    """

    makes_calls = True  # code that refers to it does

    def __init__(
        self,
        func: Callable[P, Awaitable[T]] | Callable[P, T],
        *,
        retry_policy: tuple[RetryPolicy, ...] = (),
        cache_policy: CachePolicy | None = None,
        timeout: TimeoutPolicy | None = None,
        name: str | None = None,
    ) -> None:
        functools.update_wrapper(self, func)
        self.func = func
        self.name = self.__name__ = name or _name_of(func)
        if timeout is not None and not is_async_callable(func):
            raise InvalidInputError(
                f"Task {self.name!r} has a timeout, but it is not a coroutine function and cannot be stopped.",
                fix="Make it `async def`, or leave the timeout out.",
            )
        self.retry_policy, self.cache_policy, self.timeout = retry_policy, cache_policy, timeout
        node = PregelNode(
            channels=(),
            triggers=(),
            bound=CalledFunction(func, self.name),
            writers=(RETURNS,),
            retry_policy=retry_policy,
            cache_policy=cache_policy,
            timeout=timeout,
        )
        self.bare = node
        self.node = self._cached(node)

    def _cached(self, node: PregelNode) -> PregelNode:
        """The node behind its cache policy, where it has one."""
        if self.cache_policy is None or node.bound is None:
            return node
        module, qualified = getattr(self.func, "__module__", ""), getattr(self.func, "__qualname__", self.name)
        caching = Caching(CalledFunction(self.func, self.name), self.cache_policy, module, qualified)
        caching.bound = node.bound
        return node.behind(caching)

    def _on(self, executor: Executor) -> PregelNode:
        """The node whose code runs on an executor."""
        from pregel.engine.away import sent  # which few programs need

        return self._cached(sent(self.name, self.bare, executor))

    def clear_cache(self, cache: BaseCache[Any]) -> None:
        """Forget every result of this task that a cache holds."""
        if self.node.caching is not None:
            cache.clear([self.node.caching.namespace])

    async def aclear_cache(self, cache: BaseCache[Any]) -> None:
        """Like `clear_cache`, awaited."""
        if self.node.caching is not None:
            await cache.aclear([self.node.caching.namespace])

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> CallFuture[T]:
        caller = running_task()
        if not isinstance(caller, Task):
            raise OutsideRunError(f"Task {self.name!r} was called outside of a running node.")
        executor = caller.frame.graph.tasks_on
        node = self.node if executor is None else self._on(executor)
        call = CallTask(caller, caller.count("call"), self.name, node, (args, kwargs))
        if caller.frame.journal is not None:
            call.fingerprint = fingerprint(caller.frame.journal.saver.serde, args, kwargs)
        return call.push()

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """As a method: bound to its instance."""
        return self if instance is None else functools.partial(self, instance)


class _TaskDecorator(Protocol):
    """What `task` with arguments is: it makes a task of a function or coroutine function."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[T]], /) -> _TaskFunction[P, T]: ...

    @overload
    def __call__(self, function: Callable[P, T], /) -> _TaskFunction[P, T]: ...


@overload
def task(__func_or_none__: Callable[P, Awaitable[T]]) -> _TaskFunction[P, T]: ...


@overload
def task(__func_or_none__: Callable[P, T]) -> _TaskFunction[P, T]: ...


@overload
def task(
    __func_or_none__: None = None,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | list[RetryPolicy] | tuple[RetryPolicy, ...] | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: Any = None,
) -> _TaskDecorator: ...


def task(
    __func_or_none__: Any = None,
    *,
    name: str | None = None,
    retry_policy: RetryPolicy | list[RetryPolicy] | tuple[RetryPolicy, ...] | None = None,
    cache_policy: CachePolicy | None = None,
    timeout: Any = None,
) -> Any:
    """A function whose calls inside an entrypoint or a node run as tasks; `@task` or `@task(name=..., ...)`.

    - `retry_policy`: one or several; the first that matches counts. `cache_policy`: which inputs share a result.
    - `timeout`: seconds, timedelta or TimeoutPolicy for each attempt; coroutine functions only, else InvalidInputError.

    Calling it outside of a run is an OutsideRunError.
    """

    limits = TimeoutPolicy.coerce(timeout)

    def decorated(func: Any) -> Any:
        return _TaskFunction(
            func,
            name=name,
            retry_policy=_policies(retry_policy),
            cache_policy=cache_policy,
            timeout=limits,
        )

    return decorated if __func_or_none__ is None else decorated(__func_or_none__)


def _name_of(func: Any) -> str:
    """The name of a function, also behind partial."""
    while isinstance(func, functools.partial):
        func = func.func
    return callable_name(func)


def _policies(given: RetryPolicy | list[RetryPolicy] | tuple[RetryPolicy, ...] | None) -> tuple[RetryPolicy, ...]:
    if given is None:
        return ()
    return (given,) if isinstance(given, RetryPolicy) else tuple(given)


# -- entrypoints -----------------------------------------------------------------------------------------------------


class Workflow(Pregel):
    """What `entrypoint` makes of a function: a graph of one node."""

    @property
    def InputType(self) -> Any:
        """The annotation of the function's first parameter."""
        return self.channels[START].ValueType

    @property
    def OutputType(self) -> Any:
        """What the function says that it returns."""
        return self.channels[END].ValueType

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The JSON schema of the input."""
        return _json_schema(self.InputType, self.get_name("Input"))

    def get_output_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """The JSON schema of the output."""
        return _json_schema(self.OutputType, self.get_name("Output"))

    def get_context_jsonschema(self) -> dict[str, Any] | None:
        """The JSON schema of the context; None without a context schema."""
        schema = self.context_schema
        return None if schema is None else _json_schema(schema, getattr(schema, "__name__", "Context"))

    def get_input_schema(self, config: RunnableConfig | None = None) -> type:
        """The input as a pydantic model (extra ``agents``): the annotation itself when it is one."""
        return _model(self.InputType, self.get_name("Input"))

    def get_output_schema(self, config: RunnableConfig | None = None) -> type:
        """The same for the output."""
        return _model(self.OutputType, self.get_name("Output"))

    @property
    def input_schema(self) -> type:
        """What `get_input_schema` returns."""
        return self.get_input_schema()

    @property
    def output_schema(self) -> type:
        """What `get_output_schema` returns."""
        return self.get_output_schema()

    def get_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The function between START and END; `xray` looks into graphs that it names."""
        from pregel.graph.draw import describe

        return describe(self, xray=xray)

    async def aget_graph(self, config: RunnableConfig | None = None, *, xray: int | bool = False) -> Graph:
        """The same."""
        return self.get_graph(config, xray=xray)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The graph as a notebook shows it: a picture."""
        return self.get_graph()._repr_mimebundle_(**kwargs)


def _json_schema(typ: Any, title: str) -> dict[str, Any]:
    from pregel.graph.json_schema import json_schema  # few programs ask

    return json_schema(typ, title)


def _model(typ: Any, name: str) -> type:
    from pregel.graph.pydantic_adapter import model_of

    return model_of(typ, name)


class entrypoint:
    """Makes a graph of a function: its first parameter is the input, what it returns is the output.

    The function may also take `config`, `writer`, `store`, `runtime`, and `previous`: what the last run on the thread
    returned, or saved with `entrypoint.final`; None the first time and without a `checkpointer`. A ValueError when the
    function takes no input, NotImplementedError for a generator. `executor`: where the tasks that it calls run, any
    `concurrent.futures.Executor`; the function itself runs here.
    """

    @dataclass(slots=True)
    class final(Generic[R, S]):
        """What an entrypoint returns when its output and what the next run gets as `previous` differ."""

        value: R
        save: S

    def __init__(
        self,
        checkpointer: Any = None,
        store: Any = None,
        cache: Any = None,
        context_schema: type | None = None,
        cache_policy: CachePolicy | None = None,
        retry_policy: RetryPolicy | list[RetryPolicy] | tuple[RetryPolicy, ...] | None = None,
        timeout: Any = None,
        executor: Executor | None = None,
    ) -> None:
        self.executor = executor
        self.checkpointer, self.store, self.cache = checkpointer, store, cache
        self.context_schema, self.cache_policy = context_schema, cache_policy
        self.retry_policy = _policies(retry_policy)
        self.timeout = TimeoutPolicy.coerce(timeout)

    def __call__(self, func: Callable[..., Any]) -> Workflow:
        """The graph of a function."""
        name = callable_name(func)
        if inspect.isgeneratorfunction(func) or inspect.isasyncgenfunction(func):
            raise NotImplementedError(f"Entrypoint {name!r} is a generator. Stream with get_stream_writer() instead.")
        parameters = inspect.signature(func).parameters
        if not parameters:
            raise InvalidInputError(
                f"Entrypoint {name!r} takes no parameter.", fix="Its first parameter is the input of the workflow."
            )
        hints = _hints(func)
        input_type = hints.get(next(iter(parameters)), Any)
        output_type, save_type = _output_types(hints.get("return", Any))
        node = PregelNode(
            channels=START,
            triggers=[START],
            bound=RunnableCallable(func, name=name),
            writers=[
                ChannelWrite(
                    [
                        ChannelWriteEntry(END, mapper=_value_of),
                        ChannelWriteEntry(PREVIOUS, mapper=_save_of),
                    ]
                )
            ],
            timeout=self.timeout,
        )
        node.calls = True  # that is what it is for
        workflow = Workflow(
            nodes={name: node},
            channels={
                START: EphemeralValue(input_type),
                END: LastValue(output_type, END),
                PREVIOUS: LastValue(save_type, PREVIOUS),
            },
            input_channels=START,
            output_channels=END,
            stream_channels=END,
            stream_mode="updates",
            stream_eager=True,
            checkpointer=self.checkpointer,
            store=self.store,
            cache=self.cache,
            cache_policy=self.cache_policy,
            retry_policy=self.retry_policy,
            context_schema=self.context_schema,
        )
        if self.executor is not None:
            from pregel.engine.away import checked_executor  # which few programs need

            workflow.tasks_on = checked_executor(self.executor)
        return workflow


def _value_of(output: Any) -> Any:
    return output.value if isinstance(output, entrypoint.final) else output


def _save_of(output: Any) -> Any:
    return output.save if isinstance(output, entrypoint.final) else output


def _hints(func: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function, as far as they can be told: one that names what does not exist counts as none."""
    try:
        return get_type_hints(func)
    except TypeError as error:
        if "final" in str(error):
            raise TypeError("entrypoint.final needs both types: entrypoint.final[output, saved].") from None
        return {}
    except (NameError, AttributeError):
        return {}


def _output_types(annotation: Any) -> tuple[Any, Any]:
    """The types of the output and of what is saved; TypeError for a `final` that says one of them."""
    if annotation is entrypoint.final:
        return Any, Any
    if get_origin(annotation) is entrypoint.final:
        args = get_args(annotation)
        if len(args) != 2:
            raise TypeError("entrypoint.final needs both types: entrypoint.final[output, saved].")
        return args[0], args[1]
    return annotation, annotation


register_types({entrypoint.final})  # an entrypoint's output is what a cache keeps
