"""A channel that folds every write into its value with a reducer: lists that grow, counters, merged dicts.

1. A reducer gets private copies, one level deep, of both its arguments; an overwrite and a stored value are copied when
   they come in. So a reducer may change or return what it is given: nobody else ever sees that.
2. The plain operators on plain containers never change their arguments. They get no copies, and a superstep with many
   writes extends one result instead of building a longer one for each write.
"""

from __future__ import annotations

import collections.abc
import operator as op
from collections.abc import Callable, Sequence
from types import BuiltinFunctionType
from typing import Annotated, Any, ClassVar, Generic, NotRequired, Required, Self, get_args, get_origin

from typing_extensions import ReadOnly

from pregel.channels.base import MISSING, BaseChannel, DeltaSnapshot, Missing, Value, copy_container
from pregel.channels.growth import growth_of, index_of
from pregel.channels.overwrite import CARRIERS, overwrite_in

Start = Callable[[], Value]

_PURE = frozenset({op.add, op.concat, op.mul, op.sub, op.and_, op.or_, op.xor})
_EXTEND: dict[tuple[object, type], Callable[[Any, Any], object]] = {
    (op.add, list): list.extend,
    (op.concat, list): list.extend,
    (op.or_, dict): dict.update,
    (op.or_, set): set.update,
}


class BinaryOperatorAggregate(Generic[Value], BaseChannel[Value, Value, Value]):
    """Every write folded into the value, ``operator(value, write)``, in task order.

    It starts from ``default_factory()``, else from ``typ()`` (abstract collections: list, set or dict). When the type
    has no empty value it starts empty, and the first write becomes the value.
    """

    __slots__ = ("direct", "growth", "index", "operator", "pure", "start", "value")
    expires: ClassVar[bool] = False
    bare: ClassVar[bool] = True

    def __init__(
        self, typ: Any, operator: Callable[[Value, Value], Value], *, default_factory: Start[Value] | None = None
    ) -> None:
        super().__init__(typ)
        self.operator = operator
        self.pure = isinstance(operator, BuiltinFunctionType) and operator in _PURE
        self.start = default_factory or start_of(typ)
        self.value: Value | Missing = started(self.start)
        # how a class of the user's changes the value is not known
        self.growth = growth_of(operator, self.value) if type(self) is BinaryOperatorAggregate else None
        self.index = index_of(operator) if self.growth is not None else None
        self.direct = self.pure and self.index is None

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BinaryOperatorAggregate)
            and type(other) is type(self)
            and same_reducer(self.operator, other.operator)
        )

    def update(self, values: Sequence[Value]) -> bool:
        if not values:
            return False
        value = self.value
        if len(values) == 1 and self.direct and value is not MISSING and not isinstance(values[0], CARRIERS):
            self.value = self.operator(value, values[0])
            if self.growth is not None:
                self.growth.note(values)
        elif (whole := overwrite_in(values, self.key)) is not MISSING:
            self.value = copy_container(whole)
            if self.growth is not None:
                self.growth.forget()
        elif value is MISSING:
            self.value = self._folded(values[0], values[1:])
        elif self.index is not None and (longer := self._extended(value, values)) is not None:
            self.value = longer
            self.growth.add(values)  # type: ignore[union-attr]  # an index comes with one
        else:
            self.value = self._folded(value, values)
            if self.growth is not None:
                self.growth.note(values)
        return True

    def _extended(self, value: Any, writes: Sequence[Value]) -> Any:
        """The value when all of this only comes to its end; None when the reducer has to say."""
        for write in writes:
            value = self.index.extended(value, write)  # type: ignore[union-attr]  # asked for only where there is one
            if value is None:
                return None
        return value

    def _folded(self, value: Value, writes: Sequence[Value]) -> Value:
        if self.pure and writes:
            return fold_plain(self.operator, value, writes)
        value = copy_container(value)
        for write in writes:
            value = self.operator(value, copy_container(write))
        return value

    def get(self) -> Value:
        if self.value is MISSING:
            raise self._empty()
        return self.value

    def is_available(self) -> bool:
        return self.value is not MISSING

    def checkpoint(self) -> Value | Missing:
        return self.value

    def from_checkpoint(self, checkpoint: Value | DeltaSnapshot[Value] | Missing) -> Self:
        """A new channel with that state; a DeltaSnapshot is from when the key was a DeltaChannel."""
        if checkpoint is MISSING:
            return self._like(started(self.start))
        new = self._like(copy_container(checkpoint.value if isinstance(checkpoint, DeltaSnapshot) else checkpoint))
        if self.growth is not None:
            new.growth = self.growth.since(new.value)
        return new

    def copy(self) -> Self:
        new = self._like(self.value)
        new.index = self.index
        return new

    def _like(self, value: Value | Missing) -> Self:
        """A channel with these settings and that value, of which nothing is known yet."""
        if self._foreign:
            new = self._blank()
        else:
            new = object.__new__(type(self))
            new.typ, new.key = self.typ, self.key
        new.operator, new.pure, new.start, new.direct = self.operator, self.pure, self.start, self.direct
        new.value = value
        new.index = None if self.index is None else index_of(self.operator)
        new.growth = None if self.growth is None else self.growth.since(None)
        return new

    def ungrown(self) -> Self:
        """The same for who stores nothing: how the value comes about is not followed."""
        new = self._like(self.value)
        if new.index is None:  # an index needs to know
            new.growth = None
        return new


def fold_plain(operator: Callable[[Value, Value], Value], value: Value, writes: Sequence[Value]) -> Value:
    """``operator`` folded over the writes, for operators that change no argument.

    Plain lists, dicts and sets take time linear in their items: after the first call the value is a new object that
    nobody else has seen, so it may grow in place.
    """
    kind = type(value)
    extend = _EXTEND.get((operator, kind)) if type(writes[0]) is kind else None
    value = operator(value, writes[0])
    for write in writes[1:]:
        if extend is not None and type(write) is kind:
            extend(value, write)
        else:
            value = operator(value, write)
            extend = None
    return value


def same_reducer(left: object, right: object) -> bool:
    """Whether two reducers count as one: the same function, or one of them is a lambda, which cannot be told apart."""
    return left is right or left == right or "<lambda>" in (_name(left), _name(right))


def _name(reducer: object) -> object:
    return getattr(reducer, "__name__", None)


_CONCRETE: dict[Any, type] = {
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
}


def start_of(typ: Any) -> Start[Any] | None:
    """What makes the empty value of a type; None when the type has none."""
    while (origin := get_origin(typ)) in (Annotated, Required, NotRequired, ReadOnly):
        typ = get_args(typ)[0]
    maker = _CONCRETE.get(origin or typ, typ)
    try:
        maker()
    except Exception:  # whatever a type raises, it cannot be built from nothing
        return None
    return maker  # type: ignore[no-any-return]


def started(start: Start[Value] | None) -> Value | Missing:
    """A first value of its own for one channel; a factory may return the same list each time."""
    return MISSING if start is None else copy_container(start())
