"""What a call was made with, as 32 hex characters: two calls with the same one were made with the same arguments.

1. It is made of the arguments as they are serialised in clear: a cipher gives other bytes each time.
2. Containers count by what they hold: a dict in whatever order it was filled, a tuple like a list.
3. Ids of messages do not count, since `add_messages` draws one for each message that has none, anew in each attempt.
4. An argument that cannot be stored counts by its type: it must not stop a call that works without.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from pregel.checkpoint.serde.base import in_clear
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.messages.convert import is_message, with_id

_ATOMS = frozenset((str, int, float, bool, bytes, type(None)))


def fingerprint(serde: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What tells the arguments of two calls apart."""
    dumps = _in_clear(serde).dumps
    given = [*args, *sorted(kwargs.items())]
    try:
        packed: bytes = dumps(_plain(given))
    except Exception:  # a class of the user's may raise anything
        packed = dumps([_packed(dumps, one) for one in given])
    return blake2b(packed, digest_size=16).hexdigest()


def _in_clear(serde: Any) -> JsonPlusSerializer:
    """The serialiser behind a cipher; ours where there is another, which may write one value in two ways."""
    serde = in_clear(serde)
    return serde if isinstance(serde, JsonPlusSerializer) else JsonPlusSerializer()


def _packed(dumps: Any, value: Any) -> Any:
    """One argument as bytes; the name of its type where it cannot be stored."""
    try:
        return dumps(_plain(value))
    except Exception:
        return f"{type(value).__module__}.{type(value).__qualname__}"


def _plain(value: Any) -> Any:
    """The value without what differs between two that mean the same."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is list or kind is tuple:
        return [_plain(part) for part in value]
    if kind is dict:
        return dict(sorted([(repr(key), _plain(part)) for key, part in value.items()]))
    if is_message(value) and value.type != "remove" and value.id is not None:
        return with_id(value, "")
    return value
