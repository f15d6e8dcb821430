"""What a reducer of batches was given since the last checkpoint, so that a journal can store that instead of the value.

1. A batch is what one superstep wrote, in task order. A value is read back by one call of the reducer for each recorded
   batch, so any deterministic reducer gives what it gave when it ran, whether or not it keeps the law of batches.
2. The record names the reducer. Another one would change history without a word: it is refused.
3. A value that was replaced, and one of which nothing is known, is stored whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pregel.errors import ReducerChanged

Refold = Callable[[Any, Sequence[Sequence[Any]]], Any]
"""(whole value, batches) -> the value after them; changes neither."""


class Batched(NamedTuple):
    """A value to be stored, and the batches that made it of `base`, what was stored before."""

    value: Any
    batches: Sequence[Sequence[Any]]
    base: Any  # None when the value has to be stored whole
    fold: str
    refold: Refold
    every: int | None = None  # updates after which the whole value is stored; None leaves that to the journal


class Unfolded:
    """A stored value that only its reducer can make: a whole value and the batches since then."""

    __slots__ = ("batches", "fold", "n", "root")

    def __init__(self, root: Any, batches: Sequence[Sequence[Any]], fold: str, n: int | None) -> None:
        self.root, self.batches, self.fold = root, batches, fold
        self.n = n  # how long the value has to be

    def folded(self, refold: Refold, fold: str, channel: str) -> Any:
        """The value. ReducerChanged when the reducer is not the one that made it."""
        if fold != self.fold:
            raise self.changed(channel, f"is folded by {fold!r} now")
        value = refold(self.root, self.batches)
        if length_of(value) != self.n:
            raise self.changed(channel, f"has another length when it is folded now ({length_of(value)}, not {self.n})")
        return value

    def changed(self, channel: str, what: str) -> ReducerChanged:
        """The error for a reader that cannot make the value that was there."""
        return ReducerChanged(
            f"{channel!r} was stored as what {self.fold!r} was given, and {what}: history would change silently.",
            fix="Give the DeltaChannel that reducer, or its name as name=. To go on with another one, run the old "
            "graph once more: update_state(config, {key: Overwrite(value)}) stores the value whole.",
            channel=channel,
        )


class Batches:
    """What a channel remembers of its writes between two checkpoints."""

    __slots__ = ("base", "every", "fold", "refold", "steps")

    def __init__(self, fold: str, refold: Refold, every: int | None) -> None:
        self.fold, self.refold, self.every = fold, refold, every
        self.forget()

    def since(self, stored: object) -> Batches:
        """The same for a channel that starts from what was stored; from nothing if that is None."""
        new = Batches(self.fold, self.refold, self.every)
        new.base = stored
        return new

    def forget(self) -> None:
        """Nothing is known: the value was replaced."""
        self.base: Any = None
        self.steps: list[Sequence[Any]] = []

    def note(self, writes: Sequence[Any]) -> None:
        """The reducer has folded these writes in."""
        if self.base is not None:
            self.steps.append(tuple(writes))

    def log(self, value: Any) -> Batched:
        """The value with how it came about; from now on this is what was stored."""
        said = Batched(value, self.steps, self.base, self.fold, self.refold, self.every)
        self.base, self.steps = value, []
        return said


def length_of(value: object) -> int | None:
    """How long a plain container is; None for what has no length that can be relied on."""
    return len(value) if isinstance(value, list | tuple | dict | set | frozenset | str | bytes) else None
