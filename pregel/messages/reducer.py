"""The rule by which new messages join a list of messages: `add_messages`.

1. A message whose id is in the list replaces that one where it stands; others follow at the end, in order. Of two with
   one id in the same write the last counts, at the place of the first.
2. `RemoveMessage(id)` removes; an unknown id is an error. A removal and then a message with the id is a replacement.
3. What stands before the last `RemoveMessage(REMOVE_ALL_MESSAGES)` of a write is dropped, the list too. What follows is
   merged by the same rules.
4. Nothing that comes in is changed: a message without an id is copied to be given one. All others stay the objects
   they are; a thousand of them cost a look at their classes and ids, no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias, overload
from uuid import uuid4

from pregel.errors import InvalidInputError
from pregel.messages.base import BaseMessage
from pregel.messages.convert import PLAIN, MessageLikeRepresentation, as_whole_message, with_id
from pregel.messages.index import MessageIndex
from pregel.messages.openai import with_openai_content

REMOVE_ALL_MESSAGES: Final = "__remove_all__"
Messages: TypeAlias = Sequence[MessageLikeRepresentation] | MessageLikeRepresentation
Format: TypeAlias = Literal["langchain-openai"]
Ids: TypeAlias = set[str | None]

_id_of = attrgetter("id")


@overload
def add_messages(*, format: Format | None = None) -> partial[list[BaseMessage]]: ...
@overload
def add_messages(left: Messages, right: Messages, *, format: Format | None = None) -> list[BaseMessage]: ...
def add_messages(
    left: Messages | None = None, right: Messages | None = None, *, format: Format | None = None
) -> list[BaseMessage] | partial[list[BaseMessage]]:
    """The messages of `left` with those of `right` merged in by id, as a new list. Messages without an id get one.

    Both take one message-like thing or a list of them (see `convert_to_messages`). `format="langchain-openai"` writes
    the contents as OpenAI's content blocks. With neither list it returns itself as a reducer with that format.
    InvalidInputError (a ValueError) when an unknown id is to be removed.
    """
    if format not in (None, "langchain-openai"):
        raise InvalidInputError(f"{format!r} is no format of messages.", fix="Use 'langchain-openai' or None.")
    if left is None and right is None:
        return partial(add_messages, format=format) if format else partial(add_messages)
    if left is None or right is None:
        given = "right" if left is None else "left"
        raise InvalidInputError(f"add_messages got only {given!r}.", fix="Give both lists, or neither.")
    merged = _merged(*_with_ids(left), *_with_ids(right), strict=True)
    return [with_openai_content(message) for message in merged] if format else merged


def with_ids(messages: Messages) -> list[BaseMessage]:
    """The messages as whole message objects that all have an id; the very list when it is one of such already."""
    return _with_ids(messages)[0]


def _with_ids(messages: Messages) -> tuple[list[BaseMessage], Ids]:
    given = whole_messages(messages)
    ids = set(map(_id_of, given))
    if None in ids:
        given = [with_id(message, str(uuid4())) if message.id is None else message for message in given]
        ids = set(map(_id_of, given))
    return given, ids


def whole_messages(messages: Messages) -> list[BaseMessage]:
    """The messages as whole message objects; the very list when it is one of such already."""
    if isinstance(messages, list) and PLAIN.issuperset(map(type, messages)):
        return messages
    return [as_whole_message(message) for message in _listed(messages)]


def _listed(messages: Messages) -> Iterable[Any]:
    """A lone message, text, dict or (role, content) pair is a list of one."""
    if isinstance(messages, list):
        return messages
    if isinstance(messages, tuple) and not (len(messages) == 2 and isinstance(messages[0], str)):
        return messages
    return [messages]


def merge_messages(left: list[BaseMessage], right: Sequence[BaseMessage], *, strict: bool = True) -> list[BaseMessage]:
    """A new list: `right` merged into `left` by id. All are whole messages.

    Not `strict`: a removal of an unknown id does nothing. A message without an id is always added.
    """
    return _merged(left, set(map(_id_of, left)), right, set(map(_id_of, right)), strict)


def _merged(
    left: list[BaseMessage], left_ids: Ids, right: Sequence[BaseMessage], right_ids: Ids, strict: bool
) -> list[BaseMessage]:
    only_new = len(right_ids) == len(right) and right_ids.isdisjoint(left_ids)
    if only_new and not any(message.type == "remove" for message in right):
        return [*left, *right]  # the common case: nobody's place has to be known
    start = _after_last_clearing(right)
    return _merged_by_id([] if start else left, right[start:], strict)


def _after_last_clearing(messages: Sequence[BaseMessage]) -> int:
    for at in range(len(messages) - 1, -1, -1):
        if messages[at].id == REMOVE_ALL_MESSAGES and messages[at].type == "remove":
            return at + 1
    return 0


def _merged_by_id(left: list[BaseMessage], right: Sequence[BaseMessage], strict: bool) -> list[BaseMessage]:
    merged = list(left)
    places = {message.id: at for at, message in enumerate(merged)}
    places.pop(None, None)
    removed: Ids = set()
    for message in right:
        at = places.get(message.id)
        if message.type == "remove":
            if at is not None:
                removed.add(message.id)
            elif strict:
                raise _unknown(message, places)
        elif at is not None:
            removed.discard(message.id)
            merged[at] = message
        else:
            if message.id is not None:
                places[message.id] = len(merged)
            merged.append(message)
    return [message for message in merged if message.id not in removed] if removed else merged


def _unknown(removal: BaseMessage, known: Iterable[str | None]) -> InvalidInputError:
    return InvalidInputError(
        f"There is no message {removal.id!r} to remove.",
        fix=f"Remove by an id that the state shows; its last ids are {[*known][-3:]}.",
    )


def messages_delta_reducer(state: Messages, writes: Sequence[Messages]) -> list[BaseMessage]:
    """The same rule for `DeltaChannel`: all writes of a step, one after the other.

    The removal of an unknown id does nothing, since a fold that is replayed must not fail. Gives no ids: the channel
    has them given to each write before it is folded and stored, so that a replay gives the same ones.
    """
    merged = whole_messages(state)
    for write in writes:
        merged = merge_messages(merged, whole_messages(write), strict=False)
    return merged


# rule 4, and an index of ids; for `pregel.channels.growth`
add_messages.keeps_items = messages_delta_reducer.keeps_items = True  # type: ignore[attr-defined]
add_messages.index = partial(MessageIndex, with_ids)  # type: ignore[attr-defined]
messages_delta_reducer.ready = with_ids  # type: ignore[attr-defined]
