"""A scene as PNG, painted here by Pillow (extra ``draw``): no network, no browser, no other program."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

from pregel.extras import extra
from pregel.graph.draw.curve import flattened
from pregel.graph.draw.scene import Box, Path, Scene, Shape, Text
from pregel.graph.draw.svg import arrowhead

SMOOTH = 2  # painted this much larger, then made smaller


def png(scene: Scene, *, scale: float = 2.0) -> bytes:
    """The file. `scale` is pixels per unit. MissingExtraError when Pillow is not installed."""
    with extra("draw", "A picture as PNG"):
        from PIL import Image, ImageDraw, ImageFont
    size = (round(scene.width * scale), round(scene.height * scale))
    image = Image.new("RGB", (size[0] * SMOOTH, size[1] * SMOOTH), "white")
    brush = Brush(ImageDraw.Draw(image), ImageFont.load_default, scale * SMOOTH)
    for shape in scene.shapes:
        _PAINTERS[type(shape)](brush, shape)
    out = io.BytesIO()
    image.resize(size, Image.Resampling.LANCZOS).save(out, "PNG", optimize=True)
    return out.getvalue()


class Brush:
    """Paints shapes onto an image."""

    def __init__(self, draw: Any, font: Callable[[float], Any], scale: float) -> None:
        self.draw, self.font, self.scale = draw, font, scale

    def box(self, box: Box) -> None:
        s = self.scale
        place = [box.x * s, box.y * s, (box.x + box.width) * s, (box.y + box.height) * s]
        line = {"outline": box.stroke, "width": round(box.weight * s)} if box.stroke else {}
        self.draw.rounded_rectangle(place, box.radius * s, fill=box.fill, **line)

    def path(self, path: Path) -> None:
        points = list(path.points) if path.straight else flattened(path.points)
        for piece in dashes(points) if path.dashed else [points]:
            scaled = [(x * self.scale, y * self.scale) for x, y in piece]
            self.draw.line(scaled, fill=path.stroke, width=round(path.weight * self.scale), joint="curve")
        if path.arrow:
            self.draw.polygon([(x * self.scale, y * self.scale) for x, y in arrowhead(path)], fill=path.stroke)

    def text(self, text: Text) -> None:
        bold = {"stroke_width": round(0.02 * text.size * self.scale), "stroke_fill": text.color} if text.bold else {}
        place = (text.x * self.scale, text.y * self.scale)
        anchor = "ls" if text.start else "ms"
        self.draw.text(place, text.text, fill=text.color, font=self.font(text.size * self.scale), anchor=anchor, **bold)


def dashes(points: list[tuple[float, float]], on: float = 5.0, off: float = 4.0) -> list[list[tuple[float, float]]]:
    """A line in pieces of length `on`, `off` apart."""
    pieces: list[list[tuple[float, float]]] = [[points[0]]]
    left, drawing = on, True
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        length = ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5
        at = 0.0
        while length - at > left:
            at += left
            point = (x0 + (x1 - x0) * at / length, y0 + (y1 - y0) * at / length)
            if drawing:
                pieces[-1].append(point)
            else:
                pieces.append([point])
            drawing = not drawing
            left = on if drawing else off
        left -= length - at
        if drawing:
            pieces[-1].append((x1, y1))
    return [piece for piece in pieces if len(piece) > 1]


_PAINTERS: dict[type[Shape], Callable[[Brush, Any], None]] = {Box: Brush.box, Path: Brush.path, Text: Brush.text}
