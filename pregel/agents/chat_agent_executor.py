"""`create_react_agent`: the older way to make an agent, with hooks as nodes instead of middleware.

::

    START → (pre_model_hook →) agent → (post_model_hook →) ⇢ tools → back, or (generate_structured_response →) END
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict

from pregel.agents.flow import AgentFlow, Either, FlowRunnable, calling
from pregel.agents.history import answered_ids, in_order, last_answer, pending_calls
from pregel.agents.models.base import ChatModel, aanswered, answered
from pregel.agents.models.init import as_model
from pregel.agents.structured_output import AutoStrategy, schemas_of
from pregel.agents.tool_node import ToolNode
from pregel.agents.tools.foreign import tool_list
from pregel.channels import EphemeralValue
from pregel.checkpoint.serde.registry import register_types, types_of
from pregel.constants import END, START
from pregel.errors import AsyncOnlyError, InvalidInputError
from pregel.graph.schema import annotations_of
from pregel.graph.state import CompiledStateGraph, StateGraph
from pregel.managed import RemainingSteps
from pregel.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    SystemMessage,
    add_messages,
    convert_to_messages,
    whole_messages,
    with_ids,
)
from pregel.messages.convert import is_message, kind_of
from pregel.runnable import Runnable, coerce_to_runnable, is_async_callable
from pregel.types import Checkpointer, Send

TOO_FEW = "Sorry, this needs more steps than are left to me."
AGENT, TOOLS, BEFORE, BEHIND, STRUCTURED = (
    *("agent", "tools", "pre_model_hook", "post_model_hook"),
    "generate_structured_response",
)


class InvalidChatHistoryError(InvalidInputError):
    """A history has tool calls that nothing answers."""

    code = "INVALID_CHAT_HISTORY"


class AgentState(TypedDict):
    """Messages, and how many steps are left."""

    messages: Annotated[list[AnyMessage], add_messages]
    remaining_steps: NotRequired[RemainingSteps]


class AgentStateWithStructuredResponse(AgentState):
    """The same with a structured answer."""

    structured_response: Any


def __getattr__(name: str) -> Any:
    """The pydantic states, loaded when they are asked for: they alone need pydantic."""
    if name in ("AgentStatePydantic", "AgentStateWithStructuredResponsePydantic"):
        from pregel.agents import state_pydantic

        return getattr(state_pydantic, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def create_react_agent(
    model: Any,
    tools: Sequence[Any] | ToolNode,
    *,
    prompt: Any = None,
    response_format: Any = None,
    pre_model_hook: Any = None,
    post_model_hook: Any = None,
    state_schema: Any = None,
    context_schema: type | None = None,
    checkpointer: Checkpointer = None,
    store: Any = None,
    interrupt_before: Sequence[str] | None = None,
    interrupt_after: Sequence[str] | None = None,
    debug: bool = False,
    version: Literal["v1", "v2"] = "v2",
    name: str | None = None,
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """An agent as a graph of the nodes agent and tools; `create_agent` is the newer way.

    - `model`: a chat model, ``"provider:name"``, or a function of (state, runtime) that gives one.
    - `prompt`: a system prompt, or a function or runnable that makes the model's input from the state.
    - `response_format`: a schema, or (system prompt, schema): one more model call gives ``structured_response``.
    - `pre_model_hook`, `post_model_hook`: nodes around the model. The first may return ``llm_input_messages``, which
      the model sees in the place of the messages.
    - `version`: "v2" runs each tool call as a task of its own, "v1" all of a message in one.
    """
    if version not in ("v1", "v2"):
        raise InvalidInputError(f"Invalid version {version!r}.", fix="Supported versions are 'v1' and 'v2'.")
    schema = _state_schema(state_schema, structured=response_format is not None)
    tool_node = tools if isinstance(tools, ToolNode) else ToolNode(_own(tools))
    provided = [] if isinstance(tools, ToolNode) else [tool for tool in tools if isinstance(tool, Mapping)]
    agent = _Agent(model, tool_node, provided, prompt, name)
    graph = StateGraph(schema, context_schema=context_schema)
    graph.add_node(AGENT, FlowRunnable(agent.flow, AGENT), input_schema=_with_input(schema, pre_model_hook))
    entry, last = AGENT, AGENT
    if pre_model_hook is not None:
        graph.add_node(BEFORE, pre_model_hook).add_edge(BEFORE, AGENT)
        entry = BEFORE
    if post_model_hook is not None:
        graph.add_node(BEHIND, post_model_hook).add_edge(AGENT, BEHIND)
        last = BEHIND
    exit = END
    if response_format is not None:
        exit = STRUCTURED
        graph.add_node(STRUCTURED, FlowRunnable(agent.structured(response_format), STRUCTURED)).add_edge(
            STRUCTURED, END
        )
    graph.add_edge(START, entry)
    _add_routes(graph, tool_node, entry, last, exit, version)
    return graph.compile(
        checkpointer=checkpointer,
        store=store,
        interrupt_before=interrupt_before,
        interrupt_after=interrupt_after,
        debug=debug,
        name=name,
    )


create_tool_calling_executor = create_react_agent


def _add_routes(
    graph: StateGraph[Any, Any, Any, Any], tool_node: ToolNode, entry: str, last: str, exit: str, version: str
) -> None:
    if not tool_node.tools_by_name:
        graph.add_edge(last, exit)
        return
    graph.add_node(TOOLS, tool_node)
    again = exit if last == AGENT else entry  # where a hook answered the calls itself
    graph.add_conditional_edges(last, _Next(_after_model(again, exit, version)), _unique([again, TOOLS, exit]))
    direct = {tool.name for tool in tool_node.tools_by_name.values() if tool.return_direct}
    if direct:
        graph.add_conditional_edges(TOOLS, _Next(_after_tools(entry, direct)), [entry, END])
    else:
        graph.add_edge(TOOLS, entry)


# -- the nodes ---------------------------------------------------------------------------------------------------------


class _Agent:
    """Asks the model."""

    def __init__(self, model: Any, tool_node: ToolNode, provided: Sequence[Any], prompt: Any, name: str | None) -> None:
        self.tools = list(tool_node.tools_by_name.values())
        self.direct = {tool.name for tool in self.tools if tool.return_direct}
        self.provided, self.name = list(provided), name
        self.prompt = _prompt(prompt)
        self.choose = model if _is_chooser(model) else None
        self.model = None if self.choose is not None else self._bound(as_model(model))

    def _bound(self, model: ChatModel) -> ChatModel:
        if not model.bound.tools:
            return model.bind_tools([*self.tools, *self.provided]) if self.tools or self.provided else model
        bound = {getattr(tool, "name", None) for tool in model.bound.tools if not isinstance(tool, Mapping)}
        mine = {tool.name for tool in self.tools}
        if bound != mine:
            raise InvalidInputError(
                f"The model is bound to the tools {sorted(map(str, bound))}, the agent has {sorted(mine)}.",
                fix="Bind the same tools, or leave the binding to create_react_agent.",
            )
        return model

    def flow(self, state: Any, running: Any) -> AgentFlow[Any]:
        """The model's answer to the state."""
        messages = _value(state, "llm_input_messages") or _value(state, "messages") or []
        _check_history(messages)
        model = yield from self._model(state, running)
        given = yield from self._input(state, messages)
        request = model.request(in_order(list(given)))
        answer: AIMessage = yield Either(lambda: answered(model, request), lambda: aanswered(model, request))
        if self.name is not None:
            answer = answer.model_copy(update={"name": self.name})
        if self._needs_more_steps(state, answer):
            answer = AIMessage(TOO_FEW, id=answer.id, name=self.name)
        return {"messages": with_ids([answer])}

    def _model(self, state: Any, running: Any) -> AgentFlow[ChatModel]:
        if self.model is not None:
            return self.model
        chosen = yield _choose(self.choose, state, running)
        return as_model(chosen)

    def _input(self, state: Any, messages: Any) -> AgentFlow[Sequence[BaseMessage]]:
        if self.prompt is None:
            return messages  # type: ignore[no-any-return]
        if is_message(self.prompt):
            return [self.prompt, *messages]
        made = yield Either(lambda: self.prompt.invoke(state), lambda: self.prompt.ainvoke(state))
        if hasattr(made, "invoke"):  # the function gave a template of prompts
            template = coerce_to_runnable(made)
            made = yield Either(lambda: template.invoke(state), lambda: template.ainvoke(state))
        return whole_messages(convert_to_messages(made))

    def _needs_more_steps(self, state: Any, answer: AIMessage) -> bool:
        left = _value(state, "remaining_steps")
        if left is None or not answer.tool_calls:
            return False
        all_direct = all(call["name"] in self.direct for call in answer.tool_calls)
        return bool(left < 1 if all_direct else left < 2)

    def structured(self, response_format: Any) -> Callable[[Any, Any], Any]:
        """The work of the node that gives the structured answer."""
        prompt, schema = response_format if isinstance(response_format, tuple) else (None, response_format)
        register_types({cls for one in schemas_of(AutoStrategy(schema)) for cls in types_of(one)})

        def flow(state: Any, running: Any) -> AgentFlow[Any]:
            model = yield from self._model(state, running)
            asked = model.with_structured_output(schema)
            messages = [*([SystemMessage(prompt)] if prompt else []), *_value(state, "messages")]
            data = yield Either(lambda: asked.invoke(messages), lambda: asked.ainvoke(messages))
            return {"structured_response": data}

        return flow


def _is_chooser(model: Any) -> bool:
    return callable(model) and not isinstance(model, ChatModel) and not hasattr(model, "invoke")


def _choose(choose: Any, state: Any, running: Any) -> Either:
    if not is_async_callable(choose):
        return calling(choose, state, running.runtime)

    def refuse() -> Any:
        raise AsyncOnlyError("The model is chosen by an async function.", fix="Use ainvoke, or a plain function.")

    return Either(refuse, lambda: choose(state, running.runtime))


def _prompt(prompt: Any) -> Any:
    """A system message, a runnable that makes the model's input, or None."""
    if prompt is None or (is_message(prompt) and kind_of(prompt) == "system"):
        return prompt
    if isinstance(prompt, str):
        return SystemMessage(prompt)
    if callable(prompt) or hasattr(prompt, "invoke") or inspect.iscoroutinefunction(prompt):
        return coerce_to_runnable(prompt)
    raise InvalidInputError(f"{prompt!r} is no prompt.", fix="Give a str, a SystemMessage, a function or a runnable.")


def _check_history(messages: Sequence[BaseMessage]) -> None:
    """InvalidChatHistoryError for calls that nothing answers."""
    answered_by = answered_ids(messages)
    calls = [call for one in messages if kind_of(one) == "ai" for call in getattr(one, "tool_calls", ())]
    open_calls = [call for call in calls if call["id"] not in answered_by]
    if open_calls:
        names = ", ".join(f"{call['name']} ({call['id']})" for call in open_calls[:3])
        raise InvalidChatHistoryError(
            f"Found AIMessages with tool_calls that have no ToolMessage: {names}.",
            fix="Answer every tool call before the model is asked again.",
        )


# -- the routes --------------------------------------------------------------------------------------------------------


class _Next(Runnable):
    """The path of a conditional edge; it never waits."""

    has_async = True

    def __init__(self, choose: Callable[[Any], Any]) -> None:
        self.choose, self.name = choose, "next"

    def call(self, value: Any, running: Any) -> Any:
        return self.choose(_value(value, "messages") or [])


def _after_model(again: str, exit: str, version: str) -> Callable[[Any], Any]:
    def choose(messages: Any) -> Any:
        answer, after = last_answer(messages)
        calls = pending_calls(answer, after) if answer is not None else []
        if calls:
            return [Send(TOOLS, [call]) for call in calls] if version == "v2" else TOOLS
        return again if messages and kind_of(messages[-1]) == "tool" else exit

    return choose


def _after_tools(entry: str, direct: set[str]) -> Callable[[Any], Any]:
    def choose(messages: Any) -> Any:
        answer, after = last_answer(messages)
        called = {call["name"] for call in answer.tool_calls} if answer is not None else set()
        named = {one.name for one in after if kind_of(one) == "tool"}
        return END if direct & (named | called) else entry

    return choose


# -- the state ---------------------------------------------------------------------------------------------------------


def _state_schema(schema: Any, *, structured: bool) -> Any:
    if schema is None:
        return AgentStateWithStructuredResponse if structured else AgentState
    needed = {"messages", "remaining_steps", *(["structured_response"] if structured else [])}
    missing = needed - set(annotations_of(schema))
    if missing:
        raise InvalidInputError(
            f"Missing required key(s) {missing} in state_schema.", fix="Subclass AgentState and add your keys."
        )
    return schema


def _with_input(schema: Any, pre_model_hook: Any) -> Any:
    """What the model's node reads: the state, and the key by which a pre-model hook gives it its input."""
    if pre_model_hook is None:
        return schema
    fields = {**annotations_of(schema), "llm_input_messages": NotRequired[Annotated[list[Any], EphemeralValue]]}
    made: Any = TypedDict
    return made("ReactState", fields, total=False)


def _value(state: Any, key: str) -> Any:
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def _own(tools: Sequence[Any]) -> list[Any]:
    return [tool for tool in tool_list(tools) if not isinstance(tool, Mapping)]


def _unique(names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(names))


__all__ = [
    "AgentState",
    "AgentStateWithStructuredResponse",
    "InvalidChatHistoryError",
    "create_react_agent",
    "create_tool_calling_executor",
]
