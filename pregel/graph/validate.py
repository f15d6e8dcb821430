"""Everything that is wrong with a builder, found at once and before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pregel.constants import END, RESERVED, START
from pregel.errors import DefinitionError
from pregel.graph.names import known_names
from pregel.graph.spec import DEFAULT_HANDLER

if TYPE_CHECKING:
    from pregel.graph.state import AnyStateGraph


def problems(builder: AnyStateGraph, interrupt: Sequence[str] = ()) -> list[str]:
    """What must be mended before the graph can be compiled, one line each."""
    return [
        *_names(builder),
        *_edges(builder),
        *_targets(builder),
        *_handlers(builder),
        *_interrupts(builder, interrupt),
    ]


def check_edge(start: object, end: object) -> None:
    """DefinitionError for ends of an edge that are no names."""
    if not isinstance(end, str):
        fix = "Give the name of a node, or END; add one edge for each when there are several."
        raise DefinitionError(f"An edge goes to the name of one node, got {end!r}.", fix=fix)
    if not isinstance(start, Iterable) or not all(isinstance(name, str) for name in start):
        fix = "Give the name of a node, START, or a list of names that are all waited for."
        raise DefinitionError(f"An edge starts at the name of a node or a list of names, got {start!r}.", fix=fix)


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
    for source, target in sorted(edge for edge in builder.edges if edge[1] not in known):
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


def _handlers(builder: AnyStateGraph) -> Iterator[str]:
    handlers = {name for name, spec in builder.nodes.items() if spec.is_error_handler}
    joined = [name for edge in builder.edges for name in edge] if handlers else []
    for name in sorted(handlers.intersection([*joined, *builder.branches])):
        yield f"{name!r} is an error handler: edges neither lead to it nor start there. Let it return a Command(goto=)."
    if DEFAULT_HANDLER in builder.nodes and builder.defaults.error_handler is not None:
        yield f"Node {DEFAULT_HANDLER!r} has the name of the default error handler."


def _interrupts(builder: AnyStateGraph, interrupt: Sequence[str]) -> Iterator[str]:
    for name in dict.fromkeys(interrupt):
        if name not in builder.nodes:
            yield f"Interrupt node {name!r} not found. {known_names(name, builder.nodes)}"
