"""A growth curve as an SVG with both axes logarithmic, so that a power law is a straight line."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from benchmarks.curves import Drawn, Point

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 400, 70, 50, 40, 20
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


class Axis:
    """Decades between two ends, on pixels."""

    def __init__(self, values: Sequence[float], first: float, last: float) -> None:
        logs = [math.log10(value) for value in values]
        self.low, self.high = math.floor(min(logs)), max(math.ceil(max(logs)), math.floor(min(logs)) + 1)
        self.first, self.last = first, last

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.first + part * (self.last - self.first)

    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def svg(title: str, against: str, unit: str, curves: Sequence[Drawn]) -> str:
    """The picture of some curves, each with its exponent."""
    points = [point for curve in curves for point in curve.points]
    x = Axis([size for size, _ in points], LEFT, WIDTH - RIGHT)
    y = Axis([max(cost, 1e-3) for _, cost in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        text(WIDTH / 2, 20, title, "middle"),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, against, "middle"),
        text(LEFT - 8, TOP - 8, unit, "end"),
    ]
    for tick in x.ticks():
        parts += [
            line(x.at(tick), TOP, x.at(tick), HEIGHT - BOTTOM),
            text(x.at(tick), HEIGHT - BOTTOM + 16, f"{tick:,.4g}", "middle"),
        ]
    for tick in y.ticks():
        parts += [
            line(LEFT, y.at(tick), WIDTH - RIGHT, y.at(tick)),
            text(LEFT - 8, y.at(tick) + 4, f"{tick:,.4g}", "end"),
        ]
    for at, curve in enumerate(curves):
        parts += drawing(curve, x, y, COLOURS[at % len(COLOURS)], TOP + 16 + 16 * at)
    return "\n".join([*parts, "</svg>", ""])


def drawing(curve: Drawn, x: Axis, y: Axis, colour: str, legend: float) -> list[str]:
    """The line, its points, and a line of the legend."""

    def place(point: Point) -> tuple[float, float]:
        return x.at(point[0]), y.at(max(point[1], 1e-3))

    places = [place(point) for point in curve.points]
    path = " ".join(f"{left:.1f},{top:.1f}" for left, top in places)
    dots = [f'<circle cx="{left:.1f}" cy="{top:.1f}" r="3" fill="{colour}"/>' for left, top in places]
    said = text(LEFT + 12, legend, f"{curve.side}: size to the power of {curve.exponent:.2f}", "start", colour)
    return [f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>', *dots, said]


def line(left: float, top: float, right: float, bottom: float) -> str:
    """A line of the grid."""
    return f'<line x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" y2="{bottom:.1f}" stroke="#ddd"/>'


def text(left: float, top: float, words: str, anchor: str, colour: str = "#222") -> str:
    """Words at a place."""
    return f'<text x="{left:.1f}" y="{top:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(words)}</text>'
