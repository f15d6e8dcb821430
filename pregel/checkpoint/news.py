"""What wakes those who follow a thread: a pause that grows, or word from the store.

A wait may end too early or too late, never not at all: whoever waits looks again and waits anew.
"""

from __future__ import annotations

import time
from typing import Protocol

SHORTEST, LONGEST = 0.005, 0.25  # seconds between two looks where the store says nothing
SPOKEN = 1.0  # the longest where it does


class News(Protocol):
    """Waits until there may be something new about a thread."""

    longest: float
    """Seconds that a wait should take at most."""

    def wait(self, tno: int, seconds: float) -> None:
        """Come back when there may be something new, or after so many seconds."""


class AsyncNews(Protocol):
    """The same, awaited."""

    longest: float

    async def wait(self, tno: int, seconds: float) -> None:
        """Come back when there may be something new, or after so many seconds."""


class Pauses:
    """A store that says nothing: there may be something new at any time."""

    longest = LONGEST

    def wait(self, tno: int, seconds: float) -> None:
        time.sleep(seconds)


class AsyncPauses:
    """The same, awaited."""

    longest = LONGEST

    async def wait(self, tno: int, seconds: float) -> None:
        from asyncio import sleep  # whoever awaits has it loaded

        await sleep(seconds)
