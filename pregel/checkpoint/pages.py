"""A long list of checkpoints, read some at a time: a caller that stops early pays for what it took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import index
from typing import Any

from pregel.checkpoint.records import Page, Saved
from pregel.errors import InvalidInputError

SIZE = 100  # checkpoints that are read at once


def asked_page(ns: str | None, filter: Any, before: Any, limit: Any) -> Page:
    """The page that a caller asks for; InvalidInputError for what is no filter, no config or no number."""
    if filter is not None and not isinstance(filter, Mapping):
        raise InvalidInputError(
            f"filter is {filter!r}.", fix='Give a dict of metadata, such as {"source": "loop"}, or leave it out.'
        )
    place = before.get("configurable") if isinstance(before, Mapping) else before
    if place is not None and not isinstance(place, Mapping):
        raise InvalidInputError(
            f"before is {before!r}.", fix="Give the config of a checkpoint, such as a snapshot's, or leave it out."
        )
    return Page(ns, (place or {}).get("checkpoint_id") or None, checked_limit(limit), filter)


def checked_limit(limit: Any) -> int | None:
    """How many are wanted, None for all; InvalidInputError for what is no whole number from 0 on."""
    if limit is None:
        return None
    if isinstance(limit, bool) or not hasattr(limit, "__index__") or index(limit) < 0:
        raise InvalidInputError(f"limit is {limit!r}.", fix="Give a whole number from 0 on, or leave it out.")
    return index(limit)


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
