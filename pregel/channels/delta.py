"""A channel for long logs: it folds the batch of a superstep at once, and its whole value is stored only seldom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Self

from pregel.channels.base import MISSING, BaseChannel, DeltaSnapshot, Missing, Value, copy_container
from pregel.channels.batches import Batches, Unfolded
from pregel.channels.binop import Start, same_reducer, start_of
from pregel.channels.growth import Growth, growth_of
from pregel.channels.law import TRIES, check_law
from pregel.channels.overwrite import overwrite_in, overwrite_of
from pregel.errors import DefinitionError

PendingWrite = tuple[str, str, Any]


class DeltaChannel(Generic[Value], BaseChannel[Value, Any, Value]):
    """``reducer(value, writes)``, called once per superstep with all its writes in task order.

    The reducer must be deterministic and give the same for one batch as for its parts in turn. The value starts from
    ``default_factory()``, else from ``typ()``, else from ``[]``. `snapshot_frequency` is the number of updates after
    which the whole value is stored; None leaves that to the journal. `name` is stored with the deltas, so that a
    reducer that was moved or renamed still counts as the same; it defaults to ``module:qualname``.

    A reducer may have an attribute `ready`: a function that each write goes through once, before it is folded and
    stored.
    """

    __slots__ = (
        "default_factory",
        "growth",
        "name",
        "reducer",
        "snapshot_frequency",
        "start",
        "strict",
        "tries",
        "value",
    )
    expires: ClassVar[bool] = False

    def __init__(
        self,
        reducer: Callable[[Value, Sequence[Any]], Value],
        typ: Any = None,
        *,
        snapshot_frequency: int | None = None,
        name: str | None = None,
        default_factory: Start[Value] | None = None,
    ) -> None:
        if snapshot_frequency is not None and snapshot_frequency <= 0:
            raise DefinitionError(f"snapshot_frequency must be a positive int, got {snapshot_frequency}.")
        super().__init__(list if typ is None else typ)
        self.reducer = reducer
        self.snapshot_frequency = snapshot_frequency
        self.name = name
        self.default_factory = default_factory
        self.start = self._start(default_factory)
        self.value: Value = copy_container(self.start())
        self.growth = self._growth() if type(self) is DeltaChannel else None
        self.strict = False
        self.tries = TRIES  # of the reducer's law; a graph sets them back

    def _growth(self) -> Growth | Batches:
        """Batches, since a reducer may change any item that it is given; ours do not."""
        known = growth_of(self.reducer, None)
        if known is None:
            return Batches(self.fold, self.refold, self.snapshot_frequency)
        known.every = self.snapshot_frequency
        return known

    def _start(self, default_factory: Start[Value] | None) -> Start[Value]:
        start = default_factory or start_of(self.typ)
        if start is None:
            raise DefinitionError(
                f"A DeltaChannel needs a value to start from, and {self.typ!r} cannot be called without arguments.",
                fix="Give default_factory=, or a type like list.",
            )
        return start

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, DeltaChannel)
            and type(other) is type(self)
            and (other.snapshot_frequency, other.name) == (self.snapshot_frequency, self.name)
            and same_reducer(self.reducer, other.reducer)
        )

    @property
    def fold(self) -> str:
        """The name under which the reducer's deltas are stored."""
        if self.name is not None:
            return self.name
        reducer = self.reducer if hasattr(self.reducer, "__qualname__") else type(self.reducer)
        return f"{reducer.__module__}:{reducer.__qualname__}"

    def for_type(self, typ: Any, default_factory: Start[Value] | None = None) -> Self:
        """A fresh channel with these settings for a key annotated with `typ`, and that key's default if it has one."""
        new = self.copy()
        new.typ = typ
        new.default_factory = default_factory or self.default_factory
        new.start = new._start(new.default_factory)
        new.value = copy_container(new.start())
        return new

    def on_trial(self, *, strict: bool) -> Self:
        """The channel with its law tried at the first updates; `strict` makes an error of the warning."""
        new = self.copy()
        new.strict = strict
        new.tries = 0 if isinstance(self.growth, Batches) else TRIES
        return new

    def update(self, values: Sequence[Any]) -> bool:
        if not values:
            return False
        whole = overwrite_in(values, self.key)
        ready = getattr(self.reducer, "ready", None)
        if whole is not MISSING:
            self.value = self._base(whole if ready is None or whole is None else ready(whole))
            if self.growth is not None:
                self.growth.forget()
            return True
        if ready is not None:
            values = [ready(value) for value in values]
        if self.tries < TRIES:
            self.tries += 1
            check_law(self.reducer, lambda: copy_container(self.start()), values, channel=self.key, strict=self.strict)
        self.value = self._folded(self.value, values)
        if self.growth is not None:
            self.growth.note(values)
        return True

    def replay_writes(self, writes: Sequence[PendingWrite]) -> None:
        """Fold stored writes (task id, channel, value), oldest first, in one batch; the last overwrite resets."""
        value, batch = self.value, []
        for _, _, write in writes:
            if (whole := overwrite_of(write)) is MISSING:
                batch.append(write)
            else:
                value, batch = self._base(whole), []
        self.value = self._folded(value, batch) if batch else value
        if self.growth is not None:
            self.growth.forget()

    def refold(self, value: Any, batches: Sequence[Sequence[Any]]) -> Any:
        """What recorded batches make of a stored value, one call of the reducer for each."""
        value = value.value if isinstance(value, DeltaSnapshot) else value
        for batch in batches:
            value = self._folded(value, batch)
        return value

    def _folded(self, value: Value, writes: Sequence[Any]) -> Value:
        """What the reducer makes of it; all that it gets is its own, so it may work in place."""
        return self.reducer(copy_container(value), [copy_container(write) for write in writes])

    def _base(self, value: Value | None) -> Value:
        return copy_container(self.start() if value is None else value)

    def get(self) -> Value:
        return self.value

    def is_available(self) -> bool:
        return True

    def checkpoint(self) -> Missing:
        """MISSING: what is stored of this channel is its writes and, now and then, a `snapshot`."""
        return MISSING

    def snapshot(self) -> Value | DeltaSnapshot[Value]:
        """The whole value, for a store that keeps no deltas; `from_checkpoint` takes it back."""
        if self.value is None or isinstance(self.value, DeltaSnapshot):
            return DeltaSnapshot(self.value)  # bare, it would be read as something else
        return self.value

    def from_checkpoint(self, checkpoint: Value | DeltaSnapshot[Value] | Unfolded | Missing | None) -> Self:
        """A new channel with that state: a snapshot, a plain value, or batches to fold. MISSING and None: a fresh one.

        ReducerChanged when another reducer made it.
        """
        new = self.copy()
        if checkpoint is MISSING or checkpoint is None:
            return new._fresh()
        if isinstance(checkpoint, Unfolded):
            new.value = checkpoint.folded(self.refold, self.fold, self.key)
        else:
            new.value = copy_container(checkpoint.value if isinstance(checkpoint, DeltaSnapshot) else checkpoint)
        if self.growth is not None:
            new.growth = self.growth.since(checkpoint if isinstance(self.growth, Batches) else new.value)
        return new

    def _fresh(self) -> Self:
        self.value = copy_container(self.start())
        return self

    def copy(self) -> Self:
        new = self._blank()
        new.reducer, new.snapshot_frequency, new.name = self.reducer, self.snapshot_frequency, self.name
        new.default_factory, new.start, new.value = self.default_factory, self.start, self.value
        new.growth = None if self.growth is None else self.growth.since(None)
        new.strict, new.tries = self.strict, self.tries
        return new
