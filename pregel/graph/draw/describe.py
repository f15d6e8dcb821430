"""How the drawing is found again in a compiled graph, which has no edges: what a node writes wakes other nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pregel.channels import LastValueAfterFinish
from pregel.constants import END, START
from pregel.engine.nested import graphs_of
from pregel.engine.node import ChannelWrite, ConstantWrite, PregelNode
from pregel.engine.pregel import Pregel
from pregel.graph.branch import BranchWriter
from pregel.graph.draw.data import Edge, Graph, Node
from pregel.graph.route import branch_channel
from pregel.graph.write import StateWriter


def describe(graph: Pregel, *, xray: int | bool = False, around: tuple[Pregel, ...] = ()) -> Graph:
    """The nodes and edges of a compiled graph.

    A conditional edge is drawn to every end of its path map, to every node and END without one. `xray` shows what is
    inside of subgraphs, those that a node's code calls among them: True for all levels, a number for that many. A graph
    that is `around` this one already is not drawn in it again.
    """
    wakes: dict[str, list[str]] = {}
    for name, node in graph.nodes.items():
        for channel in node.triggers:
            wakes.setdefault(channel, []).append(name)
    edges = {edge for name, node in graph.nodes.items() for edge in _edges(graph, wakes, name, node)} | _entries(graph)
    sources = {edge.source for edge in edges}
    edges |= {Edge(n, END) for n, node in graph.nodes.items() if n not in sources and not node.is_error_handler}
    ordered = sorted(edges, key=lambda edge: (edge.source, edge.target, edge.data or ""))
    if all(edge.target != END for edge in ordered) and (last := _last_reached(ordered)):
        ordered.append(Edge(last, END, None, True))
    nodes = {
        name: Node(name, name, node.bound or node, _metadata(graph, name, node)) for name, node in graph.nodes.items()
    }
    if START not in nodes:
        nodes = {START: Node(START, START, graph), **nodes}
    if any(edge.target == END for edge in ordered):
        nodes[END] = Node(END, END)
    drawn = Graph(nodes, ordered)
    return _expanded(drawn, graph, xray, (*around, graph)) if xray else drawn


def _entries(graph: Pregel) -> set[Edge]:
    """The edges from START of a graph that has no such node: its input wakes the first ones."""
    inputs = graph.input_channels
    woken = {inputs} if isinstance(inputs, str) else set(inputs)
    return {
        Edge(START, name) for name, node in graph.nodes.items() if START not in graph.nodes and woken & {*node.triggers}
    }


def _edges(graph: Pregel, wakes: Mapping[str, Sequence[str]], name: str, node: PregelNode) -> Iterator[Edge]:
    """The edges from a node; `wakes`: channel -> the nodes that it wakes."""
    for writer in node.writers:
        if isinstance(writer, ChannelWrite | ConstantWrite):
            yield from (Edge(name, other) for entry in writer.entries for other in wakes.get(entry.channel, ()))
        elif isinstance(writer, BranchWriter):
            everywhere = {other: other for other in (*graph.nodes, END) if other != START}
            for answer, target in (everywhere if writer.ends is None else writer.ends).items():
                yield _conditional(name, target, answer)
        elif isinstance(writer, StateWriter):
            labels = writer.ends if isinstance(writer.ends, dict) else {end: end for end in writer.ends}
            yield from (_conditional(name, target, label) for target, label in labels.items())


def _conditional(source: str, target: str, label: object) -> Edge:
    return Edge(source, target, None if label == target else str(label), True)


def _last_reached(edges: list[Edge]) -> str | None:
    """The node that a walk from START reaches last; None when it reaches several at once."""
    seen, wave = {START}, [START]
    while True:
        after = [e.target for e in edges if e.source in wave and e.target not in seen]
        if not after:
            return wave[0] if len(wave) == 1 else None
        wave = list(dict.fromkeys(after))
        seen.update(wave)


def _metadata(graph: Pregel, name: str, node: PregelNode) -> dict[str, Any] | None:
    shown = dict(node.metadata)
    if isinstance(graph.channels.get(branch_channel(name)), LastValueAfterFinish):
        shown["defer"] = True
    pauses = {"before": graph.interrupt_before_nodes, "after": graph.interrupt_after_nodes}
    hit = [when for when, names in pauses.items() if name != START and (names == "*" or name in names)]
    if hit:
        shown["__interrupt"] = ",".join(hit)
    tools = getattr(node.bound, "tools_by_name", None)
    if tools:
        shown["__tools"] = list(tools)
    return shown or None


def _expanded(drawn: Graph, graph: Pregel, xray: int | bool, around: tuple[Pregel, ...]) -> Graph:
    """The drawing with subgraph nodes replaced by what is in them, under ids like ``name:inner``."""
    deeper = xray if isinstance(xray, bool) else xray - 1
    for name, node in graph.nodes.items():
        for subgraph in (node.subgraphs or graphs_of(node))[:1]:
            if subgraph in around:
                continue
            inner = _trimmed(describe(subgraph, xray=deeper, around=around))
            first, last = inner.first_node(), inner.last_node()
            if first is not None and last is not None:
                drawn = _replaced(drawn, name, inner, first.id, last.id)
    return drawn


def _trimmed(drawn: Graph) -> Graph:
    """The drawing without its START and END, where one node stands behind or before them."""
    for id, end in ((START, Graph.first_node), (END, Graph.last_node)):
        without = drawn.without(id)
        if id in drawn.nodes and end(without) is not None:
            drawn = without
    return drawn


def _replaced(drawn: Graph, name: str, inner: Graph, first: str, last: str) -> Graph:
    nodes: dict[str, Node] = {}
    for id, node in drawn.nodes.items():
        if id == name:
            for one in inner.nodes.values():
                nodes[f"{name}:{one.id}"] = one._replace(id=f"{name}:{one.id}")
        else:
            nodes[id] = node
    edges = [
        edge._replace(
            source=f"{name}:{last}" if edge.source == name else edge.source,
            target=f"{name}:{first}" if edge.target == name else edge.target,
        )
        for edge in drawn.edges
    ]
    edges += [edge._replace(source=f"{name}:{edge.source}", target=f"{name}:{edge.target}") for edge in inner.edges]
    return Graph(nodes, edges)
