"""State that holds messages: the rule by which they join it, and the state that has nothing else."""

from __future__ import annotations

from typing import Annotated, NoReturn, TypedDict

from pregel.config import running_task
from pregel.errors import InvalidInputError, NotBuiltError
from pregel.messages import REMOVE_ALL_MESSAGES, AnyMessage, MessageLikeRepresentation, add_messages
from pregel.messages.convert import as_message

__all__ = ["REMOVE_ALL_MESSAGES", "MessageGraph", "MessagesState", "add_messages", "push_message"]


class MessagesState(TypedDict):
    """A state of messages alone; subclass it to add keys."""

    messages: Annotated[list[AnyMessage], add_messages]


class MessageGraph:
    """A graph whose whole state is a list of messages: deprecated in the reference, not built here."""

    def __init__(self) -> None:
        raise NotBuiltError("MessageGraph is not built.", fix="Use StateGraph(MessagesState).")


def push_message(message: MessageLikeRepresentation, *, state_key: str | None = "messages") -> NoReturn:
    """Stream a message at once and write it to `state_key` (None: stream only). Not built yet: NotBuiltError.

    InvalidInputError when the message has no id, OutsideRunError outside of a node.
    """
    if as_message(message).id is None:
        raise InvalidInputError("push_message needs a message that has an id.", fix="Give the message an id.")
    running_task()
    where = "the stream" if state_key is None else f"the stream and {state_key!r}"
    raise NotBuiltError(
        f"push_message cannot reach {where} of a running node yet.", fix="Return the message from the node."
    )
