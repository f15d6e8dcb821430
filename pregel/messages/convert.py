"""Message-like things as messages, and messages as plain dicts and back.

1. A message stays the object it is, also one of a foreign library (LangChain's): what has `type`, `content` and `id`,
   and can be copied with another id, is a message. No foreign library is imported for it.
2. A foreign message that is being streamed is made whole by the class it is a piece of.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from pregel.errors import InvalidInputError, UsageError
from pregel.messages.base import BaseMessage
from pregel.messages.calls import checked_calls, parse_openai_call
from pregel.messages.chunks import (
    AIMessageChunk,
    BaseMessageChunk,
    ChatMessageChunk,
    FunctionMessageChunk,
    HumanMessageChunk,
    SystemMessageChunk,
    ToolMessageChunk,
    message_chunk_to_message,
)
from pregel.messages.kinds import (
    AIMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

MessageLikeRepresentation: TypeAlias = BaseMessage | str | Sequence[Any] | Mapping[str, Any]
"""A message, a text (the user's), a pair (role, content), or a dict with role and content."""

MESSAGE_CLASSES: Final[Mapping[str, type[BaseMessage]]] = {
    cls.type: cls
    for cls in (
        HumanMessage,
        SystemMessage,
        AIMessage,
        ToolMessage,
        FunctionMessage,
        ChatMessage,
        RemoveMessage,
        HumanMessageChunk,
        SystemMessageChunk,
        AIMessageChunk,
        ToolMessageChunk,
        FunctionMessageChunk,
        ChatMessageChunk,
    )
}
"""Every message class by its type."""

_KINDS = {type: type.removesuffix("MessageChunk").lower() for type in MESSAGE_CLASSES}
KINDS: Mapping[type, str] = {cls: _KINDS[type] for type, cls in MESSAGE_CLASSES.items()}
"""What `kind_of` gives for our own classes: whoever goes through thousands of messages need not call it for each."""
_BY_NAME = {cls.__name__: cls for cls in MESSAGE_CLASSES.values()}
_ROLES: Mapping[str, type[BaseMessage]] = {
    "human": HumanMessage,
    "user": HumanMessage,
    "ai": AIMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
    "function": FunctionMessage,
    "tool": ToolMessage,
    "remove": RemoveMessage,
}


class MessageCoercionError(UsageError, NotImplementedError):
    """This is nothing a message can be made from."""

    code = "MESSAGE_COERCION_FAILURE"
    fix = "Give a message, a str, a pair (role, content), or a dict with role and content."


# -- what is a message -----------------------------------------------------------------------------------------------

PLAIN: Final[set[type]] = {cls for cls in MESSAGE_CLASSES.values() if not issubclass(cls, BaseMessageChunk)}
"""Classes whose objects are whole messages; foreign ones are added as they are met."""


def is_message(value: object) -> bool:
    """Whether the value is a message, ours or a foreign library's."""
    return value.__class__ in PLAIN or _kind(value) is not None


def kind_of(message: BaseMessage) -> str:
    """The type, without its being a piece: "ai" for an AIMessageChunk."""
    return _KINDS.get(message.type) or message.type.removesuffix("MessageChunk").lower()


def _kind(value: object) -> str | None:
    """'whole', 'piece', or None for what is no message; remembers the classes of whole messages."""
    cls = type(value)
    if isinstance(value, BaseMessageChunk):
        return "piece"
    if not isinstance(value, BaseMessage) and not _is_foreign(value):
        return None
    if _whole_of(cls) is not None:
        return "piece"
    PLAIN.add(cls)
    return "whole"


def _is_foreign(value: object) -> bool:
    if isinstance(value, type):
        return False
    has_fields = isinstance(getattr(value, "type", None), str) and hasattr(value, "content") and hasattr(value, "id")
    return has_fields and (hasattr(value, "model_copy") or dataclasses.is_dataclass(value))


def _whole_of(cls: type) -> type | None:
    """The class that a foreign class is the pieces of: XChunk of X."""
    name = cls.__name__.removesuffix("Chunk")
    return None if name == cls.__name__ else next((base for base in cls.__mro__ if base.__name__ == name), None)


def _whole(value: Any) -> Any:
    """The whole message that a foreign piece stands for."""
    cls = _whole_of(type(value))
    if cls is None:
        return value
    names = getattr(cls, "model_fields", None) or {field.name for field in dataclasses.fields(value)}
    return cls(**{name: getattr(value, name) for name in names if name != "type"})


def with_id(message: BaseMessage, id: str) -> BaseMessage:
    """A copy of the message under this id."""
    if hasattr(message, "model_copy"):
        return message.model_copy(update={"id": id})
    return cast(BaseMessage, dataclasses.replace(cast("Any", message), id=id))


# -- message-like things as messages -----------------------------------------------------------------------------------


def convert_to_messages(messages: Iterable[MessageLikeRepresentation] | MessageLikeRepresentation) -> list[BaseMessage]:
    """The messages as objects: each a message already, a text, a (role, content) pair or a dict with role and content.

    A lone text, dict or message is a list of one. MessageCoercionError for anything else; ValueError for an unknown
    role, a dict without role or content, or arguments of a tool call that are no JSON.
    """
    if hasattr(messages, "to_messages"):
        return list(messages.to_messages())
    if isinstance(messages, (str, Mapping)) or is_message(messages):
        return [as_message(messages)]
    if not isinstance(messages, Iterable):
        raise MessageCoercionError(f"No messages can be made from a {type(messages).__name__}: {messages!r}.")
    return [as_message(message) for message in cast("Iterable[Any]", messages)]


def as_message(value: object) -> BaseMessage:
    """One message-like thing as a message; what is being streamed stays a piece."""
    if value.__class__ in PLAIN or _kind(value) is not None:
        return cast(BaseMessage, value)
    if isinstance(value, str):
        return HumanMessage(value)
    if isinstance(value, Mapping):
        return _from_mapping(value)
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        if len(value) == 2 and isinstance(value[0], str):
            return _from_role(value[0], value[1], {})
        raise MessageCoercionError(f"A message as a sequence is (role, content), got {value!r}.")
    raise MessageCoercionError(f"No message can be made from a {type(value).__name__}: {value!r}.")


def as_whole_message(value: object) -> BaseMessage:
    """One message-like thing as a whole message: what is being streamed is taken to have ended."""
    if value.__class__ in PLAIN:
        return cast(BaseMessage, value)
    message = as_message(value)
    return message_chunk_to_message(message) if isinstance(message, BaseMessage) else _whole(message)


def _from_mapping(value: Mapping[str, Any]) -> BaseMessage:
    if value.get("lc") == 1 and value.get("type") == "constructor" and value["id"][-1] in _BY_NAME:
        return _BY_NAME[value["id"][-1]](**value["kwargs"])
    fields = dict(value)
    role = fields.pop("role", None) or fields.pop("type", None)
    if role is None or "content" not in fields:
        raise InvalidInputError(
            f"A message as a dict needs role and content, got {value!r}.",
            fix='Give e.g. {"role": "user", "content": "..."}.',
        )
    content = fields.pop("content")
    return _from_role(role, "" if content is None else content, fields)


def _from_role(role: str, content: Any, fields: dict[str, Any]) -> BaseMessage:
    cls = _ROLES.get(role)
    if cls is None:
        raise InvalidInputError(f"{role!r} is no role of a message.", fix=f"Use one of {', '.join(_ROLES)}.")
    taken: dict[str, Any] = {key: fields.pop(key) for key in ("name", "id", "response_metadata") if key in fields}
    taken["additional_kwargs"] = extras = fields.pop("additional_kwargs", None) or {}
    if role == "developer":
        taken["additional_kwargs"] = extras = {**extras, "__openai_role__": "developer"}
    if cls is RemoveMessage:
        return RemoveMessage(taken.get("id"))
    if cls in _TAKEN:
        taken.update(_TAKEN[cls](fields))
    return cls(content, **{**taken, "additional_kwargs": {**extras, **fields}})


def _taken_by_ai(fields: dict[str, Any]) -> dict[str, Any]:
    calls = fields.pop("tool_calls", None) or ()
    parsed = [parse_openai_call(call) if "function" in call else call for call in calls]
    given: dict[str, Any] = {key: fields.pop(key) for key in ("invalid_tool_calls", "usage_metadata") if key in fields}
    return {**given, "tool_calls": checked_calls(parsed)}


def _taken_by_tool(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: fields.pop(key) for key in ("tool_call_id", "artifact", "status") if key in fields}


_TAKEN: Mapping[type[BaseMessage], Callable[[dict[str, Any]], dict[str, Any]]] = {
    AIMessage: _taken_by_ai,
    ToolMessage: _taken_by_tool,
}


# -- messages as dicts -----------------------------------------------------------------------------------------------


def message_to_dict(message: BaseMessage) -> dict[str, Any]:
    """{"type": ..., "data": all fields}."""
    return {"type": message.type, "data": message.model_dump()}


def messages_to_dict(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """One dict a message, see `message_to_dict`."""
    return [message_to_dict(message) for message in messages]


def messages_from_dict(messages: Sequence[Mapping[str, Any]]) -> list[BaseMessage]:
    """The messages that `messages_to_dict` was given; InvalidInputError for a type that is none of ours."""
    return [_message_from_dict(message) for message in messages]


def _message_from_dict(message: Mapping[str, Any]) -> BaseMessage:
    cls = MESSAGE_CLASSES.get(message["type"])
    if cls is None:
        raise InvalidInputError(
            f"{message['type']!r} is no type of a message.", fix=f"Use one of {', '.join(MESSAGE_CLASSES)}."
        )
    return cls(**message["data"])
