"""What an `Overwrite` among the writes of a superstep means, the same for every channel that holds a value.

1. It replaces the value: the other writes of that superstep, before and after it, leave no trace.
2. Two of them in one superstep contradict each other: ConcurrentUpdateError.
3. ``{"__overwrite__": value}`` and ``{"type": "__overwrite__", "value": value}`` are the same thing from JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pregel.channels.base import MISSING, Missing
from pregel.errors import ConcurrentUpdateError
from pregel.types import OVERWRITE, Overwrite

CARRIERS = (Overwrite, dict)
"""The types a write must have to be an overwrite: hot paths test this first."""


def overwrite_of(write: object) -> Any | Missing:
    """The value that an overwrite carries; MISSING when the write is none."""
    if isinstance(write, Overwrite):
        return write.value
    if isinstance(write, dict):
        if len(write) == 1:
            return write.get(OVERWRITE, MISSING)
        kind = write.get("type")
        if isinstance(kind, str) and kind == OVERWRITE:
            return write.get("value", MISSING)
    return MISSING


def overwrite_in(writes: Sequence[Any], key: str) -> Any | Missing:
    """The value of the one overwrite among the writes of a superstep; MISSING when there is none."""
    if len(writes) == 1:
        return overwrite_of(writes[0])
    found: Any | Missing = MISSING
    for write in writes:
        if isinstance(write, CARRIERS) and (value := overwrite_of(write)) is not MISSING:
            if found is not MISSING:
                raise ConcurrentUpdateError(f"At key '{key}': Can receive only one Overwrite per step.", channel=key)
            found = value
    return found


def surviving(writes: Sequence[Any], key: str, *, guard: bool) -> Any:
    """The write that becomes the value: the overwrite, else the last; `guard` refuses more than one write."""
    if (found := overwrite_in(writes, key)) is not MISSING:
        return found
    if guard and len(writes) != 1:
        raise ConcurrentUpdateError(
            f"At key '{key}': Can receive only one value per step. Use an Annotated key to handle multiple values.",
            channel=key,
        )
    return writes[-1]
