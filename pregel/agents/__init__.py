"""Agents: models that call tools in a loop, as graphs."""

from pregel.agents.create import create_agent
from pregel.agents.models import ScriptedModel, as_model, init_chat_model
from pregel.agents.state import AgentState
from pregel.agents.tool_node import ToolNode, tools_condition
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
    "AgentState",
    "BaseTool",
    "InjectedState",
    "InjectedStore",
    "InjectedToolArg",
    "InjectedToolCallId",
    "ScriptedModel",
    "StructuredTool",
    "Tool",
    "ToolException",
    "ToolNode",
    "ToolRuntime",
    "as_model",
    "create_agent",
    "init_chat_model",
    "tool",
    "tools_condition",
]
