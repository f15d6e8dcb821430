"""What wrap hooks are given and give back: the request for a model or tool call, and the response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pregel.agents.models.base import ChatModel
from pregel.agents.structured_output import ResponseFormat
from pregel.agents.tools.base import Tool
from pregel.agents.tools.inject import ToolRuntime
from pregel.errors import InvalidInputError
from pregel.messages import AIMessage, BaseMessage, SystemMessage, ToolCall
from pregel.runtime import Runtime
from pregel.types import Command


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """One model call of an agent. `messages` are without the system message; `override` makes a changed copy.

    What is changed here is for this call alone; nothing of it is written to the state.
    """

    model: ChatModel
    messages: list[BaseMessage]
    system_message: SystemMessage | None = None
    tool_choice: str | None = None
    tools: Sequence[Tool | Mapping[str, Any]] = ()
    response_format: ResponseFormat | None = None
    state: Mapping[str, Any] = field(default_factory=dict)
    runtime: Runtime[Any] = field(default_factory=Runtime)
    model_settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def system_prompt(self) -> str | None:
        """The text of the system message."""
        return self.system_message.text if self.system_message is not None else None

    def override(self, **fields: Any) -> Self:
        """A copy with some fields replaced; `system_prompt` stands for the system message."""
        if "system_prompt" in fields:
            if "system_message" in fields:
                raise InvalidInputError("override() got system_prompt and system_message.", fix="Give one of them.")
            text = fields.pop("system_prompt")
            fields["system_message"] = as_system_message(text)
        return replace(self, **fields)


def as_system_message(prompt: str | SystemMessage | None) -> SystemMessage | None:
    """A system message from a text."""
    return SystemMessage(prompt) if isinstance(prompt, str) else prompt


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """What a model call came to: the messages to add, the AI message among them, and the structured answer."""

    result: list[BaseMessage]
    structured_response: Any = None


@dataclass(frozen=True, slots=True)
class ExtendedModelResponse:
    """A response with a Command whose update is applied to the state after the response itself."""

    model_response: ModelResponse
    command: Command[Any] | None = None


ModelCallResult = ModelResponse | AIMessage | ExtendedModelResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallRequest:
    """One tool call. `tool` is None when no tool of that name is registered; a wrap hook may supply one."""

    tool_call: ToolCall
    tool: Tool | None
    state: Any
    runtime: ToolRuntime[Any, Any]

    def override(self, **fields: Any) -> Self:
        """A copy with some fields replaced; the runtime's state follows `state`."""
        if "state" in fields and "runtime" not in fields:
            fields["runtime"] = self.runtime.override(state=fields["state"])
        return replace(self, **fields)
