"""Middleware: what happens around the steps of an agent."""

from pregel.agents.flow import Either, pause
from pregel.agents.middleware.base import AgentMiddleware, hook_config
from pregel.agents.middleware.budget import AccountMiddleware, BudgetExceededError, BudgetMiddleware
from pregel.agents.middleware.context_editing import ClearToolUsesEdit, ContextEditingMiddleware
from pregel.agents.middleware.decorators import (
    after_agent,
    after_model,
    before_agent,
    before_model,
    dynamic_prompt,
    wrap_model_call,
    wrap_tool_call,
)
from pregel.agents.middleware.file_search import FilesystemFileSearchMiddleware
from pregel.agents.middleware.human import HumanInTheLoopMiddleware, InterruptOnConfig
from pregel.agents.middleware.limits import (
    ModelCallLimitExceededError,
    ModelCallLimitMiddleware,
    ToolCallLimitExceededError,
    ToolCallLimitMiddleware,
)
from pregel.agents.middleware.pii import PIIMiddleware
from pregel.agents.middleware.pii_detectors import PIIMatch
from pregel.agents.middleware.redaction import PIIDetectionError, RedactionRule
from pregel.agents.middleware.requests import (
    ExtendedModelResponse,
    ModelCallResult,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
)
from pregel.agents.middleware.retry import (
    ModelFallbackMiddleware,
    ModelRefusalMiddleware,
    ModelRetryMiddleware,
    ToolErrorMiddleware,
    ToolRetryMiddleware,
)
from pregel.agents.middleware.sessions import (
    Session,
    SessionFailedError,
    SessionMiddleware,
    asessions_of,
    sessions_of,
)
from pregel.agents.middleware.shell import DockerExecutionPolicy, HostExecutionPolicy, ShellToolMiddleware
from pregel.agents.middleware.summarization import SummarizationMiddleware, TriggerClause
from pregel.agents.middleware.todo import TodoListMiddleware
from pregel.agents.middleware.tool_selection import LLMToolEmulator, LLMToolSelectorMiddleware
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
from pregel.types import TracePolicy, omit_payload

__all__ = [
    "AccountMiddleware",
    "AgentMiddleware",
    "AgentState",
    "BudgetExceededError",
    "BudgetMiddleware",
    "ClearToolUsesEdit",
    "ContextEditingMiddleware",
    "DockerExecutionPolicy",
    "Either",
    "ExtendedModelResponse",
    "FilesystemFileSearchMiddleware",
    "HostExecutionPolicy",
    "HumanInTheLoopMiddleware",
    "InputAgentState",
    "InterruptOnConfig",
    "LLMToolEmulator",
    "LLMToolSelectorMiddleware",
    "ModelCallLimitExceededError",
    "ModelCallLimitMiddleware",
    "ModelCallResult",
    "ModelFallbackMiddleware",
    "ModelRefusalMiddleware",
    "ModelRequest",
    "ModelResponse",
    "ModelRetryMiddleware",
    "OmitFromInput",
    "OmitFromOutput",
    "OmitFromSchema",
    "OutputAgentState",
    "PIIDetectionError",
    "PIIMatch",
    "PIIMiddleware",
    "PrivateStateAttr",
    "RedactionRule",
    "Runtime",
    "Session",
    "SessionFailedError",
    "SessionMiddleware",
    "ShellToolMiddleware",
    "SummarizationMiddleware",
    "TodoListMiddleware",
    "ToolCallLimitExceededError",
    "ToolCallLimitMiddleware",
    "ToolCallRequest",
    "ToolErrorMiddleware",
    "ToolRetryMiddleware",
    "TracePolicy",
    "TriggerClause",
    "after_agent",
    "after_model",
    "asessions_of",
    "before_agent",
    "before_model",
    "dynamic_prompt",
    "hook_config",
    "omit_payload",
    "pause",
    "sessions_of",
    "wrap_model_call",
    "wrap_tool_call",
]
