"""Marks for Anthropic's prompt cache: what does not change from call to call is paid for once."""

from __future__ import annotations

from typing import Any

from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.requests import ModelRequest
from pregel.messages import BaseMessage

MARK = {"type": "ephemeral"}


class PromptCacheMiddleware(AgentMiddleware):
    """Marks the end of the system message and the last message of each request, for models of Anthropic only."""

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Set the marks; the stored messages stay as they are."""
        if request.model.provider != "anthropic":
            return (yield request)
        system = _marked(request.system_message) if request.system_message is not None else None
        messages = [*request.messages[:-1], _marked(request.messages[-1])] if request.messages else []
        return (yield request.override(system_message=system, messages=messages))


def _marked(message: Any) -> Any:
    """The message with a mark on its last block of text; as it is when it has none."""
    content: list[Any] = (
        [{"type": "text", "text": message.content}] if isinstance(message.content, str) else list(message.content)
    )
    last = content[-1] if content else None
    if not isinstance(last, dict) or last.get("type") != "text" or not last["text"].strip():
        return message
    marked: BaseMessage = message.model_copy(update={"content": [*content[:-1], {**last, "cache_control": MARK}]})
    return marked
