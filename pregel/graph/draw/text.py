"""How wide a text is, near enough to draw a box around it: no font is asked."""

from __future__ import annotations

from unicodedata import east_asian_width

_NARROW, _WIDE = set("iljtfrI.,:;'|!()[]{} -"), set("mwMW@%&")


def text_width(text: str, size: float) -> float:
    """The width of a line in a sans-serif font of this size, rather too wide than too narrow."""
    return sum(_part(c) for c in text) * size


def _part(c: str) -> float:
    if c in _NARROW:
        return 0.36
    if c in _WIDE or c.isupper():
        return 0.8
    return 1.05 if east_asian_width(c) in "WF" else 0.6
