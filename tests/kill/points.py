"""Where processes die: the default suite has the first and the last of several points, the slow one all others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(points: Iterable[Any]) -> list[Any]:
    """The points, as parameters of a test."""
    first, *others, last = [point if isinstance(point, tuple) else (point,) for point in points]
    slow = [pytest.param(*other, marks=pytest.mark.slow) for other in others]
    return [pytest.param(*first), *slow, pytest.param(*last)]
