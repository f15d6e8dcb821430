"""Many inputs through one runnable: in input order or as they come, at most ``max_concurrency`` at once.

1. Each call sees the caller's context variables, so a config or a running task reaches it.
2. A graph that a node runs over several inputs takes them one after the other: its questions and its own calls are told
   apart by their order, which must be the same each time.
3. The first error in input order is raised once all calls have ended; `return_exceptions` keeps errors in their places.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from pregel.config import RunnableConfig, current_task
from pregel.errors import InvalidInputError

if TYPE_CHECKING:
    from pregel.runnable.base import Configs, Runnable

MOST_THREADS = 32


def batch(
    runnable: Runnable, inputs: Sequence[Any], config: Configs, return_exceptions: bool, kwargs: Mapping[str, Any]
) -> list[Any]:
    """One output an input, in input order."""
    configs = configs_of(config, len(inputs))
    calls = [_call(runnable, *pair, return_exceptions, kwargs) for pair in zip(inputs, configs, strict=True)]
    if getattr(runnable, "is_graph", False) and current_task.get() is not None:
        return [call() for call in calls]
    return at_once(calls, configs[0].get("max_concurrency") if configs else None)


def at_once(calls: Sequence[Callable[[], Any]], room: int | None) -> list[Any]:
    """What the calls return, in their order; they run on threads, at most `room` of them at once."""
    if len(calls) < 2 or room == 1:
        return [call() for call in calls]
    from concurrent.futures import ThreadPoolExecutor  # dear to import, and few graphs batch

    with ThreadPoolExecutor(room or min(len(calls), MOST_THREADS)) as pool:
        futures = [pool.submit(copy_context().run, call) for call in calls]
    return [future.result() for future in futures]


def batch_as_completed(
    runnable: Runnable, inputs: Sequence[Any], config: Configs, return_exceptions: bool, kwargs: Mapping[str, Any]
) -> Iterator[tuple[int, Any]]:
    """(index, output) of each input, as they come in."""
    configs = configs_of(config, len(inputs))
    if not inputs:
        return
    from concurrent.futures import ThreadPoolExecutor, as_completed

    room = configs[0].get("max_concurrency") or min(len(inputs), MOST_THREADS)
    with ThreadPoolExecutor(room) as pool:
        places = {}
        for place, pair in enumerate(zip(inputs, configs, strict=True)):
            call = _call(runnable, *pair, return_exceptions, kwargs)
            places[pool.submit(copy_context().run, call)] = place
        for future in as_completed(places):
            yield places[future], future.result()


async def abatch(
    runnable: Runnable, inputs: Sequence[Any], config: Configs, return_exceptions: bool, kwargs: Mapping[str, Any]
) -> list[Any]:
    """One output an input, in input order, awaited."""
    import asyncio

    jobs = _acalls(runnable, inputs, config, kwargs)
    return await asyncio.gather(*(job() for job in jobs), return_exceptions=return_exceptions)


async def abatch_as_completed(
    runnable: Runnable, inputs: Sequence[Any], config: Configs, return_exceptions: bool, kwargs: Mapping[str, Any]
) -> AsyncIterator[tuple[int, Any]]:
    """(index, output) of each input, as they come in, awaited."""
    import asyncio

    async def placed(place: int, job: Callable[[], Any]) -> tuple[int, Any]:
        try:
            return place, await job()
        except Exception as error:
            if not return_exceptions:
                raise
            return place, error

    jobs = [asyncio.ensure_future(placed(*pair)) for pair in enumerate(_acalls(runnable, inputs, config, kwargs))]
    try:
        for job in asyncio.as_completed(jobs):
            yield await job
    finally:
        for task in jobs:
            task.cancel()


def configs_of(config: Configs, n: int) -> list[RunnableConfig]:
    """One config an input; a run_id counts for the first alone."""
    if isinstance(config, Sequence):
        if len(config) != n:
            raise InvalidInputError(f"{n} inputs but {len(config)} configs.", fix="Give one config an input, or one.")
        return list(config)
    first: RunnableConfig = config or {}
    if n < 2 or "run_id" not in first:
        return [first] * n
    others: Any = {key: value for key, value in first.items() if key != "run_id"}
    return [first, *[others] * (n - 1)]


def _call(
    runnable: Runnable, value: Any, config: RunnableConfig, return_exceptions: bool, kwargs: Mapping[str, Any]
) -> Callable[[], Any]:
    def call() -> Any:
        try:
            return runnable.invoke(value, config, **kwargs)
        except Exception as error:
            if return_exceptions:
                return error
            raise

    return call


def _acalls(
    runnable: Runnable, inputs: Sequence[Any], config: Configs, kwargs: Mapping[str, Any]
) -> list[Callable[[], Any]]:
    import asyncio

    configs = configs_of(config, len(inputs))
    room = asyncio.Semaphore((configs[0].get("max_concurrency") if configs else None) or max(len(inputs), 1))

    def one(value: Any, config: RunnableConfig) -> Callable[[], Any]:
        async def call() -> Any:
            async with room:
                return await runnable.ainvoke(value, config, **kwargs)

        return call

    return [one(*pair) for pair in zip(inputs, configs, strict=True)]
