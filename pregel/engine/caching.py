"""Cached nodes: a node whose output for an input is known does not run, and its writers write what is known.

1. The output is cached, not the writes: where it leads is decided on the state as it is now.
2. A result is kept once it was written without trouble; one of an attempt that asked or was given up is not.
3. A cached result is stored and counted like any other; only its update says that it was cached.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pregel.cache.keys import function_identity, input_key, node_namespace
from pregel.errors import InvalidInputError, SerializationError
from pregel.runnable import Runnable
from pregel.types import CacheKey, CachePolicy

if TYPE_CHECKING:
    from pregel.engine.task import Task

log = logging.getLogger("pregel.engine.caching")
log.addHandler(logging.NullHandler())


class Caching(Runnable):
    """What a node calls, behind its cache policy."""

    def __init__(self, bound: Runnable, policy: CachePolicy, graph: str, node: str) -> None:
        self.bound = bound
        self.policy = policy
        self.name = node
        self.namespace = node_namespace(graph, node)
        self.identity = function_identity(_told(bound))
        self.has_sync, self.has_async = bound.has_sync, bound.has_async

    def call(self, value: Any, running: Any) -> Any:
        return running.output if self.finds(running, value) else self.bound.call(value, running)

    async def acall(self, value: Any, running: Any) -> Any:
        return running.output if await self.afinds(running, value) else await self.bound.acall(value, running)

    def finds(self, task: Task, value: Any) -> bool:
        """Whether the output for this input is known; it is the task's then."""
        cache = task.frame.cache
        return cache is not None and _found(task, cache.get([self._key(task, value)]))

    async def afinds(self, task: Task, value: Any) -> bool:
        """`finds`, awaited."""
        cache = task.frame.cache
        return cache is not None and _found(task, await cache.aget([self._key(task, value)]))

    def keeps(self, task: Task, output: Any) -> None:
        """Keep an output that the node gave for the input that was asked for."""
        if (pairs := _to_keep(task, output)) is not None:
            with _unkept(task):
                task.frame.cache.set(pairs)

    async def akeeps(self, task: Task, output: Any) -> None:
        """`keeps`, awaited."""
        if (pairs := _to_keep(task, output)) is not None:
            with _unkept(task):
                await task.frame.cache.aset(pairs)

    def _key(self, task: Task, value: Any) -> tuple[tuple[str, ...], str]:
        made = value
        if self.policy.key_func is not None:
            made = self.policy.key_func(value)
            if not isinstance(made, str | bytes):
                raise InvalidInputError(
                    f"The key_func of node {self.name!r} returned {type(made).__name__}.",
                    fix="Return a str or bytes.",
                    node=self.name,
                )
        task.cache_key = key = CacheKey(self.namespace, input_key(self.identity, made), self.policy.ttl)
        return key[:2]


@contextmanager
def _unkept(task: Task) -> Iterator[None]:
    """An output that cannot be encoded is not kept, and fails no run whose work is done."""
    try:
        yield
    except SerializationError as error:
        log.warning("the output of %r is not kept: %s", task.name, error)


def _found(task: Task, found: dict[Any, Any]) -> bool:
    assert task.cache_key is not None
    key = task.cache_key[:2]
    if key in found:
        task.output, task.cached = found[key], True
    return task.cached


def _to_keep(task: Task, output: Any) -> dict[Any, Any] | None:
    """What is to be kept; None for what came from the cache, and for an attempt that asked or was given up."""
    if task.cached or task.cache_key is None or task.asked or task.closed or task.frame.cache is None:
        return None
    return {task.cache_key[:2]: (output, task.cache_key.ttl)}


def _told(bound: Runnable) -> Any:
    """What a function's identity is made of: for a graph, which holds savers and locks, what its nodes call."""
    nodes = getattr(bound, "nodes", None)
    if not getattr(bound, "is_graph", False) or nodes is None:
        return bound
    return [
        (name, node.triggers, _told(node.bound) if node.bound is not None else None) for name, node in nodes.items()
    ]
