"""A model chooses which tools the agent's model gets to see, and a model may stand in for tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from pregel.agents.flow import AgentFlow
from pregel.agents.middleware.asking import ask
from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.requests import ModelRequest, ToolCallRequest
from pregel.agents.models.base import ChatModel, ToolSpec
from pregel.agents.models.init import as_model
from pregel.agents.tools.base import Tool
from pregel.errors import DefinitionError, InvalidInputError
from pregel.messages import HumanMessage, SystemMessage, ToolMessage
from pregel.messages.convert import kind_of

OnParsingFailure: TypeAlias = "Literal['error', 'none', 'all'] | Sequence[str] | Callable[[Exception], Sequence[str]]"
SELECT = "select_tools"
PROMPT = "Choose the tools that are needed to answer the message below, the most useful ones first."


class LLMToolSelectorMiddleware(AgentMiddleware):
    """Shows the model only the tools that another model call chose by the last human message.

    - `max_tools`: at most so many are kept, the first ones; `always_include`: names that are always shown besides.
    - `on_parsing_failure`, when the choice could not be read after `max_retries` more tries: raise the "error", show
      "none" or "all", or the names given, or what a function of the error gives.
    """

    def __init__(
        self,
        *,
        model: Any = None,
        system_prompt: str = PROMPT,
        max_tools: int | None = None,
        always_include: Sequence[str] | None = None,
        max_retries: int = 1,
        on_parsing_failure: OnParsingFailure = "error",
    ) -> None:
        self.model = as_model(model) if model is not None else None
        self.system_prompt, self.max_tools = system_prompt, max_tools
        self.always, self.max_retries, self.on_failure = set(always_include or ()), max_retries, on_parsing_failure

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Choose, and ask with the chosen tools."""
        tools = [tool for tool in request.tools if isinstance(tool, Tool)]
        unknown = self.always - {tool.name for tool in tools}
        if unknown:
            raise DefinitionError(
                f"always_include names {', '.join(map(repr, sorted(unknown)))}, which the agent does not have.",
                fix=f"Its tools: {', '.join(tool.name for tool in tools)}.",
            )
        choice = [tool for tool in tools if tool.name not in self.always]
        if not choice:
            return (yield request)
        names = {*self.always, *(yield from self._chosen(request, choice))}
        kept = [tool for tool in request.tools if not isinstance(tool, Tool) or tool.name in names]
        return (yield request.override(tools=kept))

    def _chosen(self, request: ModelRequest, choice: Sequence[Tool]) -> AgentFlow[Sequence[str]]:
        last = next((one for one in reversed(request.messages) if kind_of(one) == "human"), None)
        if last is None:
            return [tool.name for tool in choice]
        model = (self.model or request.model).bind_tools([_select(choice, self.max_tools)], tool_choice=SELECT)
        listed = "\n".join(f"- {tool.name}: {tool.description}" for tool in choice)
        messages = [SystemMessage(f"{self.system_prompt}\n\nThe tools:\n{listed}"), HumanMessage(last.content)]
        for left in range(self.max_retries, -1, -1):
            answer = yield ask(model, messages)
            try:
                return self._read(answer, choice)
            except InvalidInputError as error:
                if not left:
                    return self._failed(error, choice)
        raise AssertionError

    def _read(self, answer: Any, choice: Sequence[Tool]) -> list[str]:
        known = [tool.name for tool in choice]
        call = next((one for one in answer.tool_calls if one["name"] == SELECT), None)
        names = call["args"].get("tools") if call is not None else None
        if not isinstance(names, list):
            raise InvalidInputError("The model chose no tools.", fix="Set on_parsing_failure= to go on without it.")
        invalid = [name for name in names if name not in known]
        if invalid:
            raise InvalidInputError(
                f"The model chose {', '.join(map(repr, invalid))}, which are no tools.",
                fix=f"Tools: {', '.join(known)}.",
            )
        return list(dict.fromkeys(names))[: self.max_tools]

    def _failed(self, error: Exception, choice: Sequence[Tool]) -> Sequence[str]:
        if self.on_failure == "error":
            raise error
        if isinstance(self.on_failure, str):
            return [tool.name for tool in choice] if self.on_failure == "all" else []
        return self.on_failure(error) if callable(self.on_failure) else self.on_failure


def _select(choice: Sequence[Tool], most: int | None) -> ToolSpec:
    items: dict[str, Any] = {"type": "string", "enum": [tool.name for tool in choice]}
    array: dict[str, Any] = {"type": "array", "items": items}
    if most is not None:
        array["maxItems"] = most
    parameters = {"type": "object", "properties": {"tools": array}, "required": ["tools"]}
    return ToolSpec(name=SELECT, description="Choose tools by name.", parameters=parameters)


class LLMToolEmulator(AgentMiddleware):
    """Answers tool calls with what a model makes up, for trials of an agent without its tools.

    `tools`: names or tools to stand in for; None: all.
    """

    def __init__(self, *, tools: Sequence[Any] | None = None, model: ChatModel | Any) -> None:
        self.names = None if tools is None else {tool if isinstance(tool, str) else tool.name for tool in tools}
        self.model = as_model(model)

    def wrap_tool_call(self, request: ToolCallRequest, *_: Any) -> Any:
        """Make an answer up."""
        call = request.tool_call
        if self.names is not None and call["name"] not in self.names:
            return (yield request)
        described = request.tool.description if request.tool is not None else "(not described)"
        arguments: Mapping[str, Any] = call["args"]
        answer = yield ask(
            self.model,
            "Make up what this tool would plausibly return for this call. Answer with its output alone.\n"
            f"Tool: {call['name']}\nWhat it does: {described}\nArguments: {json.dumps(arguments, default=str)}",
        )
        return ToolMessage(answer.content, tool_call_id=call["id"], name=call["name"])
