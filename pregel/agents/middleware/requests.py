"""What wrap hooks are given and give back: the request for a model or tool call, and the response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeAlias

from typing_extensions import TypeVar

from pregel.agents.models.base import ChatModel
from pregel.agents.structured_output import ResponseFormat
from pregel.agents.tools.base import Tool
from pregel.agents.tools.inject import ToolRuntime
from pregel.errors import InvalidInputError
from pregel.messages import AIMessage, BaseMessage, SystemMessage, ToolCall
from pregel.runtime import Runtime
from pregel.types import Command

C = TypeVar("C", default=Any)
R = TypeVar("R", default=Any)


@dataclass(frozen=True, slots=True, init=False)
class ModelRequest(Generic[C]):
    """One model call of an agent. `messages` are without the system message; `override` makes a changed copy.

    What is changed here is for this call alone; nothing of it is written to the state. One that is made by hand, for a
    test, may be given `system_prompt`, the text of the system message, in its place.
    """

    model: ChatModel
    messages: list[BaseMessage]
    system_message: SystemMessage | None
    tool_choice: str | None
    tools: Sequence[Tool | Mapping[str, Any]]
    response_format: ResponseFormat | None
    state: Mapping[str, Any]
    runtime: Runtime[C]
    model_settings: Mapping[str, Any]

    def __init__(
        self,
        *,
        model: ChatModel,
        messages: list[BaseMessage],
        system_message: SystemMessage | None = None,
        system_prompt: str | None = None,
        tool_choice: str | None = None,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        response_format: ResponseFormat | None = None,
        state: Mapping[str, Any] | None = None,
        runtime: Runtime[C] | None = None,
        model_settings: Mapping[str, Any] | None = None,
    ) -> None:
        if system_prompt is not None and system_message is not None:
            raise InvalidInputError("ModelRequest() got system_prompt and system_message.", fix="Give one of them.")
        given = {
            "model": model,
            "messages": messages,
            "system_message": system_message if system_prompt is None else as_system_message(system_prompt),
            "tool_choice": tool_choice,
            "tools": () if tools is None else tools,
            "response_format": response_format,
            "state": {} if state is None else state,
            "runtime": Runtime() if runtime is None else runtime,
            "model_settings": {} if model_settings is None else model_settings,
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)

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
class ModelResponse(Generic[R]):
    """What a model call came to: the messages to add, the AI message among them, and the structured answer."""

    result: list[BaseMessage]
    structured_response: R | None = None


@dataclass(frozen=True, slots=True)
class ExtendedModelResponse(Generic[R]):
    """A response with a Command whose update is applied to the state after the response itself."""

    model_response: ModelResponse[R]
    command: Command[Any] | None = None


ModelCallResult: TypeAlias = ModelResponse[R] | AIMessage | ExtendedModelResponse[R]


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
