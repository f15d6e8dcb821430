"""A drawing as plain shapes, in the order in which they are painted: what both SVG and PNG are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from pregel.constants import END, START
from pregel.graph.draw.layout import Layout, Line, Point, Size, Spacing, lay_out
from pregel.graph.draw.text import text_width

if TYPE_CHECKING:
    from pregel.graph.draw.data import Graph, Node

Mark = Literal["done", "running", "waiting", "failed"]
MARGIN, PADDING, TITLE = 20.0, 16.0, 24.0
NAME, SMALL = 15.0, 11.0  # font sizes
INK, LINE, PAPER, MUTED = "#1f2430", "#596275", "#ffffff", "#6b7280"
CLUSTER = "#fafbff"
PLAIN = ("#eef0fb", "#7a84c9")  # fill and border of a node
MARKS: dict[Mark, tuple[str, str]] = {
    "done": ("#e3f5e8", "#2e8b4f"),
    "running": ("#dcebff", "#2166d1"),
    "waiting": ("#fff2d1", "#b77a00"),
    "failed": ("#fde3e1", "#c5352b"),
}
SYMBOLS: dict[Mark, tuple[tuple[Point, ...], ...]] = {  # strokes in a badge of radius 1
    "done": (((-0.45, 0.02), (-0.12, 0.38), (0.48, -0.36)),),
    "running": (((-0.25, -0.45), (0.5, 0.0), (-0.25, 0.45), (-0.25, -0.45)),),
    "waiting": (((-0.22, -0.4), (-0.22, 0.4)), ((0.22, -0.4), (0.22, 0.4))),
    "failed": (((-0.36, -0.36), (0.36, 0.36)), ((-0.36, 0.36), (0.36, -0.36))),
}


@dataclass(slots=True)
class Box:
    """A rounded rectangle, from its top left corner."""

    x: float
    y: float
    width: float
    height: float
    radius: float
    fill: str
    stroke: str = ""
    weight: float = 1.5
    dashed: bool = False


@dataclass(slots=True)
class Path:
    """A curve through points, vertical at each of them, with an arrowhead at its end; or straight strokes."""

    points: Sequence[Point]
    stroke: str = LINE
    weight: float = 1.5
    dashed: bool = False
    arrow: bool = True
    straight: bool = False


@dataclass(slots=True)
class Text:
    """A line of text, centred on x unless `start`; y is its baseline."""

    x: float
    y: float
    text: str
    size: float = NAME
    color: str = INK
    italic: bool = False
    bold: bool = False
    start: bool = False


Shape: TypeAlias = Box | Path | Text


@dataclass(slots=True)
class Scene:
    """Shapes, and the size of the picture in pixels."""

    width: float
    height: float
    shapes: list[Shape] = field(default_factory=list)


@dataclass(slots=True)
class _Part:
    """A cluster that is laid out: its layout, and the parts inside of it."""

    layout: Layout
    sizes: dict[str, Size]
    inner: dict[str, _Part]


def scene(graph: Graph, marks: Mapping[str, Mark] | None = None) -> Scene:
    """The shapes of a drawing; `marks` says how far each node of a run has come."""
    marks = marks or {}
    part = _part(graph, "")
    made = Scene(part.layout.width + 2 * MARGIN, part.layout.height + 2 * MARGIN)
    _paint(graph, part, "", MARGIN, MARGIN, marks, made.shapes)
    if marks:
        _legend(made, [mark for mark in MARKS if mark in marks.values()])
    made.shapes.insert(0, Box(0, 0, made.width, made.height, 0, PAPER))
    return made


# -- sizes and places --------------------------------------------------------------------------------------------------


def _part(graph: Graph, cluster: str) -> _Part:
    """A cluster laid out, what is inside of it first."""
    inner: dict[str, _Part] = {}
    sizes: dict[str, Size] = {}
    for id, node in graph.nodes.items():
        own = _own(id, cluster)
        if own is None:
            continue
        if own == id:
            sizes[id] = _size(node)
        elif own not in inner:
            inner[own] = part = _part(graph, own)
            width = max(part.layout.width, text_width(own.rpartition(":")[2], SMALL) + 24)
            sizes[own] = (width + 2 * PADDING, part.layout.height + 2 * PADDING + TITLE)
    merged = _merged(graph, cluster)
    lines = [Line(*ends, _label_size(label)) for ends, (label, _) in merged.items()]
    room = dict(sizes)
    for (source, target), (label, _) in merged.items():
        if source == target:  # the loop stands beside its node
            room[source] = (sizes[source][0] + 2 * (22 + _label_size(label)[0]), sizes[source][1])
    first = START if START in sizes else None
    return _Part(lay_out(room, lines, first=first, last=END if END in sizes else None, spacing=Spacing()), sizes, inner)


def _own(id: str, cluster: str) -> str | None:
    """What stands for a node in a cluster: itself, the cluster around it there, or nothing."""
    prefix = f"{cluster}:" if cluster else ""
    if not id.startswith(prefix):
        return None
    rest = id[len(prefix) :]
    return prefix + rest.partition(":")[0]


def _merged(graph: Graph, cluster: str) -> dict[tuple[str, str], tuple[str, bool]]:
    """The edges of a cluster, one for each pair of ends: its labels, and whether it is only taken sometimes."""
    found: dict[tuple[str, str], tuple[str, bool]] = {}
    for edge in graph.edges:
        ends = _own(edge.source, cluster), _own(edge.target, cluster)
        if ends[0] is None or ends[1] is None or (ends[0] == ends[1] and edge.source != edge.target):
            continue
        pair = (ends[0], ends[1])
        labels, conditional = found.get(pair, ("", True))
        label = edge.data or ""
        found[pair] = (f"{labels}, {label}" if labels and label else labels or label, conditional and edge.conditional)
    return found


def _size(node: Node) -> Size:
    if node.id.rpartition(":")[2] in (START, END):
        return text_width(_title(node), NAME) + 30, 30.0
    rows = notes(node)
    width = max([text_width(node.name, NAME), *(text_width(row, SMALL) for row in rows)])
    return max(64.0, width + 34), 40.0 + 15 * len(rows)


def _label_size(label: str) -> Size:
    return (text_width(label, SMALL) + 12, 18.0) if label else (0.0, 0.0)


def _title(node: Node) -> str:
    return {START: "start", END: "end"}.get(node.id.rpartition(":")[2], node.name)


def notes(node: Node) -> list[str]:
    """What stands below a node's name."""
    shown = []
    for key, value in (node.metadata or {}).items():
        if key == "__tools":
            shown.append(", ".join(value) if len(value) < 4 else f"{', '.join(value[:3])} and {len(value) - 3} more")
        elif key == "defer":
            shown.append("waits for all others")
        else:
            shown.append(f"pauses {value}" if key == "__interrupt" else f"{key} = {value}")
    return [row if len(row) <= 48 else row[:47] + "…" for row in shown]


# -- shapes ------------------------------------------------------------------------------------------------------------


def _paint(
    graph: Graph, part: _Part, cluster: str, left: float, top: float, marks: Mapping[str, Mark], shapes: list[Shape]
) -> None:
    merged = _merged(graph, cluster)
    for id, inner in part.inner.items():
        x, y = part.layout.centres[id]
        width, height = part.sizes[id]
        corner = (left + x - width / 2, top + y - height / 2)
        shapes.append(Box(*corner, width, height, 10, CLUSTER, "#b9bfdf", 1.2))
        shapes.append(Text(corner[0] + 12, corner[1] + 17, id.rpartition(":")[2], SMALL, MUTED, bold=True, start=True))
        inset = (width - inner.layout.width) / 2
        _paint(graph, inner, id, corner[0] + inset, corner[1] + PADDING + TITLE - 4, marks, shapes)
    for line in part.layout.lines:
        label, conditional = merged[line.source, line.target]
        _paint_line(line, label, conditional, part, left, top, shapes, CLUSTER if cluster else PAPER)
    for id in part.sizes:
        if id not in part.inner:
            x, y = part.layout.centres[id]
            _paint_node(graph.nodes[id], left + x, top + y, part.sizes[id], marks.get(id), shapes)


def _paint_line(
    line: Line,
    label: str,
    conditional: bool,
    part: _Part,
    left: float,
    top: float,
    shapes: list[Shape],
    background: str,
) -> None:
    if line.source == line.target:
        x, y = part.layout.centres[line.source]
        width, height = part.sizes[line.source]
        edge, y = left + x + width / 2, top + y
        loop = [
            (edge, y - height / 4),
            (edge + 16, y - height / 4),
            (edge + 16, y + height / 4),
            (edge, y + height / 4),
        ]
        shapes.append(Path(loop, dashed=conditional, straight=True))
        if label:
            shapes.append(Text(edge + 22, y + 4, label, SMALL, MUTED, start=True))
        return
    shapes.append(Path([(left + x, top + y) for x, y in line.points], dashed=conditional))
    if label:
        x, y = left + line.middle[0], top + line.middle[1]
        width, height = line.label
        shapes.append(Box(x - width / 2, y - height / 2, width, height, 5, background))
        shapes.append(Text(x, y + 4, label, SMALL, INK))


def _paint_node(node: Node, x: float, y: float, size: Size, mark: Mark | None, shapes: list[Shape]) -> None:
    width, height = size
    left, top = x - width / 2, y - height / 2
    if node.id.rpartition(":")[2] in (START, END):
        ending = node.id.rpartition(":")[2] == END
        shapes.append(Box(left, top, width, height, height / 2, INK if ending else PAPER, INK))
        shapes.append(Text(x, y + 5, _title(node), NAME, PAPER if ending else INK))
        return
    fill, stroke = MARKS[mark] if mark else PLAIN
    shapes.append(Box(left, top, width, height, 9, fill, stroke, 2.4 if mark else 1.5))
    rows = notes(node)
    baseline = y + 5 - 7.5 * len(rows)
    shapes.append(Text(x, baseline, node.name, NAME, INK, bold=True))
    for number, row in enumerate(rows, 1):
        shapes.append(Text(x, baseline + 1 + 15 * number, row, SMALL, MUTED, italic=True))
    if mark:
        _paint_badge(mark, left + width, top, shapes)


def _paint_badge(mark: Mark, x: float, y: float, shapes: list[Shape]) -> None:
    radius, stroke = 9.0, MARKS[mark][1]
    shapes.append(Box(x - radius, y - radius, 2 * radius, 2 * radius, radius, stroke, PAPER, 1.5))
    for strokes in SYMBOLS[mark]:
        points = [(x + radius * a, y + radius * b) for a, b in strokes]
        shapes.append(Path(points, PAPER, 2.0, arrow=False, straight=True))


def _legend(made: Scene, marks: Sequence[Mark]) -> None:
    """One badge and word for each mark that is there, below the drawing."""
    widths = [34 + text_width(mark, SMALL) for mark in marks]
    made.width = max(made.width, sum(widths) + 2 * MARGIN)
    x, y = (made.width - sum(widths)) / 2, made.height + 4
    for mark, width in zip(marks, widths, strict=True):
        _paint_badge(mark, x + 10, y, made.shapes)
        made.shapes.append(Text(x + 24, y + 4, mark, SMALL, MUTED, start=True))
        x += width
    made.height = y + MARGIN
