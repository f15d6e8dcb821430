"""The time that durability ``async`` gives the awaited runs of an event loop: it sends what a run held back.

1. A run that goes on at once takes what it held back along in its next append; one whose node takes longer finds it
   sent, as with `engine.background`.
2. One timer keeps the time for all runs of a loop, while something is held back. It looks each `MOMENT`, and lets go
   what it saw at its last look.
3. A look that comes a moment late says that the loop is busy, as with a crowd: a run that goes on at once needs a few
   turns of the loop to come by, so up to `LATE` such looks do not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from pregel.engine.background import MOMENT

LATE = 4

Held = tuple[Callable[[Any], None], Any]


class Moments:
    """What the runs of one event loop hold back. It does not hold the loop."""

    def __init__(self) -> None:
        self._fresh: list[Held] = []
        self._seen: list[Held] = []  # at the last look
        self._due = 0.0  # when the next look is due, by the loop's clock; 0 where there is none
        self._late = 0

    def watch(self, let_go: Callable[[Any], None], held: Any, loop: asyncio.AbstractEventLoop) -> None:
        """Have this called with what is held back, in a moment or two."""
        self._fresh.append((let_go, held))
        if not self._due:
            self._look_again(loop)

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + MOMENT
        loop.call_at(self._due, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._late < LATE and loop.time() > self._due + MOMENT:
            self._late += 1
            self._look_again(loop)
            return
        due, self._seen, self._fresh = self._seen, self._fresh, []
        self._late, self._due = 0, 0.0
        if self._seen:
            self._look_again(loop)
        for let_go, held in due:
            let_go(held)


_of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, Moments] = WeakKeyDictionary()


def watch(let_go: Callable[[Any], None], held: Any) -> None:
    """Have this called with what is held back, on the running loop, in a moment or two."""
    loop = asyncio.get_running_loop()
    moments = _of_loops.get(loop)
    if moments is None:
        moments = _of_loops[loop] = Moments()
    moments.watch(let_go, held, loop)
