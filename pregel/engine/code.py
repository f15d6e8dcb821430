"""What code a graph is: one text for its structure and the source of its nodes, the same in every process."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pregel.checkpoint.keys import hash16

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel

DEEP = 8  # runnables in each other
INSIDE = ("func", "afunc", "path", "bound", "steps", "first", "branch", "runnable", "branches", "default")


def code_of(graph: Pregel) -> str:
    """32 hex characters. A version stands for the code of its graph; else each change of a node's source counts.

    What the nodes call is not looked at.
    """
    parts = ["version", graph.version] if graph.version is not None else list(_parts(graph))
    return hash16(tuple(parts)).hex()


def _parts(graph: Pregel) -> Iterator[str]:
    for name, channel in sorted(graph.channels.items()):
        yield f"channel {name} {type(channel).__qualname__}"
    for name, node in sorted(graph.nodes.items()):
        yield f"node {name} {sorted(node.triggers)} {node.channels}"
        yield from _functions(node.bound, DEEP)
        for writer in node.writers:
            yield f"writer {type(writer).__qualname__}"
            yield from _functions(writer, DEEP)
        inner = node.subgraph
        if inner is not None:
            yield from _parts(inner)


def _functions(thing: Any, deep: int) -> Iterator[str]:
    """The sources of the functions in a runnable or a writer."""
    if thing is None or not deep:
        return
    if isinstance(thing, list | tuple):
        for one in thing:
            yield from _functions(one, deep - 1)
        return
    thing = inspect.unwrap(thing) if callable(thing) else thing
    if inspect.isroutine(thing):
        yield _source(thing)
        return
    for name in INSIDE:
        if (inside := inspect.getattr_static(thing, name, None)) is not None:
            yield from _functions(getattr(thing, name, inside), deep - 1)


def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):  # typed in at a prompt, or no Python
        code = getattr(function, "__code__", None)
        return getattr(function, "__qualname__", "") if code is None else f"{code.co_code.hex()} {code.co_names}"
