"""The runnable contract: invoke, stream and batch, each with an async twin, and ``|``.

1. Anything with invoke/ainvoke counts, whoever wrote it; it is wrapped, never subclassed.
2. The engine uses `call` and `acall`, which take the running task, so that a plain node pays for no config at all.
   `has_sync` and `has_async` say which of the two a runnable can do itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pregel.config import RunnableConfig, current_task, merge_configs
from pregel.errors import InvalidInputError
from pregel.owned import Owned

if TYPE_CHECKING:
    from pregel.runnable.compose import RunnableSequence
    from pregel.runnable.listeners import AsyncListener, Listener

Configs = RunnableConfig | Sequence[RunnableConfig] | None
ErrorTypes = Sequence[type[BaseException]] | type[BaseException] | Callable[[BaseException], bool]


class Detached:
    """What injected parameters see when a runnable is called outside of a graph."""

    __slots__ = ("config",)

    def __init__(self, config: RunnableConfig | None) -> None:
        self.config: RunnableConfig = config or {}

    def give(self, kind: str) -> Any:
        """The value for an injected parameter; InvalidInputError when only a graph could supply it."""
        if kind == "config":
            return self.config
        if kind == "writer":
            return lambda _: None
        raise InvalidInputError(
            f"Missing required config key for the injected parameter {kind!r}: this runs outside of a graph.",
            fix="Call it from a graph, or give the parameter a default.",
        )


class Runnable:
    """The contract: invoke, ainvoke, stream, batch, with_config, and ``|``."""

    name: str | None = None
    has_sync = True
    has_async = False
    plain: Callable[[Any], Any] | None = None
    """The function that `call` would call with its value alone, for one that looks at nothing else."""

    def call(self, value: Any, running: Any) -> Any:
        """The output for `value`, inside the running task."""
        raise NotImplementedError

    async def acall(self, value: Any, running: Any) -> Any:
        """The output for `value`, awaited inside the running task."""
        return self.call(value, running)

    def call_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        """The same with keyword arguments; TypeError when this takes none."""
        raise TypeError(f"{self.get_name()} takes no keyword arguments, got {', '.join(kwargs)}.")

    async def acall_with(self, value: Any, running: Any, kwargs: Mapping[str, Any]) -> Any:
        """The same, awaited."""
        return self.call_with(value, running, kwargs)

    def get_name(self, suffix: str | None = None) -> str:
        """The name that a node made of this gets."""
        name = self.name or type(self).__name__
        return f"{name}{suffix[0].upper()}{suffix[1:]}" if suffix else name

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The output for one input."""
        running = running_for(config)
        return self.call_with(input, running, kwargs) if kwargs else self.call(input, running)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """The output for one input, awaited."""
        running = running_for(config)
        return await (self.acall_with(input, running, kwargs) if kwargs else self.acall(input, running))

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """The output as chunks; one chunk unless a subclass knows better."""
        yield self.invoke(input, config, **kwargs)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> AsyncIterator[Any]:
        """The output as chunks, awaited."""
        yield await self.ainvoke(input, config, **kwargs)

    def transform(self, input: Iterator[Any], config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        """The chunks for an input that comes in chunks itself, which are added up first."""
        total: Any = None
        for place, chunk in enumerate(input):
            total = chunk if place == 0 else added(total, chunk)
        yield from self.stream(total, config, **kwargs)

    async def atransform(
        self, input: AsyncIterator[Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """The same, awaited."""
        total, first = None, True
        async for chunk in input:
            total, first = (chunk if first else added(total, chunk)), False
        async with Owned(self.astream(total, config, **kwargs)) as chunks:
            async for chunk in chunks:
                yield chunk

    def batch(
        self,
        inputs: Sequence[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """One output an input, in input order, at most ``max_concurrency`` at once."""
        from pregel.runnable.batch import batch

        return batch(self, inputs, config, return_exceptions, kwargs)

    async def abatch(
        self,
        inputs: Sequence[Any],
        config: Configs = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """One output an input, in input order, at most ``max_concurrency`` at once."""
        from pregel.runnable.batch import abatch

        return await abatch(self, inputs, config, return_exceptions, kwargs)

    def batch_as_completed(
        self, inputs: Sequence[Any], config: Configs = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> Iterator[tuple[int, Any]]:
        """(index, output) of each input, as they come in."""
        from pregel.runnable.batch import batch_as_completed

        return batch_as_completed(self, inputs, config, return_exceptions, kwargs)

    def abatch_as_completed(
        self, inputs: Sequence[Any], config: Configs = None, *, return_exceptions: bool = False, **kwargs: Any
    ) -> AsyncIterator[tuple[int, Any]]:
        """(index, output) of each input, as they come in, awaited."""
        from pregel.runnable.batch import abatch_as_completed

        return abatch_as_completed(self, inputs, config, return_exceptions, kwargs)

    def with_config(self, config: RunnableConfig | None = None, **kwargs: Any) -> Runnable:
        """The same runnable with a config merged under the caller's."""
        from pregel.runnable.compose import RunnableBinding

        return RunnableBinding(self, merge_configs(config, cast(RunnableConfig, kwargs)))

    def bind(self, **kwargs: Any) -> Runnable:
        """The same runnable with keyword arguments that each call gets; the caller's own win."""
        from pregel.runnable.compose import RunnableBinding

        return RunnableBinding(self, {}, kwargs)

    def with_retry(
        self,
        *,
        retry_if_exception_type: ErrorTypes = (Exception,),
        wait_exponential_jitter: bool = True,
        exponential_jitter_params: Mapping[str, float] | None = None,
        stop_after_attempt: int = 3,
    ) -> Runnable:
        """The same runnable, tried again when it raises one of these, at most `stop_after_attempt` times in all.

        Waits double from `initial` (1 s) to `max` (60 s) by `exp_base` (2), plus up to `jitter` (1 s) by chance. The
        last error is raised. A batch tries only what failed again; a stream is not retried.
        """
        from pregel.runnable.retry import RunnableRetry

        waits = exponential_jitter_params if wait_exponential_jitter else {"initial": 0.0, "jitter": 0.0}
        return RunnableRetry(self, retry_if_exception_type, stop_after_attempt, waits)

    def with_fallbacks(
        self,
        fallbacks: Sequence[Any],
        *,
        exceptions_to_handle: ErrorTypes = (Exception,),
        exception_key: str | None = None,
    ) -> Runnable:
        """The same runnable with others that are tried in order when it raises one of these.

        When all fail the first error is raised. `exception_key`: the key of a dict input that brings the last error.
        """
        from pregel.runnable.fallbacks import RunnableWithFallbacks

        return RunnableWithFallbacks(self, fallbacks, exceptions_to_handle, exception_key)

    def with_listeners(
        self, *, on_start: Listener | None = None, on_end: Listener | None = None, on_error: Listener | None = None
    ) -> Runnable:
        """The same runnable with functions that hear of each call: its start, its end, its failure.

        Each gets a `pregel.runnable.listeners.Run`, and the call's config when it has a parameter ``config``. What one
        raises is logged.
        """
        from pregel.runnable.listeners import Listeners, RunnableListening

        return RunnableListening(self, Listeners(on_start, on_end, on_error))

    def with_alisteners(
        self,
        *,
        on_start: AsyncListener | None = None,
        on_end: AsyncListener | None = None,
        on_error: AsyncListener | None = None,
    ) -> Runnable:
        """Like `with_listeners`, with coroutine functions; such a runnable can only be awaited."""
        from pregel.runnable.listeners import Listeners, RunnableListening

        return RunnableListening(self, Listeners(on_start, on_end, on_error, awaited=True))

    def map(self) -> Runnable:
        """A runnable that takes a list and gives the list of outputs."""
        from pregel.runnable.pieces import RunnableEach

        return RunnableEach(self)

    def pick(self, keys: str | Sequence[str]) -> Runnable:
        """This and then one value of its dict, or a dict of some."""
        from pregel.runnable.pieces import RunnablePick

        return self | RunnablePick(keys)

    def assign(self, **steps: Any) -> Runnable:
        """This and then its dict with more keys, each made from the dict."""
        from pregel.runnable.compose import RunnableParallel
        from pregel.runnable.pieces import RunnableAssign

        return self | RunnableAssign(RunnableParallel(steps))

    def pipe(self, *others: Any, name: str | None = None) -> RunnableSequence:
        """The same as ``self | other | ...``."""
        from pregel.runnable.compose import RunnableSequence

        return RunnableSequence(self, *others, name=name)

    def __or__(self, other: Any) -> RunnableSequence:
        return self.pipe(other)

    def __ror__(self, other: Any) -> RunnableSequence:
        from pregel.runnable.compose import RunnableSequence

        return RunnableSequence(other, self)


def added(total: Any, chunk: Any) -> Any:
    """Two chunks as one; the later one where they cannot be added."""
    try:
        return total + chunk
    except TypeError:
        return chunk


def running_for(config: RunnableConfig | None) -> Any:
    """What a runnable that is called with this config runs in: the running task, unless a config is given."""
    ambient = current_task.get()
    return Detached(config) if ambient is None or config else ambient
