"""A drawn graph as data: nodes, edges, JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from pregel.constants import END
from pregel.types import StateSnapshot

if TYPE_CHECKING:
    from pregel.graph.draw.scene import Mark

Run: TypeAlias = StateSnapshot | Iterable[StateSnapshot] | None


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

    def draw_mermaid(
        self,
        *,
        with_styles: bool = True,
        curve: str = "linear",
        colors: Mapping[str, str] | None = None,
        wrap_label_n_words: int = 9,
    ) -> str:
        """The graph as Mermaid text, in the reference's shape; `colors` replaces the style of a class."""
        from pregel.graph.draw.mermaid import mermaid

        return mermaid(self, with_styles=with_styles, curve=curve, colors=colors, wrap_label_n_words=wrap_label_n_words)

    def draw_ascii(self, *, run: Run = None) -> str:
        """The graph as lines of text: solid lines are always taken, dotted ones sometimes."""
        from pregel.graph.draw.ascii import text_drawing

        return text_drawing(self, _marks(run))

    def print_ascii(self) -> None:
        """Print the graph as lines of text."""
        print(self.draw_ascii())  # noqa: T201  # printing is what was asked for

    def draw_svg(self, *, run: Run = None, title: str = "graph") -> str:
        """The graph as an SVG picture. `run`, a snapshot of a thread or its history, shows how far each node has come.

        Dashed edges are taken sometimes, labelled with the answer that takes them.
        """
        from pregel.graph.draw.scene import scene
        from pregel.graph.draw.svg import svg

        return svg(scene(self, _marks(run)), title=title)

    def draw_png(self, output_file_path: str | None = None, *, run: Run = None, scale: float = 2.0) -> bytes:
        """The same picture as PNG, also written to a file when one is named; `scale` is pixels per unit.

        It needs Pillow, which the extra ``draw`` installs; MissingExtraError without it.
        """
        from pregel.graph.draw.png import png
        from pregel.graph.draw.scene import scene

        picture = png(scene(self, _marks(run)), scale=scale)
        if output_file_path is not None:
            Path(output_file_path).write_bytes(picture)
        return picture

    def draw_mermaid_png(self, *, output_file_path: str | None = None, **options: Any) -> bytes:
        """The same as `draw_png`: it is painted here, and what the reference's renderer is told means nothing."""
        return self.draw_png(output_file_path)

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        """What a notebook shows."""
        return {"image/svg+xml": self.draw_svg(), "text/plain": self.draw_ascii()}

    def _only(self, excluded: Iterable[str]) -> Node | None:
        excluded = set(excluded)
        found = [node for id, node in self.nodes.items() if id not in excluded]
        return found[0] if len(found) == 1 else None


def _marks(run: Run) -> dict[str, Mark] | None:
    from pregel.graph.draw.marks import marks_of

    return None if run is None else marks_of(run)
