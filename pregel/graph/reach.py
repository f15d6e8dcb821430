"""Which nodes nothing leads to, as far as a graph shows it before it runs.

1. Static edges, joins, path maps and declared destinations lead somewhere.
2. A node may also return a Command or a Send that leads anywhere. Whether it may is read from its code: it, or a plain
   function that it uses, names one of the two or holds one. What cannot be read (runnables, methods, graphs) may.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pregel.constants import START
from pregel.types import Command, Send

if TYPE_CHECKING:
    from pregel.graph.state import AnyStateGraph

ENOUGH = 100  # functions to look into for one node
_ROUTES = (Command, Send)
_NAMES = frozenset({"Command", "Send"})


def unreachable(builder: AnyStateGraph) -> list[str]:
    """The nodes that nothing leads to; none when a node that is reached may route anywhere."""
    led = defaultdict[str, list[str]](list)
    for source, target in _declared(builder):
        led[source].append(target)
    reached, waiting = {START}, [START]
    while waiting:
        for target in led.get(waiting.pop(), ()):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    lost = [name for name, spec in builder.nodes.items() if name not in reached and not spec.is_error_handler]
    if lost and builder.defaults.error_handler is not None and may_route(builder.defaults.error_handler):
        return []
    return [] if lost and any(_routes_anywhere(builder, source) for source in reached) else lost


def may_route(action: Any) -> bool:
    """Whether an action may return a Command or a Send."""
    action = inspect.unwrap(action) if callable(action) else action
    function = getattr(action, "func", action)  # what a partial or a lambda runnable calls
    return not isinstance(function, FunctionType) or _uses_routes(function, set())


def _declared(builder: AnyStateGraph) -> Iterator[tuple[str, str]]:
    yield from builder.edges
    for starts, end in builder.waiting_edges:
        yield from ((start, end) for start in starts)
    for source, branches in builder.branches.items():
        yield from ((source, target) for branch in branches.values() for target in (branch.ends or {}).values())
    for name, spec in builder.nodes.items():
        for target in spec.ends:
            yield name, target
        if spec.error_handler is not None:
            yield name, spec.error_handler


def _routes_anywhere(builder: AnyStateGraph, source: str) -> bool:
    branches = builder.branches.get(source, {}).values()
    if any(branch.ends is None or may_route(branch.path) for branch in branches):
        return True
    spec = builder.nodes.get(source)
    return spec is not None and not spec.declared and may_route(spec.action)


def _uses_routes(function: FunctionType, seen: set[FunctionType]) -> bool:
    seen.add(function)
    if len(seen) > ENOUGH:
        return True
    codes = list(_codes(function.__code__))
    names = {name for code in codes for name in code.co_names}
    if names & _NAMES:
        return True
    used = [function.__globals__[name] for name in names if name in function.__globals__]
    cells = function.__closure__ or ()
    return any(_is_route(value, seen) for value in [*used, *_contents(cells)])


def _is_route(value: Any, seen: set[FunctionType]) -> bool:
    if isinstance(value, FunctionType):
        return value not in seen and _uses_routes(value, seen)
    if isinstance(value, list | tuple):
        return any(isinstance(item, _ROUTES) for item in value)
    return value in _ROUTES if isinstance(value, type) else isinstance(value, _ROUTES)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _contents(cells: tuple[Any, ...]) -> Iterator[Any]:
    for cell in cells:
        try:
            yield cell.cell_contents
        except ValueError:  # not bound yet
            continue
