"""How many random programs are drawn: the same few in every run, or as many new ones as the environment asks for."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings

DEEP = int(os.environ.get("PREGEL_DIFFERENTIAL", "0"))
Test = TypeVar("Test", bound=Callable[..., None])


def examples(count: int) -> Callable[[Test], Test]:
    """Draw that many programs, or as many new ones as the environment asks for."""
    return settings(
        max_examples=DEEP or count,
        derandomize=not DEEP,
        database=None,
        deadline=None,
        phases=tuple(Phase) if DEEP else (Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
