"""Agents: models that call tools in a loop, as graphs."""

from pregel.agents.chat_agent_executor import create_react_agent
from pregel.agents.create import create_agent
from pregel.agents.models import ScriptedModel, as_model, init_chat_model
from pregel.agents.state import AgentState
from pregel.agents.tool_call_stream import ToolCallTransformer
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
from pregel.agents.validation_node import ValidationNode

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
    "ToolCallTransformer",
    "ToolException",
    "ToolNode",
    "ToolRuntime",
    "ValidationNode",
    "as_model",
    "create_agent",
    "create_react_agent",
    "init_chat_model",
    "tool",
    "tools_condition",
]
