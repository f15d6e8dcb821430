"""State that holds messages: the rule by which they join it, and the state that has nothing else."""

from __future__ import annotations

from typing import Annotated

from typing_extensions import TypedDict

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


def push_message(message: MessageLikeRepresentation, *, state_key: str | None = "messages") -> AnyMessage:
    """The message as an object, after showing it at once in mode ``messages`` and writing it to `state_key`.

    The write counts, and is given up, with what the node returns; None: show it only. Each push shows, so pieces of one
    message may be pushed under one id; a node that returns the message shows nothing again.

    InvalidInputError when the message has no id, OutsideRunError outside of a node, InvalidUpdateError for a key that
    the graph does not have.
    """
    pushed = as_message(message)
    if pushed.id is None:
        raise InvalidInputError("push_message needs a message that has an id.", fix="Give the message an id.")
    running_task().push_message(pushed, state_key)
    return pushed  # type: ignore[return-value]  # every message is one of these
