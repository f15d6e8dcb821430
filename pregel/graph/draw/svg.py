"""A scene as SVG: one file without scripts, fonts or links, which browsers, notebooks and editors show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from pregel.graph.draw.curve import beziers
from pregel.graph.draw.scene import Box, Path, Scene, Shape, Text

FONT = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"
DASH = "5 4"


def svg(scene: Scene, *, title: str = "graph") -> str:
    """The XML text."""
    size = f'width="{scene.width:.0f}" height="{scene.height:.0f}" viewBox="0 0 {scene.width:.1f} {scene.height:.1f}"'
    shapes = "\n".join(_MAKERS[type(shape)](shape) for shape in scene.shapes)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">\n'
        f"<title>{_clean(title)}</title>\n{shapes}\n</svg>\n"
    )


def _box(box: Box) -> str:
    line = f' stroke="{box.stroke}" stroke-width="{box.weight}"' if box.stroke else ""
    dash = f' stroke-dasharray="{DASH}"' if box.dashed else ""
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
    return f'<rect {place} rx="{box.radius:.1f}" fill="{box.fill}"{line}{dash}/>'


def _path(path: Path) -> str:
    points = path.points
    data = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    if path.straight:
        data += "".join(f"L{x:.1f} {y:.1f}" for x, y in points[1:])
    else:
        data += "".join("C" + " ".join(f"{x:.1f} {y:.1f}" for x, y in piece) for piece in beziers(points))
    dash = f' stroke-dasharray="{DASH}"' if path.dashed else ""
    style = f'fill="none" stroke="{path.stroke}" stroke-width="{path.weight}" stroke-linejoin="round"'
    drawn = f'<path d="{data}" {style} stroke-linecap="round"{dash}/>'
    if not path.arrow:
        return drawn
    head = " ".join(f"{x:.1f},{y:.1f}" for x, y in arrowhead(path))
    return f'{drawn}\n<polygon points="{head}" fill="{path.stroke}"/>'


def arrowhead(path: Path) -> list[tuple[float, float]]:
    """The triangle at the end of a path."""
    (x0, y0), (x, y) = path.points[-2:]
    if path.straight:
        way = 1 if x > x0 else -1
        return [(x, y), (x - 8 * way, y - 4), (x - 8 * way, y + 4)]
    way = 1 if y > y0 else -1
    return [(x, y), (x - 4, y - 8 * way), (x + 4, y - 8 * way)]


def _text(text: Text) -> str:
    anchor = "" if text.start else ' text-anchor="middle"'
    style = (' font-style="italic"' if text.italic else "") + (' font-weight="600"' if text.bold else "")
    place = f'x="{text.x:.1f}" y="{text.y:.1f}" font-size="{text.size:.0f}" fill={quoteattr(text.color)}'
    return f"<text {place}{anchor}{style}>{_clean(text.text)}</text>"


def _clean(text: str) -> str:
    """Text as XML may hold it: without control characters."""
    return escape("".join(c if c.isprintable() else " " for c in text))


_MAKERS: dict[type[Shape], Callable[[Any], str]] = {Box: _box, Path: _path, Text: _text}
