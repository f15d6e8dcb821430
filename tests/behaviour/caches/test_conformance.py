"""The shipped laws on every cache of ours."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from pregel.cache.conformance import CacheLaws
from pregel.cache.memory import InMemoryCache


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Timed(CacheLaws):
    def setup_method(self) -> None:
        self.clock = Clock()
        super().setup_method()

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds


class TestMemory(Timed):
    def open(self) -> Any:
        return nullcontext(InMemoryCache[Any](clock=self.clock))


class TestMemoryAwaited(TestMemory):
    awaited = True
