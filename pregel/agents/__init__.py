"""Agents: models that call tools in a loop, as graphs."""

from pregel.agents.models import ScriptedModel, as_model, init_chat_model
from pregel.agents.tools import (
    BaseTool,
    InjectedState,
    InjectedStore,
    InjectedToolArg,
    InjectedToolCallId,
    StructuredTool,
    Tool,
    ToolException,
    ToolRuntime,
    tool,
)

__all__ = [
    "BaseTool",
    "InjectedState",
    "InjectedStore",
    "InjectedToolArg",
    "InjectedToolCallId",
    "ScriptedModel",
    "StructuredTool",
    "Tool",
    "ToolException",
    "ToolRuntime",
    "as_model",
    "init_chat_model",
    "tool",
]
