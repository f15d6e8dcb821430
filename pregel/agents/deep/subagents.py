"""Subagents: agents that an agent gives a task to, with a context of their own, through the tool `task`.

1. A subagent gets the task as its only message (in mode "fork": the history up to the call, then the task) and the
   shared state, such as files. What comes back is one result, and what it changed of the shared state.
2. Several tasks in one answer run side by side; each is a task of the graph, so its result is stored as soon as it is
   there, and one that fails is told to the model like any failed tool.
3. A question that a subagent asks surfaces at the root; the answer goes on inside, nothing is asked of its model twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, cast, get_args, get_origin

from typing_extensions import TypedDict

from pregel.agents.create import AgentGraph, create_agent
from pregel.agents.deep.backends.base import Backend
from pregel.agents.deep.backends.state import FILES
from pregel.agents.flow import AgentFlow, block, either, wait
from pregel.agents.history import last_answer
from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.human import HumanInTheLoopMiddleware
from pregel.agents.middleware.requests import ModelRequest
from pregel.agents.middleware.todo import with_text
from pregel.agents.schema_pydantic import dumped
from pregel.agents.tools.base import Tool
from pregel.agents.tools.inject import ToolRuntime
from pregel.errors import DefinitionError, InvalidInputError
from pregel.flow import arun, run
from pregel.graph.schema import annotations_of
from pregel.messages import BaseMessage, HumanMessage, ToolMessage
from pregel.messages.convert import kind_of
from pregel.types import Command

Mode = Literal["isolated", "fork"]
GENERAL = "general-purpose"
GENERAL_DESCRIPTION = (
    "Does any task of several steps that can be described in full, with the same tools as you, and answers with its "
    "result alone: searching, reading much, trying things out."
)
GENERAL_PROMPT = "Do the task you are given, completely, and answer with everything that whoever gave it needs to know."
KEPT_APART = frozenset({"messages", "todos", "structured_response", "jump_to", "rubric"})
"""State keys that are never shared."""
OUTCOME = "__outcome__"
"""What a call of a subagent comes to: the text of its answer, and the update of the shared state."""
FORKED = "You continue from the conversation above as a subagent. Do this task and nothing else:\n\n"
PROMPT = """Give tasks that need much reading or many steps to subagents with `task`: they do not fill your context.
Describe a task completely, since a subagent sees nothing else, and say what its answer must hold. Independent tasks go
into one answer, so that they run side by side. A person does not see what subagents answer: tell them what matters."""


class SubAgent(TypedDict):
    """A subagent that is built for the agent. What is left out is the agent's own (tools, model, permissions, ...)."""

    name: str
    description: str
    system_prompt: NotRequired[str]
    tools: NotRequired[Sequence[Any]]
    model: NotRequired[Any]
    middleware: NotRequired[Sequence[AgentMiddleware]]
    interrupt_on: NotRequired[Mapping[str, Any]]
    skills: NotRequired[Sequence[str]]
    permissions: NotRequired[Sequence[Any]]
    response_format: NotRequired[Any]
    mode: NotRequired[Mode]


class CompiledSubAgent(TypedDict):
    """A subagent that exists already: `runnable` takes and gives a state with ``messages``."""

    name: str
    description: str
    runnable: Any
    mode: NotRequired[Mode]


GENERAL_PURPOSE_SUBAGENT: SubAgent = {
    "name": GENERAL,
    "description": GENERAL_DESCRIPTION,
    "system_prompt": GENERAL_PROMPT,
}
"""The subagent that every deep agent has."""


def create_sub_agent(spec: SubAgent, *, state_schema: Any = None, response_format: Any = None) -> AgentGraph:
    """The agent that a dict describes, with its own `model`, `tools` and `middleware` and no others.

    `response_format` counts before the one of the dict. DefinitionError when it has no model or no tools.
    """
    if missing := [key for key in ("name", "model", "tools") if key not in spec]:
        raise DefinitionError(
            f"The subagent {spec.get('name', spec)!r} lacks {' and '.join(missing)}.",
            fix="Give it all, or let create_deep_agent build it, which fills in its own.",
        )
    asking = spec.get("interrupt_on")
    return create_agent(
        spec["model"],
        list(spec["tools"] or ()),
        system_prompt=spec.get("system_prompt"),
        middleware=[*(spec.get("middleware") or ()), *([HumanInTheLoopMiddleware(asking)] if asking else ())],
        response_format=spec.get("response_format") if response_format is None else response_format,
        state_schema=state_schema,
        name=spec["name"],
    )


class SubAgentMiddleware(AgentMiddleware):
    """Gives an agent the tool `task` over subagents: compiled ones, or dicts that say all of theirs.

    - `task_description`: what the model is told of the tool; ``{available_agents}`` in it stands for their list.
    - `state_schema`: the state whose keys, beside the files, go in and come back, but for `private_state_keys`. The
      agent gets them, and it is the state of those that are built here. An agent without files is given none back.
    - `backend` says nothing here: a subagent's own middleware has one.
    """

    def __init__(
        self,
        subagents: Sequence[SubAgent | CompiledSubAgent],
        *,
        backend: Backend | None = None,
        system_prompt: str | None = PROMPT,
        task_description: str | None = None,
        private_state_keys: Collection[str] | None = None,
        state_schema: Any = None,
    ) -> None:
        if not subagents:
            raise DefinitionError("There are no subagents.", fix="Leave SubAgentMiddleware out, or give it some.")
        if len({one["name"] for one in subagents}) < len(subagents):
            raise DefinitionError("Two subagents have one name.", fix="Name them apart.")
        for one in subagents:
            if one.get("mode", "isolated") not in ("isolated", "fork"):
                raise DefinitionError(
                    f"The mode of {one['name']!r} is {one.get('mode')!r}.", fix="Use 'isolated' or 'fork'."
                )
        self.subagents = {one["name"]: self._compiled(one, state_schema) for one in subagents}
        if state_schema is not None:
            self.state_schema = state_schema  # so that the agent has what comes back
        hints = annotations_of(state_schema) if state_schema is not None else {}
        apart = KEPT_APART | set(private_state_keys or ())
        self.shared = {FILES: None, **{key: hint for key, hint in hints.items() if key not in apart}}
        self.system_prompt = system_prompt
        listed = "\n".join(f"- {one['name']}: {one['description']}" for one in subagents)
        described = (
            task_description or "Give a task to a subagent and get its answer. The subagents:\n{available_agents}"
        )
        described = described.replace("{available_agents}", listed)
        task = Tool(self._blocking, self._awaiting, name="task", description=described)
        task.arguments = task.arguments.closed()  # what a model adds here it would believe to have said
        self.tools = [task]

    def _compiled(self, given: SubAgent | CompiledSubAgent, state_schema: Any) -> CompiledSubAgent:
        if "runnable" in given:
            return cast("CompiledSubAgent", given)
        agent = create_sub_agent(given, state_schema=state_schema)
        agent.hand_over = self.outcome  # without it all files are stored once more for each call
        mode = given.get("mode", "isolated")
        return {"name": given["name"], "description": given["description"], "runnable": agent, "mode": mode}

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Tell the model how to use subagents."""
        if self.system_prompt:
            request = request.override(system_message=with_text(request.system_message, self.system_prompt))
        return (yield request)

    def _blocking(self, description: str, subagent_type: str, runtime: ToolRuntime[Any, Any]) -> Any:
        return run(self._task(description, subagent_type, runtime), block)

    async def _awaiting(self, description: str, subagent_type: str, runtime: ToolRuntime[Any, Any]) -> Any:
        return await arun(self._task(description, subagent_type, runtime), wait)

    def _task(self, description: str, subagent_type: str, runtime: ToolRuntime[Any, Any]) -> AgentFlow[Any]:
        if runtime.tool_call_id is None:
            raise InvalidInputError("A task needs the id of its tool call.", fix="Call it as a tool of an agent.")
        chosen = self.subagents.get(subagent_type)
        if chosen is None:
            return f"There is no subagent {subagent_type!r}. The subagents are: {', '.join(self.subagents)}."
        before = {key: runtime.state[key] for key in self.shared if key in runtime.state}
        given = {**before, "messages": _messages(chosen, description, runtime.state["messages"])}
        agent, config = chosen["runnable"], _config(chosen["name"])
        after = yield either(
            lambda: agent.invoke(_known(agent, given), config), lambda: agent.ainvoke(_known(agent, given), config)
        )
        if not isinstance(after, Mapping) or not after.keys() & {"messages", OUTCOME}:
            raise DefinitionError(
                f"The subagent {chosen['name']!r} gave no messages.", fix="Its output needs the key 'messages'."
            )
        outcome = after[OUTCOME] if OUTCOME in after else self.outcome(before, after)[OUTCOME]
        message = ToolMessage(outcome["text"], tool_call_id=runtime.tool_call_id, name="task")
        return Command(update={**outcome["update"], "messages": [message]})

    def outcome(self, before: Mapping[str, Any], after: Any) -> Any:
        """All that the agent needs of a subagent's values: what is stored of a call, in the place of the values."""
        if not isinstance(after, Mapping) or "messages" not in after:
            return after
        update = {
            key: _change(key, hint, before.get(key), after[key])
            for key, hint in self.shared.items()
            if key in after and after[key] != before.get(key) and (key != FILES or key in before)
        }
        return {OUTCOME: {"text": _text(after), "update": update}}


def _config(name: str) -> dict[str, Any]:
    """The config of a subagent's run: what it streams says whose it is."""
    return {"run_name": name, "metadata": {"lc_agent_name": name}, "configurable": {"ls_agent_type": "subagent"}}


def _messages(chosen: CompiledSubAgent, description: str, history: Sequence[BaseMessage]) -> list[BaseMessage]:
    if chosen.get("mode") != "fork":
        return [HumanMessage(description)]
    answer, _ = last_answer(history)
    known = [message for message in history if answer is None or message.id != answer.id]
    return [*(message for message in known if not _answers(message, answer)), HumanMessage(FORKED + description)]


def _answers(message: BaseMessage, answer: Any) -> bool:
    """Whether it is a result of the very answer that calls the subagent."""
    ids: Collection[Any] = {call["id"] for call in answer.tool_calls} if answer is not None else ()
    return kind_of(message) == "tool" and getattr(message, "tool_call_id", None) in ids


def _known(agent: Any, given: dict[str, Any]) -> dict[str, Any]:
    """What a graph of ours takes of the state; everything for a runnable that does not say."""
    builder = getattr(agent, "builder", None)
    keys = builder.schemas.get(builder.input_schema) if builder is not None else None
    return given if keys is None else {key: value for key, value in given.items() if key in keys}


def _change(key: str, hint: Any, before: Any, after: Any) -> Any:
    """What brings a shared key from before to after: entries of files, the end of a growing list, else the value."""
    if key == FILES:
        gone = dict.fromkeys(set(before or {}) - set(after))
        return {**gone, **{path: data for path, data in after.items() if (before or {}).get(path) != data}}
    reduced = get_origin(hint) is Annotated and callable(get_args(hint)[-1])
    if reduced and isinstance(before, list) and isinstance(after, list) and after[: len(before)] == before:
        return after[len(before) :]
    return after


def _text(after: Mapping[str, Any]) -> str:
    """The answer of a subagent: its structured response, else the last thing that it said."""
    if after.get("structured_response") is not None:
        return json.dumps(dumped(after["structured_response"]), ensure_ascii=False, default=dumped)
    said = (message.text.rstrip() for message in reversed(after["messages"]) if kind_of(message) == "ai")
    return next((text for text in said if text), "")
