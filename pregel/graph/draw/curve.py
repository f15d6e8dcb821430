"""A smooth curve through the points of an edge: vertical at its ends, and never turning back in between."""

from __future__ import annotations

from collections.abc import Sequence

Point = tuple[float, float]
STEPS = 16  # straight pieces between two points


def beziers(points: Sequence[Point]) -> list[tuple[Point, Point, Point]]:
    """Two control points and an end for each piece. The slopes are those of monotone cubic interpolation over y
    (Fritsch and Carlson, 1980), so the curve stays between its points."""
    slopes = [0.0, *(_slope(*points[i - 1 : i + 2]) for i in range(1, len(points) - 1)), 0.0]
    pieces = []
    for (x0, y0), (x1, y1), m0, m1 in zip(points, points[1:], slopes, slopes[1:], strict=False):
        third = (y1 - y0) / 3
        pieces.append(((x0 + m0 * third, y0 + third), (x1 - m1 * third, y1 - third), (x1, y1)))
    return pieces


def _slope(before: Point, at: Point, after: Point) -> float:
    one, two = at[1] - before[1], after[1] - at[1]
    if not one or not two:
        return 0.0
    left, right = (at[0] - before[0]) / one, (after[0] - at[0]) / two
    return 0.0 if left * right <= 0 else 3 * (one + two) / ((2 * two + one) / left + (two + 2 * one) / right)


def flattened(points: Sequence[Point]) -> list[Point]:
    """The curve as short straight pieces."""
    found = [points[0]]
    for b, c, d in beziers(points):
        a = found[-1]
        for step in range(1, STEPS + 1):
            t = step / STEPS
            p, q, r, s = (1 - t) ** 3, 3 * (1 - t) ** 2 * t, 3 * (1 - t) * t**2, t**3
            found.append((p * a[0] + q * b[0] + r * c[0] + s * d[0], p * a[1] + q * b[1] + r * c[1] + s * d[1]))
    return found
