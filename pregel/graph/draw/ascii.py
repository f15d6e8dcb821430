"""A drawing as text: boxes and lines from box-drawing characters, for terminals and logs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pregel.constants import END, START
from pregel.graph.draw.layout import Line, Spacing, lay_out
from pregel.graph.draw.scene import Mark

if TYPE_CHECKING:
    from pregel.graph.draw.data import Graph

SIGNS: dict[Mark, str] = {"done": "✓", "running": "▶", "waiting": "‖", "failed": "✗"}
_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_GLYPHS = {3: "│", 12: "─", 10: "┌", 6: "┐", 9: "└", 5: "┘", 11: "├", 7: "┤", 14: "┬", 13: "┴", 15: "┼"}
_DASHED = {"│": "┊", "─": "┄"}
_HEIGHT, _GAP = 3, 3


def text_drawing(graph: Graph, marks: Mapping[str, Mark] | None = None) -> str:
    """The lines of text. Solid lines are always taken, dotted ones sometimes; a label stands beside its line."""
    names = {id: _name(id, (marks or {}).get(id)) for id in graph.nodes}
    labels: dict[tuple[str, str], str] = {}
    dashed: dict[tuple[str, str], bool] = {}
    for edge in graph.edges:
        pair = (edge.source, edge.target)
        labels[pair] = ", ".join(filter(None, [labels.get(pair), edge.data]))
        dashed[pair] = dashed.get(pair, True) and edge.conditional
    lines = [Line(*pair, (len(label) + 4.0 if label else 0.0, 1.0 if label else 0.0)) for pair, label in labels.items()]
    sizes = {id: (len(name) + 4.0, float(_HEIGHT)) for id, name in names.items()}
    for (source, target), label in labels.items():
        if source == target:
            sizes[source] = (sizes[source][0] + 2 * (len(label) + 3), _HEIGHT)
    spacing = Spacing(across=3, down=_GAP, ends=4, lane=1)
    placed = lay_out(sizes, lines, first=START, last=END if END in sizes else None, spacing=spacing)
    page = Page()
    for line in placed.lines:
        page.route(line, dashed[line.source, line.target])
    for line in placed.lines:
        label = labels[line.source, line.target]
        if label and line.points:
            page.write(round(line.middle[0]) - (len(label) + 2) // 2, round(line.middle[1]), f" {label} ")
    for id, (x, y) in placed.centres.items():
        own = [labels[pair] for pair in labels if pair == (id, id)]
        page.box(round(x - (len(names[id]) + 4) / 2), round(y - 1.5), names[id], loop=own[0] if own else None)
    return page.text()


def _name(id: str, mark: Mark | None) -> str:
    shown = {START: "start", END: "end"}.get(id, id)
    return f"{SIGNS[mark]} {shown}" if mark else shown


class Page:
    """Characters by place. Lines are kept as the directions in which they leave a place, so that crossings join."""

    def __init__(self) -> None:
        self.arms: dict[tuple[int, int], int] = {}
        self.dashed: dict[tuple[int, int], bool] = {}
        self.over: dict[tuple[int, int], str] = {}

    def route(self, line: Line, dashed: bool) -> None:
        """Draw a line through its points: down, across in the middle, down."""
        points = [(round(x), round(y)) for x, y in line.points]
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            turn = (y0 + y1) // 2
            self._vertical(x0, y0, turn, dashed)
            self._horizontal(x0, x1, turn, dashed)
            self._vertical(x1, turn, y1, dashed)
        if points:
            (_, before), (x, y) = points[-2:]
            self.over[x, y] = "▼" if y > before else "▲"

    def _vertical(self, x: int, y0: int, y1: int, dashed: bool) -> None:
        low, high = sorted((y0, y1))
        for y in range(low, high + 1):
            arms = (_UP if y > low else 0) | (_DOWN if y < high else 0)
            self._add(x, y, arms, dashed)

    def _horizontal(self, x0: int, x1: int, y: int, dashed: bool) -> None:
        low, high = sorted((x0, x1))
        for x in range(low, high + 1):
            arms = (_LEFT if x > low else 0) | (_RIGHT if x < high else 0)
            self._add(x, y, arms, dashed)

    def _add(self, x: int, y: int, arms: int, dashed: bool) -> None:
        self.arms[x, y] = self.arms.get((x, y), 0) | arms
        self.dashed[x, y] = self.dashed.get((x, y), True) and dashed

    def write(self, x: int, y: int, text: str) -> None:
        """Text over everything else."""
        for place, character in enumerate(text):
            self.over[x + place, y] = character

    def box(self, x: int, y: int, text: str, *, loop: str | None = None) -> None:
        """A box around a line of text; what arrives at its border keeps its arrowhead above or below."""
        width = len(text) + 2
        heads = {place: sign for place, sign in self.over.items() if sign in "▼▲"}
        self.write(x, y, "╭" + "─" * width + "╮")
        self.write(x, y + 1, f"│ {text} │" + (f" ⟲ {loop}" if loop is not None else ""))
        self.write(x, y + 2, "╰" + "─" * width + "╯")
        for column in range(x + 1, x + width + 1):
            for row in (y, y + 2):
                if (column, row) in heads:
                    self.over[column, row] = heads[column, row]
                elif self.arms.get((column, row)):
                    self.over[column, row] = "┴" if row == y else "┬"

    def text(self) -> str:
        places = [*self.arms, *self.over]
        rows = []
        for y in range(min((y for _, y in places), default=0), max((y for _, y in places), default=-1) + 1):
            columns = [x for x, row in places if row == y]
            row = "".join(self._at(x, y) for x in range(min(x for x, _ in places), max(columns, default=-1) + 1))
            rows.append(row.rstrip())
        return "\n".join(rows) + "\n"

    def _at(self, x: int, y: int) -> str:
        if (x, y) in self.over:
            return self.over[x, y]
        arms = self.arms.get((x, y), 0)
        glyph = _GLYPHS.get(arms, "│" if arms & 3 else "─" if arms else " ")
        return _DASHED.get(glyph, glyph) if self.dashed.get((x, y)) else glyph
