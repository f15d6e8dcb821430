"""Messages as the dicts of OpenAI's chat API, which many models take."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from pregel.errors import InvalidInputError
from pregel.messages.base import BaseMessage
from pregel.messages.blocks import Blocks, standard_blocks
from pregel.messages.calls import ToolCall, tool_call
from pregel.messages.content import Content
from pregel.messages.convert import MessageLikeRepresentation, convert_to_messages, is_message, kind_of
from pregel.messages.kinds import AIMessage, ToolMessage

TextFormat: TypeAlias = Literal["string", "block"]
ROLES = {
    "human": "user",
    "ai": "assistant",
    "system": "system",
    "tool": "tool",
    "function": "function",
}
FILE_NAME = "file"  # OpenAI refuses files that have no name


def convert_to_openai_messages(
    messages: MessageLikeRepresentation | Sequence[MessageLikeRepresentation],
    *,
    text_format: TextFormat = "string",
    include_id: bool = False,
    pass_through_unknown_blocks: bool = True,
) -> dict[str, Any] | list[dict[str, Any]]:
    """The messages as role dicts; one dict for a lone message.

    `text_format`: content that is only text becomes a str (parts joined by a newline), or always a list of blocks.
    Blocks that OpenAI has no form for are passed through, or refused with InvalidInputError. Tool results among a
    message's blocks become messages of their own, before it.
    """
    if text_format not in ("string", "block"):
        raise InvalidInputError(f"{text_format!r} is no text_format.", fix="Use 'string' or 'block'.")
    lone = isinstance(messages, (str, Mapping)) or is_message(messages) or _is_pair(messages)
    listed = [messages] if lone else messages
    dicts = [
        openai_dict
        for message in convert_to_messages(cast("Sequence[Any]", listed))
        for openai_dict in _message_dicts(message, text_format, include_id, pass_through_unknown_blocks)
    ]
    return dicts[0] if lone and len(dicts) == 1 else dicts


def _is_pair(messages: object) -> bool:
    return isinstance(messages, tuple) and len(messages) == 2 and isinstance(messages[0], str)


def with_openai_content(message: BaseMessage) -> BaseMessage:
    """The message with its content in OpenAI's blocks, text alone as a str; all else of it stays."""
    if isinstance(message.content, str):
        return message
    parts = _parts(message.content, pass_through=True)
    update: dict[str, Any] = {"content": _content(message.content, parts.blocks, "string")}
    if parts.calls and kind_of(message) == "ai" and not cast(AIMessage, message).tool_calls:
        update["tool_calls"] = parts.calls
    if parts.results:  # they would be messages of their own: a reducer adds none, so they stay where they are
        update["content"] = [*parts.blocks, *parts.results]
    return message.model_copy(update=update)


# -- one message -----------------------------------------------------------------------------------------------------


def _message_dicts(
    message: BaseMessage, text_format: TextFormat, include_id: bool, pass_through: bool
) -> Iterable[dict[str, Any]]:
    parts = _parts(message.content, pass_through)
    for result in parts.results:
        yield from _result_dicts(result, text_format, include_id, pass_through)
    if parts.results and not parts.blocks and not parts.calls:
        return
    kind = kind_of(message)
    found: dict[str, Any] = {"role": _role(message, kind)}
    if message.name is not None:
        found["name"] = message.name
    found.update(_assistant(message, parts.calls) if kind == "ai" else {})
    if kind == "tool":
        found["tool_call_id"] = cast(ToolMessage, message).tool_call_id
    if include_id and message.id:
        found["id"] = message.id
    found["content"] = _content(message.content, parts.blocks, text_format)
    yield found


def _role(message: BaseMessage, kind: str) -> str:
    if kind == "chat":
        return cast(str, getattr(message, "role", kind))
    if kind not in ROLES:
        raise InvalidInputError(f"A message of type {message.type!r} has no role.", fix="Leave it out.")
    return cast(str, message.additional_kwargs.get("__openai_role__", ROLES[kind])) if kind == "system" else ROLES[kind]


def _assistant(message: BaseMessage, calls_in_content: list[ToolCall]) -> dict[str, Any]:
    calls = list(cast(AIMessage, message).tool_calls)
    known = {call["id"] for call in calls}
    calls += [call for call in calls_in_content if call["id"] not in known]
    found: dict[str, Any] = {"tool_calls": [openai_call(call) for call in calls]} if calls else {}
    if message.additional_kwargs.get("refusal"):
        found["refusal"] = message.additional_kwargs["refusal"]
    return found


def openai_call(call: ToolCall) -> dict[str, Any]:
    """A tool call in OpenAI's nested form, its arguments as JSON text."""
    arguments = json.dumps(call["args"], ensure_ascii=False)
    return {"type": "function", "id": call["id"], "function": {"name": call["name"], "arguments": arguments}}


def _result_dicts(
    result: dict[str, Any], text_format: TextFormat, include_id: bool, pass_through: bool
) -> Iterable[dict[str, Any]]:
    """An Anthropic tool result as the message of its own that OpenAI wants."""
    message = ToolMessage(
        result.get("content") or "",
        tool_call_id=result["tool_use_id"],
        status="error" if result.get("is_error") else "success",
    )
    return _message_dicts(message, text_format, include_id, pass_through)


# -- its content -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Parts:
    """What a content is made of: blocks, and what OpenAI keeps elsewhere."""

    blocks: Blocks = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: Blocks = field(default_factory=list)


def _parts(content: Content, pass_through: bool) -> _Parts:
    parts = _Parts()
    if isinstance(content, str):
        parts.blocks = [{"type": "text", "text": content}]
        return parts
    for part in content:
        block: dict[str, Any] = {"type": "text", "text": part} if isinstance(part, str) else part
        match block:
            case {"type": "tool_use", "input": args} | {"type": "tool_call", "args": args}:
                parts.calls.append(tool_call(name=block.get("name", ""), args=args, id=block.get("id")))
            case {"type": "tool_result", "tool_use_id": _}:
                parts.results.append(block)
            case _:
                parts.blocks.append(openai_block(block, pass_through))
    return parts


def _content(content: Content, blocks: Blocks, text_format: TextFormat) -> str | Blocks:
    if text_format == "string":
        if isinstance(content, str):
            return content
        only_text = all(block.get("type") == "text" for block in blocks)
        return "\n".join(block["text"] for block in blocks) if only_text else blocks
    return [block for block in blocks if block.get("type") != "text" or block["text"]]


def openai_block(block: dict[str, Any], pass_through: bool = False) -> dict[str, Any]:
    """A content block in OpenAI's form; what has none passes as it is, or is refused with InvalidInputError."""
    if block.get("type") in ("image_url", "input_audio") or (block.get("type") == "file" and "file" in block):
        return block
    if block.get("type") == "json" and "json" in block:
        return {"type": "text", "text": json.dumps(block["json"], ensure_ascii=False)}
    (standard,) = standard_blocks([block])
    match standard:
        case {"type": "text" | "text-plain", "text": text}:
            return {"type": "text", "text": text}
        case {"type": "image", "url": url}:
            return {"type": "image_url", "image_url": {"url": url}}
        case {"type": "image", "base64": data, "mime_type": mime_type}:
            return {"type": "image_url", "image_url": {"url": f"data:{mime_type};base64,{data}"}}
        case {"type": "audio", "base64": data, "mime_type": mime_type}:
            return {"type": "input_audio", "input_audio": {"data": data, "format": mime_type.split("/")[-1]}}
        case {"type": "file", "base64": data, "mime_type": mime_type}:
            return _named({"file_data": f"data:{mime_type};base64,{data}"}, standard)
        case {"type": "file", "file_id": file_id}:
            return {"type": "file", "file": {"file_id": file_id}}
    if pass_through:
        return block
    raise InvalidInputError(f"OpenAI has no form for this content block: {block!r}.", fix="Leave the block out.")


def _named(file: dict[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    extras = block.get("extras") or {}
    name = block.get("filename") or extras.get("filename") or extras.get("title") or FILE_NAME
    return {"type": "file", "file": {**file, "filename": name}}
