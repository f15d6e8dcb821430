"""A drawn graph as data: nodes, edges, JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, NoReturn

from pregel.constants import END
from pregel.errors import NotBuiltError


class Node(NamedTuple):
    """A node. `data` is what it runs; None for END."""

    id: str
    name: str
    data: Any = None
    metadata: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """The node as plain data: what it runs is named by module and class."""
        if self.id.rpartition(":")[2] == END:
            return {"id": self.id}
        cls = type(self.data)
        place = [*cls.__module__.split("."), cls.__name__]
        shown: dict[str, Any] = {"id": self.id, "type": "runnable", "data": {"id": place, "name": self.name}}
        return {**shown, "metadata": self.metadata} if self.metadata else shown


class Edge(NamedTuple):
    """An edge. `conditional`: it may be taken; `data` is its label."""

    source: str
    target: str
    data: str | None = None
    conditional: bool = False

    def to_json(self) -> dict[str, Any]:
        """The edge as plain data; what is not set is left out."""
        shown: dict[str, Any] = {"source": self.source, "target": self.target}
        if self.data is not None:
            shown["data"] = self.data
        return {**shown, "conditional": True} if self.conditional else shown


@dataclass(slots=True)
class Graph:
    """Nodes by id in the order they were defined, START first and END last, and edges sorted by source and target."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def to_json(self, *, with_schemas: bool = False) -> dict[str, list[dict[str, Any]]]:
        """``{"nodes": [...], "edges": [...]}``"""
        return {
            "nodes": [node.to_json() for node in self.nodes.values()],
            "edges": [edge.to_json() for edge in self.edges],
        }

    def first_node(self) -> Node | None:
        """The one node that no edge reaches; None when there is no such node, or more than one."""
        return self._only({edge.target for edge in self.edges})

    def last_node(self) -> Node | None:
        """The one node that no edge leaves; None when there is no such node, or more than one."""
        return self._only({edge.source for edge in self.edges})

    def without(self, id: str) -> Graph:
        """A copy without a node and its edges."""
        nodes = {key: node for key, node in self.nodes.items() if key != id}
        return Graph(nodes, [edge for edge in self.edges if id not in (edge.source, edge.target)])

    def draw_mermaid(self, **options: Any) -> NoReturn:
        """Not built yet."""
        raise _not_drawn("Mermaid text")

    def draw_mermaid_png(self, **options: Any) -> NoReturn:
        """Not built yet."""
        raise _not_drawn("a PNG")

    def draw_png(self, *args: Any, **options: Any) -> NoReturn:
        """Not built yet."""
        raise _not_drawn("a PNG")

    def draw_ascii(self) -> NoReturn:
        """Not built yet."""
        raise _not_drawn("text")

    def _only(self, excluded: Iterable[str]) -> Node | None:
        excluded = set(excluded)
        found = [node for id, node in self.nodes.items() if id not in excluded]
        return found[0] if len(found) == 1 else None


def _not_drawn(what: str) -> NotBuiltError:
    return NotBuiltError(f"Drawing a graph as {what} is not built yet.", fix="Use to_json(), or its nodes and edges.")
