"""Middleware: what happens around the steps of an agent."""

from pregel.agents.flow import Either, pause
from pregel.agents.middleware.base import AgentMiddleware, hook_config
from pregel.agents.middleware.decorators import (
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from pregel.agents.middleware.requests import (
    ExtendedModelResponse,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from pregel.agents.state import (
    AgentState,
    InputAgentState,
    OmitFromInput,
    OmitFromOutput,
    OmitFromSchema,
    OutputAgentState,
    PrivateStateAttr,
)
from pregel.runtime import Runtime

__all__ = [
    "AgentMiddleware",
    "AgentState",
    "Either",
    "ExtendedModelResponse",
    "InputAgentState",
    "ModelCallResult",
    "ModelRequest",
    "ModelResponse",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "OutputAgentState",
    "PrivateStateAttr",
    "Runtime",
    "ToolCallRequest",
    "after_agent",
    "after_model",
    "before_agent",
    "before_model",
    "dynamic_prompt",
    "hook_config",
    "pause",
    "wrap_model_call",
    "wrap_tool_call",
]
