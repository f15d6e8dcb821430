"""Messages as one text, and a quick estimate of how many tokens they take."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final, Literal, cast

from pregel.errors import InvalidInputError
from pregel.messages.base import BaseMessage
from pregel.messages.convert import MessageLikeRepresentation, convert_to_messages, kind_of
from pregel.messages.kinds import AIMessage, ChatMessage, ToolMessage
from pregel.messages.openai import ROLES
from pregel.messages.usage import UsageMetadata

LONGEST: Final = 500  # characters of a call's arguments or a block in the xml form
MEDIA = ("image", "audio", "video", "file")


def speaker_of(message: BaseMessage) -> str:
    """The kind of the message; the role of a ChatMessage."""
    kind = kind_of(message)
    return cast(ChatMessage, message).role if kind == "chat" else kind


def get_buffer_string(
    messages: Sequence[MessageLikeRepresentation],
    human_prefix: str = "Human",
    ai_prefix: str = "AI",
    *,
    system_prefix: str = "System",
    function_prefix: str = "Function",
    tool_prefix: str = "Tool",
    message_separator: str = "\n",
    format: Literal["prefix", "xml"] = "prefix",
) -> str:
    """The messages as one text: lines like "Human: ...", or an XML element for each, with its tool calls inside."""
    listed = convert_to_messages(messages)
    if format == "xml":
        return message_separator.join(map(_xml, listed))
    if format != "prefix":
        raise InvalidInputError(f"{format!r} is no format of a transcript.", fix="Use 'prefix' or 'xml'.")
    prefixes = {
        "human": human_prefix,
        "ai": ai_prefix,
        "system": system_prefix,
        "function": function_prefix,
        "tool": tool_prefix,
    }
    return message_separator.join(
        _line(message, prefixes.get(speaker_of(message), speaker_of(message))) for message in listed
    )


def _line(message: BaseMessage, prefix: str) -> str:
    calls = getattr(message, "tool_calls", None) or message.additional_kwargs.get("function_call")
    return f"{prefix}: {message.text}{calls or ''}"


# -- xml -------------------------------------------------------------------------------------------------------------


def _xml(message: BaseMessage) -> str:
    content = " ".join(filter(None, map(_xml_part, _parts(message))))
    calls = [
        *map(_xml_call, getattr(message, "tool_calls", ())),
        *map(_xml_function, filter(None, [message.additional_kwargs.get("function_call")])),
    ]
    if not calls:
        return f"<message type={_quoted(speaker_of(message))}>{content}</message>"
    inner = [f"<content>{content}</content>", *calls] if content else calls
    return "\n".join([f"<message type={_quoted(speaker_of(message))}>", *(f"  {line}" for line in inner), "</message>"])


def _parts(message: BaseMessage) -> list[Any]:
    return [message.content] if isinstance(message.content, str) else message.content


def _xml_part(part: Any) -> str:
    if isinstance(part, str):
        return _escaped(part)
    match part:
        case {"type": "text", "text": str(text)}:
            return _escaped(text)
        case {"type": "reasoning", "reasoning": str(text)}:
            return f"<reasoning>{_escaped(text)}</reasoning>"
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return "" if url.startswith("data:") else f"<image url={_quoted(url)} />"
        case {"type": kind, "url": str(url)} if kind in MEDIA:
            return "" if url.startswith("data:") else f"<{kind} url={_quoted(url)} />"
        case {"type": kind, "file_id": str(id)} if kind in MEDIA:
            return f"<{kind} file_id={_quoted(id)} />"
    return ""


def _xml_call(call: Any) -> str:
    args = json.dumps(call["args"], ensure_ascii=False, default=str)
    return f"<tool_call id={_quoted(call['id'] or '')} name={_quoted(call['name'])}>{_cut(args)}</tool_call>"


def _xml_function(call: Any) -> str:
    return f"<function_call name={_quoted(call.get('name', ''))}>{_cut(call.get('arguments', ''))}</function_call>"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "&quot;") + '"'


def _cut(text: str) -> str:
    return _escaped(text if len(text) <= LONGEST else text[:LONGEST] + "...")


# -- counting --------------------------------------------------------------------------------------------------------


def count_tokens_approximately(
    messages: Iterable[MessageLikeRepresentation],
    *,
    chars_per_token: float = 4.0,
    extra_tokens_per_message: float = 3.0,
    count_name: bool = True,
    tokens_per_image: int = 85,
    use_usage_metadata_scaling: bool = False,
    tools: Sequence[Any] | None = None,
) -> int:
    """Roughly how many tokens the messages (and tool definitions) take: characters by `chars_per_token`, rounded up.

    `use_usage_metadata_scaling` multiplies by what the last model answer reported over what was estimated up to it,
    between 1 and 1.25, when all answers come from one provider.
    """
    total = math.ceil(sum(map(_characters_of_tool, tools)) / chars_per_token) if tools else 0.0
    scale = 1.0
    listed = convert_to_messages(messages)
    for message in listed:
        characters, images = _characters(message, count_name)
        total += math.ceil(characters / chars_per_token) + extra_tokens_per_message + images * tokens_per_image
        if usage := _usage(message):
            scale = min(1.25, max(1.0, usage["total_tokens"] / total))
    scaled = use_usage_metadata_scaling and _one_provider(listed)
    return math.ceil(total * scale if scaled else total)


def _usage(message: BaseMessage) -> UsageMetadata | None:
    return cast(AIMessage, message).usage_metadata if kind_of(message) == "ai" else None


def _one_provider(messages: Iterable[BaseMessage]) -> bool:
    answers = [message for message in messages if kind_of(message) == "ai"]
    providers = {message.response_metadata.get("model_provider") for message in answers}
    return len(providers) == 1 and None not in providers


def _characters(message: BaseMessage, count_name: bool) -> tuple[int, int]:
    """The characters that count as text, and the number of images."""
    kind = speaker_of(message)
    count = len(ROLES.get(kind, kind))
    if kind == "tool":
        count += len(cast(ToolMessage, message).tool_call_id)
    if count_name and message.name:
        count += len(message.name)
    if isinstance(message.content, str):
        calls = cast(AIMessage, message).tool_calls if kind == "ai" else None
        return count + len(message.content) + (len(repr(calls)) if calls else 0), 0
    images = 0
    for part in message.content:
        if isinstance(part, dict) and part.get("type") in ("image", "image_url"):
            images += 1
        else:
            count += _characters_of_part(part)
    return count, images


def _characters_of_part(part: str | dict[str, Any]) -> int:
    if isinstance(part, str):
        return len(part)
    return len(part["text"]) if part.get("type") == "text" and isinstance(part.get("text"), str) else len(repr(part))


def _characters_of_tool(tool: Any) -> int:
    if isinstance(tool, dict):
        return len(json.dumps(tool, ensure_ascii=False, default=str))
    return sum(len(str(getattr(tool, part, ""))) for part in ("name", "description", "args"))
