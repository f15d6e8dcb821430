"""The time that durability ``async`` gives awaited runs: one timer for all, which a busy loop does not hurry."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pregel.engine.background import MOMENT
from pregel.engine.moments import LATE, Moments


class Loop:
    """Of an event loop the clock, which the test moves, and the timers."""

    def __init__(self) -> None:
        self.now, self.timers = 100.0, list[tuple[float, Callable[[], Any]]]()

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[..., Any], *args: Any, **options: Any) -> Any:
        self.timers.append((when, lambda: callback(*args)))

    def look(self, late: float = 0.0) -> None:
        """Let the next timer fire, so much later than it was due."""
        (self.now, fire), self.timers = self.timers[0], self.timers[1:]
        self.now += late
        fire()


def test_what_is_held_back_is_let_go_after_a_moment_or_two() -> None:
    loop: Any = Loop()
    moments, gone = Moments(), list[str]()
    moments.watch(gone.append, "a", loop)
    loop.now += MOMENT / 2
    moments.watch(gone.append, "b", loop)
    assert len(loop.timers) == 1, "one timer for all"
    loop.look()
    moments.watch(gone.append, "c", loop)
    assert gone == []
    loop.look()
    assert gone == ["a", "b"]
    loop.look()
    assert (gone, loop.timers) == (["a", "b", "c"], [])
    moments.watch(gone.append, "d", loop)
    assert len(loop.timers) == 1


def test_a_busy_loop_gives_the_runs_some_turns_and_not_for_ever() -> None:
    loop: Any = Loop()
    moments, gone = Moments(), list[str]()
    moments.watch(gone.append, "a", loop)
    for _ in range(2 * LATE + 1):
        loop.look(late=2 * MOMENT)
        assert gone == []
    loop.look(late=2 * MOMENT)
    assert gone == ["a"]
