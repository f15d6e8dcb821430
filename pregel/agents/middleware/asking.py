"""How a middleware asks a model for itself: quietly, so that nobody streams its words as the agent's."""

from __future__ import annotations

from typing import Any

from pregel.agents.flow import Either
from pregel.agents.models.base import ChatModel, aanswered, answered

QUIETLY = ("nostream",)


def ask(model: ChatModel, messages: Any, **settings: Any) -> Either:
    """The model's answer; yield it in a hook that is a flow."""
    request = model.request(messages, **settings)
    return Either(lambda: answered(model, request, QUIETLY), lambda: aanswered(model, request, QUIETLY))
