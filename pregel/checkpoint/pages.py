"""A long list of checkpoints, read some at a time: a caller that stops early pays for what it took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pregel.checkpoint.records import Page, Saved

SIZE = 100  # checkpoints that are read at once


class Pages:
    """Where a walk through a page of checkpoints stands. `at_once`: it is not cut into parts."""

    __slots__ = ("_at_once", "_rest")

    def __init__(self, page: Page, *, at_once: bool = False) -> None:
        self._rest: Page | None = page
        self._at_once = at_once

    def next(self) -> Page | None:
        """What to read now; None when all was given."""
        rest = self._rest
        if rest is None or (rest.limit is not None and rest.limit <= 0):
            return None
        if self._at_once:
            return rest
        return replace(rest, limit=SIZE if rest.limit is None else min(rest.limit, SIZE))

    def took(self, part: Page, found: Sequence[tuple[str, Saved]]) -> list[Saved]:
        """The checkpoints of a part; the next one comes behind them."""
        rest = self._rest
        if rest is None or self._at_once or part.limit is None or len(found) < part.limit:
            self._rest = None
        else:
            limit = None if rest.limit is None else rest.limit - len(found)
            self._rest = replace(rest, before=found[-1][1].id, limit=limit)
        return [saved for _, saved in found]

    def last(self, found: Saved | None) -> list[Saved]:
        """This one alone, if it was found: nothing more is wanted."""
        self._rest = None
        return [] if found is None else [found]
