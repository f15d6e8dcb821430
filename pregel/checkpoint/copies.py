"""Exact copies of a list that was read: kept as bytes of this process, from which plain data and messages come quickly.

1. What is kept is bytes, so nobody who was given a copy can change it. They are never stored: `marshal` is not a format
   for that, but it is exact for plain types, and several times as quick as reading an item as it is stored.
2. Any other class is `NoCopyError`: only its own code knows what an exact copy is.
3. A list that grew is kept in parts, which are joined as they grow: a list has few, and an item is joined seldom.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

from pregel import messages
from pregel.messages import BaseMessage

Fields = tuple[Any, ...]
"""The name of a message's class and its fields; a name of "" and the item for one that is plain."""

FIXED = frozenset((type(None), bool, int, float, complex, str, bytes))
CONTAINERS = frozenset((list, dict, tuple, set, frozenset))
BASE = ("content", "additional_kwargs", "response_metadata", "name", "id", "extra")


class NoCopyError(Exception):
    """A class whose objects are not copied."""


class Copies:
    """A list, from which copies are made. It is never changed."""

    __slots__ = ("_parts", "count")

    def __init__(self, parts: Sequence[bytes], count: int) -> None:
        self._parts, self.count = parts, count

    @classmethod
    def of(cls, items: Sequence[Any]) -> Copies:
        """The list as it is now. NoCopyError when there is something else than plain data and messages in it."""
        return cls([_packed(items)], len(items))

    def and_then(self, items: Sequence[Any]) -> Copies:
        """The same with these items behind its own."""
        if not items:
            return self
        parts = [*self._parts, _packed(items)]
        while len(parts) > 1 and len(parts[-2]) < 2 * len(parts[-1]):
            last = parts.pop()
            parts[-1] = marshal.dumps(marshal.loads(parts[-1]) + marshal.loads(last))
        return Copies(parts, self.count + len(items))

    @property
    def parts(self) -> int:
        """How many parts it is kept in."""
        return len(self._parts)

    def copy(self) -> list[Any]:
        """The list, of items that are nobody else's."""
        return [_MAKERS[fields[0]](fields) for part in self._parts for fields in marshal.loads(part)]


def _packed(items: Sequence[Any]) -> bytes:
    taken = [_TAKERS[type(item)](item) for item in items]
    for fields in taken:
        _check(fields)
    try:
        return marshal.dumps(taken)
    except ValueError as error:  # nested too deeply
        raise NoCopyError from error


def _check(parts: Iterable[Any]) -> None:
    """NoCopyError where these, and what is in them, are not plain; marshal takes a bytearray for bytes."""
    kinds = set(map(type, parts))
    if kinds <= FIXED:
        return
    if not kinds <= FIXED | CONTAINERS:
        raise NoCopyError
    for part in parts:
        if type(part) in CONTAINERS:
            _check(part)
            if type(part) is dict:
                _check(part.values())


# -- messages ----------------------------------------------------------------------------------------------------------


def _taker(cls: type[BaseMessage]) -> Callable[[Any], Fields]:
    """Takes a message apart."""
    name, fields_of = cls.__name__, attrgetter(*BASE, *_beside(cls))
    return lambda message: (name, *fields_of(message))


def _maker(cls: type[BaseMessage]) -> Callable[[Fields], BaseMessage]:
    """Makes a message of the fields that its taker gave; written out, since long conversations pass here."""
    make: Callable[[type[BaseMessage]], BaseMessage] = object.__new__
    beside = tuple(enumerate(_beside(cls), 1 + len(BASE)))

    def message_of(fields: Fields) -> BaseMessage:
        message = make(cls)
        message.content = fields[1]
        message.additional_kwargs = fields[2]
        message.response_metadata = fields[3]
        message.name = fields[4]
        message.id = fields[5]
        message.extra = fields[6]
        for place, name in beside:
            setattr(message, name, fields[place])
        return message

    return message_of


def _beside(cls: type[BaseMessage]) -> list[str]:
    return [name for name in cls.DEFAULTS if name not in BASE]


class _Takers(dict[type, Callable[[Any], Fields]]):
    """How an item of each class is taken apart."""

    def __missing__(self, cls: type) -> Callable[[Any], Fields]:
        if cls in FIXED or cls in CONTAINERS:
            taker: Callable[[Any], Fields] = lambda item: ("", item)  # noqa: E731
        elif issubclass(cls, BaseMessage) and getattr(messages, cls.__name__, None) is cls:
            taker = _taker(cls)
        else:
            raise NoCopyError
        self[cls] = taker
        return taker


class _Makers(dict[str, Callable[[Fields], Any]]):
    """How an item is made, by the name of its class."""

    def __missing__(self, name: str) -> Callable[[Fields], Any]:
        maker = self[name] = _maker(getattr(messages, name))
        return maker


_TAKERS = _Takers()
_MAKERS = _Makers({"": lambda fields: fields[1]})
