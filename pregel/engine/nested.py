"""The graphs inside a graph: those that are nodes, those that a node's code refers to, and where each one lives.

1. A namespace names a graph level by level: ``node:<task id>`` for one of a task, ``node`` for one that persists, with
   ``call:0`` (or a number) after it for one that the node's code called.
2. What a function refers to is found in its closure, in the globals that it names, and behind ``|`` and partial. A
   graph that is reached otherwise is not found; its threads can be read through the graph itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pregel.runnable import declares

if TYPE_CHECKING:
    from pregel.engine.pregel import Pregel


def stable_namespace(ns: str) -> str:
    """A namespace without its task ids: where a persistent subgraph lives. Calls after the first keep their number."""
    return "|".join(stable for part in ns.split("|") if (stable := _stable(part)))


def _stable(part: str) -> str:
    name, _, rest = part.partition(":")
    if name == "call" and rest.isdigit():
        return "" if rest == "0" else rest
    return name


def is_call(part: str) -> bool:
    """Whether a part of a namespace numbers a call of a node's code."""
    return part.isdigit() or (part.startswith("call:") and part[5:].isdigit())


def graphs_of(node: Any) -> list[Pregel]:
    """The graphs that a compiled node runs: the one that it is, or those that its code refers to."""
    found: dict[int, Any] = {}
    for thing in _things(node.bound):
        if _is_graph(thing) and thing.checkpointer is not False:
            found[id(thing)] = thing
    return list(found.values())


def refers_to_calls(bound: Any) -> bool:
    """Whether the code of a runnable refers to tasks or graphs. What cannot be looked at, such as a proxy, does not."""
    with suppress(Exception):
        return any(getattr(type(thing), "makes_calls", False) for thing in _things(bound))
    return False


def _things(thing: Any) -> Iterator[Any]:
    """A runnable and what it is made of, down to what its functions refer to."""
    yield thing
    if _is_graph(thing):
        return
    for step in _steps(thing):
        yield from _things(step)
    for name in ("bound", "func", "afunc"):
        inner = getattr(thing, name, None) if declares(thing, name) else None
        if inner is not None and inner is not thing:
            yield from _things(inner) if not inspect.isfunction(inner) else _referred(inner)


def _referred(function: Any) -> Iterator[Any]:
    """What a function's code names, in its closure and among its globals; each time anew, since both may change."""
    function = inspect.unwrap(function)
    code, known = getattr(function, "__code__", None), getattr(function, "__globals__", {})
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # nothing is in it yet
            yield from _with_steps(cell.cell_contents)
    for name in () if code is None else code.co_names:
        if name in known:
            yield from _with_steps(known[name])


def _with_steps(thing: Any) -> Iterator[Any]:
    yield thing
    yield from _steps(thing)


def _is_graph(thing: Any) -> bool:
    return getattr(thing.__class__, "is_graph", False) is True


def _steps(thing: Any) -> Iterable[Any]:
    steps = getattr(thing, "steps", None) if declares(thing, "steps") else None
    return steps if isinstance(steps, Iterable) else ()


def subgraphs(graph: Pregel, namespace: str | None = None, *, recurse: bool = False) -> Iterator[tuple[str, Pregel]]:
    """(stable namespace, graph) of the graphs inside a graph; those at or above `namespace` only, when it is given."""
    for name, node in graph.nodes.items():
        if namespace is not None and namespace.split("|")[0] != name:
            continue
        for inner in graphs_of(node)[:1]:
            rest = None if namespace is None else namespace.partition("|")[2]
            if namespace is None or not rest:
                yield name, inner
            if recurse and (namespace is None or rest):
                yield from ((f"{name}|{below}", one) for below, one in subgraphs(inner, rest, recurse=True))


def place_of(graph: Pregel, ns: str) -> tuple[Pregel, str] | None:
    """The graph that lives in a namespace, and the namespace as it is stored; None when none of this graph does."""
    parts, place = ns.split("|"), ""
    while parts:
        part = parts.pop(0)
        node = graph.nodes.get(part.partition(":")[0])
        inner = graphs_of(node) if node is not None else []
        if len(inner) != 1:
            return None
        graph, place = inner[0], f"{place}|{part}" if place else part
        if parts and is_call(parts[0]):
            place = f"{place}|{parts.pop(0)}"
        if graph.checkpointer is True:
            place = stable_namespace(place)
    return graph, place
