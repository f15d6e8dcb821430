"""The shipped laws on every store of ours."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from pregel.store.conformance import IndexLaws, StoreLaws
from pregel.store.memory import InMemoryStore


class Clock:
    """Unix seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class Timed:
    clock: Clock

    def pass_time(self, seconds: float) -> None:
        self.clock.now += seconds


class Plain(Timed, StoreLaws):
    def setup_method(self) -> None:
        self.clock = Clock()
        super().setup_method()


class Indexed(Timed, IndexLaws):
    def prepare(self) -> None:
        self.clock = Clock()
        super().prepare()


class TestMemory(Plain):
    newest_first = False

    def open(self) -> Any:
        return nullcontext(InMemoryStore(ttl=self.ttl, clock=self.clock))


class TestMemoryAwaited(TestMemory):
    awaited = True


class TestMemoryIndex(Indexed):
    def open(self) -> Any:
        return nullcontext(InMemoryStore(index=self.index, ttl=self.ttl, clock=self.clock))


class TestMemoryIndexAwaited(TestMemoryIndex):
    awaited = True
