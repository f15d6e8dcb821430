"""Exact copies of a list that was read: kept as bytes of this process, from which plain data and messages come quickly.

1. What is kept is bytes, so nobody who was given a copy can change it. They are never stored: `marshal` is not a format
   for that, but it is exact for plain types, and several times as quick as reading an item as it is stored.
2. Any other class is `NoCopyError`: only its own code knows what an exact copy is.
3. A list that grew is kept in parts, which are joined as they grow: a list has few, and an item is joined seldom.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

from pregel import messages
from pregel.checkpoint.collected import uncollected
from pregel.messages import BaseMessage

Fields = tuple[Any, ...]
"""The name of a message's class and its fields; a name of "" and the item for one that is plain."""

FIXED = frozenset((type(None), bool, int, float, complex, str, bytes))
CONTAINERS = frozenset((list, dict, tuple, set, frozenset))
PLAIN = FIXED | CONTAINERS
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
        with uncollected(self.count):
            return [_MAKERS[fields[0]](fields) for part in self._parts for fields in marshal.loads(part)]


def _packed(items: Sequence[Any]) -> bytes:
    taken = [_TAKERS[type(item)](item) for item in items]
    _check([*chain.from_iterable(taken)])
    try:
        return marshal.dumps(taken)
    except ValueError as error:  # nested too deeply
        raise NoCopyError from error


def _check(parts: list[Any]) -> None:
    """NoCopyError where these, and what is in them, are not plain; marshal takes a bytearray for bytes."""
    while not (kinds := set(map(type, parts))) <= FIXED:
        if not kinds <= PLAIN:
            raise NoCopyError
        containers = [part for part in parts if part and type(part) in CONTAINERS]
        parts = [*chain.from_iterable(containers)]
        parts += chain.from_iterable(part.values() for part in containers if type(part) is dict)


# -- messages ----------------------------------------------------------------------------------------------------------


def _taker(cls: type[BaseMessage]) -> Callable[[Any], Fields]:
    """Takes a message apart."""
    name, fields_of = cls.__name__, attrgetter(*BASE, *_beside(cls))
    return lambda message: (name, *fields_of(message))


def _maker(cls: type[BaseMessage]) -> Callable[[Fields], BaseMessage]:
    """Makes a message of the fields that its taker gave.

    Written for the class, as `dataclass` writes a constructor: in long conversations this is most of what a copy costs.
    """
    targets = ", ".join(f"message.{name}" for name in (*BASE, *_beside(cls)))
    source = f"def message_of(fields):\n    message = make(cls)\n    _, {targets} = fields\n    return message"
    scope: dict[str, Any] = {"make": object.__new__, "cls": cls}
    exec(source, scope)  # only names of slots of ours are in it
    made: Callable[[Fields], BaseMessage] = scope["message_of"]
    return made


def _beside(cls: type[BaseMessage]) -> list[str]:
    return [name for name in cls.DEFAULTS if name not in BASE]


class _Takers(dict[type, Callable[[Any], Fields]]):
    """How an item of each class is taken apart."""

    def __missing__(self, cls: type) -> Callable[[Any], Fields]:
        if cls in PLAIN:
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
