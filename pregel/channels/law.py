"""Whether a reducer of batches keeps the law of batches: two batches in turn make what they make as one.

1. It is tried on copies of what was written, on top of an empty value, at the first updates of a reducer: the state of
   the run is not touched, and a reducer that fails or cannot be tried is let be.
2. What is stored does not depend on the law, since each batch is folded as it was recorded. But whoever merges batches
   does: the reference, and a superstep that runs two nodes at once instead of one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any
from weakref import WeakKeyDictionary

from pregel.errors import ReducerLawError
from pregel.warnings import warn_caller

TRIES = 2  # of one reducer in a process

_tried: tuple[WeakKeyDictionary[Any, int], WeakKeyDictionary[Any, int]] = WeakKeyDictionary(), WeakKeyDictionary()


def check_law(
    reducer: Callable[[Any, Sequence[Any]], Any],
    start: Callable[[], Any],
    writes: Sequence[Any],
    *,
    channel: str,
    strict: bool,
) -> None:
    """Try the law on these writes; a warning, or ReducerLawError when `strict`, for a reducer that breaks it."""
    try:
        tried = _tried[strict]
        if (tries := tried.get(reducer, 0)) >= TRIES:
            return
        tried[reducer] = tries + 1
        first, second, third, fourth = (deepcopy([*writes]) for _ in range(4))  # it may change what it is given
        in_turn = reducer(reducer(start(), first), second)
        at_once = reducer(start(), third + fourth)
        kept = bool(in_turn == at_once)
    except Exception:  # of the reducer, of a comparison, of a thing that cannot be copied: nothing is known then
        return
    if kept:
        return
    what = (
        f"The reducer of {channel!r} breaks the law of batches: {_short(writes)} in two batches makes "
        f"{_short(in_turn)}, in one {_short(at_once)}."
    )
    fix = "A DeltaChannel's reducer must give the same for xs and then ys as for xs + ys."
    if strict:
        raise ReducerLawError(what, fix=fix, channel=channel)
    warn_caller(f"{what} {fix}")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
