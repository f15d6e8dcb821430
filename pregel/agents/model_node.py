"""The node that asks the model: mend the history, make the request, run the wrap hooks around it, read the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from pregel.agents.flow import AgentFlow, Either
from pregel.agents.history import in_order, with_answers, with_call_ids
from pregel.agents.middleware.base import Hook
from pregel.agents.middleware.compose import compose
from pregel.agents.middleware.requests import ExtendedModelResponse, ModelRequest, ModelResponse
from pregel.agents.models.base import ChatModel, ChatRequest, ToolSpec, aanswered, answered, tool_spec
from pregel.agents.models.init import as_model
from pregel.agents.recorded import RecordedAnswers
from pregel.agents.schema_pydantic import InvalidArguments
from pregel.agents.structured_output import (
    AutoStrategy,
    MultipleStructuredOutputsError,
    ProviderStrategy,
    ResponseFormat,
    StructuredOutputError,
    StructuredOutputValidationError,
    ToolStrategy,
    as_strategy,
)
from pregel.agents.tools.base import Tool
from pregel.errors import InvalidInputError, InvalidUpdateError
from pregel.messages import (
    REMOVE_ALL_MESSAGES,
    AIMessage,
    BaseMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    with_ids,
)
from pregel.messages.convert import kind_of
from pregel.types import Command


@dataclass(slots=True)
class Answer:
    """What a layer of wrap hooks came to: the response, and the Commands to apply after it, inner ones first."""

    response: ModelResponse
    commands: list[Command[Any]] = field(default_factory=list)


class ModelNode:
    """Asks the model once. `flow` is the node's work; the rest of it is what `create_agent` was given."""

    def __init__(
        self,
        model: ChatModel,
        *,
        tools: Sequence[Tool | Mapping[str, Any]] = (),
        system_message: SystemMessage | None = None,
        response_format: ResponseFormat | None = None,
        name: str | None = None,
        hooks: Sequence[Hook] = (),
        open_tools: bool = False,
    ) -> None:
        self.model, self.tools, self.system_message = model, list(tools), system_message
        self.response_format, self.name, self.open_tools = response_format, name, open_tools
        self.known = {tool.name for tool in tools if isinstance(tool, Tool)}
        self.declared = _structured_names(response_format)
        self.hooks = list(hooks)

    def flow(self, state: Mapping[str, Any], running: Any) -> AgentFlow[Any]:
        """The node's update."""
        history = list(state.get("messages") or ())
        messages = with_answers(history)
        request = ModelRequest(
            model=self.model,
            messages=messages,
            system_message=self.system_message,
            tools=self.tools,
            response_format=self.response_format,
            state=state,
            runtime=running.runtime,
        )
        answer = yield from self._answer(request, running)
        news: list[BaseMessage] = with_ids(list(answer.response.result))
        if messages is not history:  # what was mended is stored as the model saw it
            news = [RemoveMessage(REMOVE_ALL_MESSAGES), *with_ids(messages), *news]
        update: dict[str, Any] = {"messages": news}
        if self.response_format is not None or answer.response.structured_response is not None:
            update["structured_response"] = answer.response.structured_response
        return [Command(update=update), *answer.commands] if answer.commands else update

    def _answer(self, request: ModelRequest, task: Any) -> AgentFlow[Answer]:
        """What the hooks come to, around answers that are recorded; without hooks the task's end records the answer."""
        if not self.hooks:
            return (yield from self._ask(request))
        recorded = RecordedAnswers(task)
        chain = compose(self.hooks, lambda asked: self._ask(asked, recorded), _shown, _finished)
        answer: Answer = yield from recorded.voiding(chain(request))
        return answer

    # -- the innermost step --------------------------------------------------------------------------------------------

    def _ask(self, request: ModelRequest, recorded: RecordedAnswers | None = None) -> AgentFlow[Answer]:
        model = as_model(request.model)
        strategy = self._strategy(request, model)
        asked = self._request(request, model, strategy)

        def ask() -> AgentFlow[AIMessage]:
            answer: AIMessage = yield Either(lambda: answered(model, asked), lambda: aanswered(model, asked))
            answer = with_call_ids(answer, _messages_of(request.state), _new_call_id)
            return answer if self.name is None else answer.model_copy(update={"name": self.name})

        return Answer(_read((yield from (ask() if recorded is None else recorded.asked(ask))), strategy))

    def _strategy(self, request: ModelRequest, model: ChatModel) -> ToolStrategy[Any] | ProviderStrategy[Any] | None:
        strategy = as_strategy(request.response_format)
        if isinstance(strategy, AutoStrategy):
            strategy = strategy.for_model(model)
        if isinstance(strategy, ToolStrategy):
            unknown = [spec.name for spec in strategy.schema_specs if spec.name not in self.declared]
            if unknown:
                raise InvalidInputError(
                    f"A middleware asked for {', '.join(map(repr, unknown))}, which the agent's response_format lacks.",
                    fix="Declare every schema in create_agent(response_format=...).",
                )
        return strategy

    def _request(self, request: ModelRequest, model: ChatModel, strategy: Any) -> ChatRequest:
        specs = [tool_spec(tool) for tool in request.tools]
        self._check_tools(specs)
        choice, output = request.tool_choice, None
        if isinstance(strategy, ToolStrategy):
            specs += [spec.as_tool() for spec in strategy.schema_specs]
            choice = choice or "any"
        elif isinstance(strategy, ProviderStrategy):
            output = strategy.schema_spec.as_output()
        system = [request.system_message] if request.system_message is not None else []
        messages = [*system, *in_order(list(request.messages))]
        settings = {**model.bound.settings, **request.model_settings}
        return ChatRequest(
            messages=messages,
            tools=[*model.bound.tools, *specs] if model.bound.tools else specs,
            tool_choice=choice or model.bound.tool_choice,
            output=output or model.bound.output,
            settings=settings,
        )

    def _check_tools(self, specs: Sequence[Any]) -> None:
        unknown = [spec.name for spec in specs if isinstance(spec, ToolSpec) and spec.name not in self.known]
        if unknown and not self.open_tools:
            raise InvalidInputError(
                f"A middleware added tools that nobody runs: {', '.join(map(repr, unknown))}.",
                fix="Name them in the middleware's `tools`, or write wrap_tool_call and supply them there.",
            )


def _structured_names(response_format: ResponseFormat | None) -> frozenset[str]:
    strategy = response_format.tool_strategy if isinstance(response_format, AutoStrategy) else response_format
    specs = strategy.schema_specs if isinstance(strategy, ToolStrategy) else ()
    return frozenset(spec.name for spec in specs)


def structured_names(response_format: ResponseFormat | None) -> frozenset[str]:
    """The names of the pseudo-tools by which a model may give its structured answer."""
    return _structured_names(response_format)


def _messages_of(state: Any) -> Sequence[BaseMessage]:
    found = state.get("messages") if isinstance(state, Mapping) else getattr(state, "messages", None)
    return found or ()


def _new_call_id() -> str:
    return f"call_{uuid4().hex}"


# -- the answer --------------------------------------------------------------------------------------------------------


def _read(answer: AIMessage, strategy: Any) -> ModelResponse:
    """The response of an answer, with the structured data in it."""
    if isinstance(strategy, ProviderStrategy) and not answer.tool_calls:
        return ModelResponse([answer], strategy.parse(answer))
    if not isinstance(strategy, ToolStrategy):
        return ModelResponse([answer])
    specs = {spec.name: spec for spec in strategy.schema_specs}
    calls = [call for call in answer.tool_calls if call["name"] in specs]
    if not calls:
        return ModelResponse([answer])
    try:
        if len(calls) > 1:
            raise MultipleStructuredOutputsError([call["name"] for call in calls], answer)
        data = _parsed(specs[calls[0]["name"]], calls[0], answer)
    except StructuredOutputError as error:
        text = _told(error, strategy.handle_errors)
        return ModelResponse([answer, *(_result(text, call, "error") for call in calls)])
    text = strategy.tool_message_content or f"The structured answer was taken: {data!r}"
    return ModelResponse([answer, _result(text, calls[0], "success")], data)


def _parsed(spec: Any, call: Any, answer: AIMessage) -> Any:
    try:
        return spec.parse(call["args"])
    except InvalidArguments as error:
        raise StructuredOutputValidationError(spec.name, error, answer) from error


def _result(text: str, call: Any, status: Any) -> ToolMessage:
    return ToolMessage(text, tool_call_id=str(call["id"]), name=call["name"], status=status)


def _told(error: StructuredOutputError, handle: Any) -> str:
    """What the model is told of a bad structured answer; the error itself where it is not to be told."""
    if handle is True:
        return f"Error: {error}\nMend the answer and give it again."
    if isinstance(handle, str):
        return handle
    kinds = handle if isinstance(handle, tuple) else (handle,)
    if handle is not False and all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        source = getattr(error, "source", error)
        if isinstance(error, kinds) or isinstance(source, kinds) or isinstance(source.__cause__, kinds):
            return f"Error: {error}\nMend the answer and give it again."
        raise error
    if callable(handle):
        return str(handle(error))
    raise error


# -- the layers --------------------------------------------------------------------------------------------------------


def _shown(answer: Answer) -> ModelResponse:
    return answer.response


def _finished(result: Any, last: Answer | None, request: ModelRequest) -> Answer:
    """The answer of a layer from what its hook returned."""
    commands = list(last.commands) if last is not None else []
    if isinstance(result, ExtendedModelResponse):
        if result.command is not None:
            commands.append(_checked(result.command))
        result = result.model_response
    if isinstance(result, ModelResponse):
        return Answer(result, commands)
    if hasattr(result, "content") and kind_of(result) == "ai":
        return Answer(ModelResponse([result]), commands)
    raise InvalidUpdateError(
        f"A wrap_model_call hook returned a {type(result).__name__}.",
        fix="Return what the handler returned, a ModelResponse, an ExtendedModelResponse or an AIMessage.",
    )


def _checked(command: Command[Any]) -> Command[Any]:
    jumps = isinstance(command.update, Mapping) and "jump_to" in command.update
    if command.goto or command.resume is not None or command.graph is not None or jumps:
        raise InvalidUpdateError(
            "The command of an ExtendedModelResponse routes, resumes, or is for another graph.",
            fix='It may only update the state; to route, return {"jump_to": ...} from a node hook.',
        )
    return command
