"""A drawing as Mermaid text, in the shape that the reference writes: it can be pasted wherever Mermaid is rendered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pregel.constants import END, START

if TYPE_CHECKING:
    from pregel.graph.draw.data import Edge, Graph, Node

HEAD = "---\nconfig:\n  flowchart:\n    curve: {curve}\n---\n"
MARKS = ("*", "_", "`")  # a label between two of these would be Markdown: bold, slanted
COLORS = {"default": "fill:#f2f0ff,line-height:1.2", "first": "fill-opacity:0", "last": "fill:#bfb6fc"}


def mermaid(
    graph: Graph,
    *,
    with_styles: bool = True,
    curve: str = "linear",
    colors: Mapping[str, str] | None = None,
    wrap_label_n_words: int = 9,
) -> str:
    """The text. `colors` replaces the style of class default, first or last."""
    text = HEAD.format(curve=curve) if with_styles else ""
    text += "graph TD;\n"
    if with_styles:
        text += "".join(_node(graph, node) for node in graph.nodes.values() if ":" not in node.id)
    text += _edges(graph, "", with_styles, wrap_label_n_words)
    if with_styles:
        styles = {**COLORS, **(colors or {})}
        text += "".join(f"\tclassDef {name} {style}\n" for name, style in styles.items())
    return text


def _edges(graph: Graph, cluster: str, with_styles: bool, words: int) -> str:
    """The edges within a cluster, and the clusters inside of it."""
    text = "".join(_edge(edge, words) for edge in graph.edges if _common(edge.source, edge.target) == cluster)
    for inner in _clusters(graph, cluster):
        text += f"\tsubgraph {inner.rpartition(':')[2]}\n"
        if with_styles:
            own = [node for node in graph.nodes.values() if node.id.rpartition(":")[0] == inner]
            text += "".join(_node(graph, node) for node in own)
        text += _edges(graph, inner, with_styles, words) + "\tend\n"
    return text


def _common(source: str, target: str) -> str:
    """The innermost cluster that holds both ends."""
    shared = []
    for one, other in zip(source.split(":")[:-1], target.split(":")[:-1], strict=False):
        if one != other:
            break
        shared.append(one)
    return ":".join(shared)


def _clusters(graph: Graph, outer: str) -> list[str]:
    depth = len(outer.split(":")) if outer else 0
    found: dict[str, None] = {}
    for id in graph.nodes:
        parts = id.split(":")[:-1]
        if len(parts) > depth and ":".join(parts[:depth]) == outer:
            found[":".join(parts[: depth + 1])] = None
    return list(found)


def _node(graph: Graph, node: Node) -> str:
    name = f"<p>{node.name}</p>" if node.name.startswith(MARKS) and node.name.endswith(MARKS) else node.name
    if node.id in (START, END):
        kind = "first" if node.id == START else "last"
        return f"\t{escaped(node.id)}([{name}]):::{kind}\n"
    if node.metadata:
        shown = {key: ", ".join(map(str, v)) if isinstance(v, list) else v for key, v in node.metadata.items()}
        rows = "\n".join(f"{key} = {value}" for key, value in shown.items())
        name = f"{name}<hr/><small><em>{rows}</em></small>"
    return f"\t{escaped(node.id)}({name})\n"


def _edge(edge: Edge, words: int) -> str:
    label = edge.data
    if label is None:
        arrow = "-.->" if edge.conditional else "-->"
    else:
        parts = label.split()
        wrapped = "&nbsp<br>&nbsp".join(" ".join(parts[i : i + words]) for i in range(0, len(parts), words))
        arrow = f"-. &nbsp;{wrapped}&nbsp; .->" if edge.conditional else f"-- &nbsp;{wrapped}&nbsp; -->"
    return f"\t{escaped(edge.source)} {arrow} {escaped(edge.target)};\n"


def escaped(id: str) -> str:
    """An id that Mermaid reads as one word: other characters than letters, digits, - and _ as their code."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else f"\\{ord(c):x}" for c in id)
