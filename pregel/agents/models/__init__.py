"""Chat models: the protocol (`base`), the scripted one, and adapters."""

from pregel.agents.models.base import ChatModel, ChatRequest, ModelProfile, OutputSchema, ToolSpec, tool_spec
from pregel.agents.models.errors import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
    ModelRefusalError,
    ModelTimeoutError,
    is_retryable,
)
from pregel.agents.models.init import as_model, init_chat_model
from pregel.agents.models.scripted import ScriptedModel, Turn, call_tool, call_tools

__all__ = [
    "ChatModel",
    "ChatRequest",
    "ContextOverflowError",
    "ModelAPIError",
    "ModelAuthenticationError",
    "ModelConnectionError",
    "ModelError",
    "ModelInvalidRequestError",
    "ModelNotFoundError",
    "ModelPermissionDeniedError",
    "ModelProfile",
    "ModelRateLimitError",
    "ModelRefusalError",
    "ModelTimeoutError",
    "OutputSchema",
    "ScriptedModel",
    "ToolSpec",
    "Turn",
    "as_model",
    "call_tool",
    "call_tools",
    "init_chat_model",
    "is_retryable",
    "tool_spec",
]
