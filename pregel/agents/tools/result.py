"""What a tool returned, as the message that answers its call."""

from __future__ import annotations

import json
from typing import Any

from pregel.agents.schema_pydantic import dumped
from pregel.messages import ToolMessage, is_message
from pregel.messages.convert import kind_of
from pregel.types import Command

BLOCKS = frozenset(
    {"text", "image_url", "image", "json", "search_result", "custom_tool_call_output", "document", "file", "audio"}
)


def is_answer(value: Any) -> bool:
    """Whether it goes on as it is: a tool message, a Command, or a list of those."""
    if isinstance(value, list):
        return bool(value) and all(not isinstance(one, list) and is_answer(one) for one in value)
    return isinstance(value, Command) or (is_message(value) and kind_of(value) == "tool")


def to_content(value: Any) -> Any:
    """A result as a message's content: texts and content blocks as they are, all else as JSON, else as text."""
    if isinstance(value, str) or (isinstance(value, list) and value and all(map(_is_part, value))):
        return value
    try:
        return json.dumps(dumped(value), ensure_ascii=False, default=dumped)
    except (TypeError, ValueError):
        return str(value)


def msg_content_output(value: Any) -> Any:
    """A result as what the model is told: a list of nothing but texts is JSON, for its parts would run together."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return json.dumps(value, ensure_ascii=False)
    return to_content(value)


def _is_part(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, dict) and part.get("type") in BLOCKS)


def answer(value: Any, artifact: Any, *, call_id: str, name: str) -> Any:
    """The tool message for a result; an answer that the tool made itself passes."""
    if is_answer(value):
        return value
    return ToolMessage(to_content(value), tool_call_id=call_id, name=name, artifact=artifact)
