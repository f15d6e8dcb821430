"""Everything that is wrong with a builder, found at once and before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pregel.constants import END, RESERVED, START
from pregel.graph.names import known_names
from pregel.graph.spec import may_name

if TYPE_CHECKING:
    from pregel.graph.state import AnyStateGraph


def problems(builder: AnyStateGraph, interrupt: Sequence[str] = ()) -> list[str]:
    """What must be mended before the graph can be compiled, one line each."""
    return [*_names(builder), *_edges(builder), *_targets(builder), *_interrupts(builder, interrupt)]


def unreachable(builder: AnyStateGraph) -> list[str]:
    """The nodes that nothing is seen to lead to.

    None when a reachable node may route anywhere: by a branch without a path map, or by a Command that its annotations
    and `destinations` do not pin down.
    """
    led: dict[str, set[str]] = {}
    for source, target in _static_edges(builder):
        led.setdefault(source, set()).add(target)
    reached, waiting = {START}, [START]
    while waiting:
        source = waiting.pop()
        if _routes_anywhere(builder, source):
            return []
        news = led.get(source, set()) - reached
        reached |= news
        waiting.extend(news)
    return [name for name in builder.nodes if name not in reached]


def _names(builder: AnyStateGraph) -> Iterator[str]:
    for kind, names in (("Node", builder.nodes), ("Channel", builder.channels), ("Managed value", builder.managed)):
        yield from (f"{kind} name {name!r} is reserved." for name in names if name in RESERVED)


def _edges(builder: AnyStateGraph) -> Iterator[str]:
    sources = {source for source, _ in builder.edges} | set(builder.branches)
    if START not in sources:
        yield "Graph must have an entrypoint: add at least one edge from START to another node."
    for source in sorted(sources - set(builder.nodes) - {START}):
        yield f"Found edge starting at unknown node {source!r}. {known_names(source, builder.nodes)}"


def _targets(builder: AnyStateGraph) -> Iterator[str]:
    known = {*builder.nodes, END}
    for source, target in sorted(builder.edges):
        if target not in known:
            yield f"Found edge from {source!r} to unknown node {target!r}. {known_names(target, builder.nodes)}"
    for source, branches in builder.branches.items():
        for name, branch in branches.items():
            for target in dict.fromkeys((branch.ends or {}).values()):
                if target not in known:
                    hint = known_names(target, builder.nodes)
                    yield f"At {source!r}, branch {name!r} leads to unknown node {target!r}. {hint}"
    for name, spec in builder.nodes.items():
        for target in spec.ends:
            if target not in known:
                yield f"Node {name!r} declares the unknown node {target!r} as a destination of its Commands."


def _interrupts(builder: AnyStateGraph, interrupt: Sequence[str]) -> Iterator[str]:
    for name in dict.fromkeys(interrupt):
        if name not in builder.nodes:
            yield f"Interrupt node {name!r} not found. {known_names(name, builder.nodes)}"


def _static_edges(builder: AnyStateGraph) -> Iterator[tuple[str, str]]:
    yield from builder.edges
    for starts, end in builder.waiting_edges:
        yield from ((start, end) for start in starts)
    for source, branches in builder.branches.items():
        yield from ((source, target) for branch in branches.values() for target in (branch.ends or {}).values())
    for name, spec in builder.nodes.items():
        yield from ((name, target) for target in spec.ends)


def _routes_anywhere(builder: AnyStateGraph, source: str) -> bool:
    branches = builder.branches.get(source, {}).values()
    if any(branch.ends is None or may_name(branch.path, "Send") for branch in branches):
        return True
    spec = builder.nodes.get(source)
    return spec is not None and not spec.declared and may_name(spec.action, "Command", "Send")
