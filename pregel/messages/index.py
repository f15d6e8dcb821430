"""Which ids a list of messages holds, remembered from step to step, so that adding to a long list costs what is added.

1. It only answers the usual case: messages that are all new go to the end. For any other write it has no answer, and
   the rule of `add_messages` is followed step by step.
2. When it has an answer, that is the answer of `add_messages`. It may have none where it could: what it remembers of
   lists that came to nothing (the preview before a branch) makes it careful, never wrong.
3. It knows a list by being the very object, and a message by its id and by being the very object.
4. Copies of a channel share it, on several threads: what is known is swapped as one tuple, and a place in it is only
   ever lowered.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from operator import attrgetter
from typing import Any

from pregel.messages.base import BaseMessage
from pregel.messages.convert import PLAIN

_id_of = attrgetter("id")

Places = dict[Any, int]
"""The first place at which an id, or the `id()` of a message, may stand."""


class MessageIndex:
    """The ids of the list that a channel holds."""

    __slots__ = ("_known", "_with_ids")

    def __init__(self, with_ids: Callable[[Any], list[BaseMessage]]) -> None:
        self._with_ids = with_ids  # what a write brings, as whole messages that have ids
        self._known: tuple[list[Any] | None, list[Any] | None, Places] = None, None, {}

    def extended(self, messages: Any, write: Any) -> list[BaseMessage] | None:
        """A new list with the messages of a write at its end; None when it has to be found out step by step."""
        older, newer, places = self._known
        if messages is not newer and messages is not older:
            found = _places_of(messages)
            if found is None:
                return None
            places = found
        length = len(messages)
        added = self._with_ids(write)
        own: set[str] = set()
        for message in added:
            key = message.id
            if (
                key is None
                or message.type == "remove"
                or key in own
                or places.get(key, length) < length
                or places.get(id(message), length) < length
            ):
                return None
            own.add(key)
        for place, message in enumerate(added, length):
            for one in (message.id, id(message)):
                if places.get(one, place) >= place:
                    places[one] = place
        new = [*messages, *added]
        self._known = messages, new, places
        return new


def _places_of(messages: Any) -> Places | None:
    """The places of a list of whole messages that all have an id of their own; None for anything else."""
    if type(messages) is not list or not PLAIN.issuperset(map(type, messages)):
        return None
    places: Places = dict(zip(map(_id_of, messages), count()))
    if len(places) < len(messages) or None in places:
        return None
    places.update(zip(map(id, messages), count()))
    return places
