"""Tools: functions that a model may call."""

from pregel.agents.tools.base import BaseTool, StructuredTool, Tool, ToolException, ToolInvocationError
from pregel.agents.tools.decorator import tool
from pregel.agents.tools.foreign import as_tool
from pregel.agents.tools.inject import InjectedState, InjectedStore, InjectedToolArg, InjectedToolCallId, ToolRuntime

__all__ = [
    "BaseTool",
    "InjectedState",
    "InjectedStore",
    "InjectedToolArg",
    "InjectedToolCallId",
    "StructuredTool",
    "Tool",
    "ToolException",
    "ToolInvocationError",
    "ToolRuntime",
    "as_tool",
    "tool",
]
