"""A clock that moves only when it is told to."""

from __future__ import annotations

from pregel.engine.ids import TICKS


class FakeClock:
    """Unix time in 100 ns ticks, as `engine.ids.Ids` reads it; `now` is where it starts, in unix seconds."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.ticks = int(now * TICKS)

    def __call__(self) -> int:
        return self.ticks

    def advance(self, seconds: float) -> None:
        """Move on; a negative number is a clock that was set back."""
        self.ticks += int(seconds * TICKS)
