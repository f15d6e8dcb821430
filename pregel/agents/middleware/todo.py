"""A list of what is to be done, which the model keeps for itself and everybody can read in the state."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired

from typing_extensions import TypedDict  # pydantic reads no other one before Python 3.12

from pregel.agents.history import last_answer
from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.requests import ModelRequest, ModelResponse
from pregel.agents.state import AgentState, OmitFromInput
from pregel.agents.tools.base import Tool
from pregel.agents.tools.inject import InjectedToolCallId
from pregel.messages import SystemMessage, ToolMessage
from pregel.types import Command

NAME = "write_todos"
PROMPT = """For work of several steps, keep a list with `write_todos`: write the whole list each time, mark one item
"in_progress" when you begin it and "completed" as soon as it is done. Simple requests need no list."""
DESCRIPTION = """Write the list of what is to be done, in the place of the list before. Each item has a `content` and a
`status`: "pending", "in_progress" or "completed". Call it at most once in an answer."""
TWICE = "Error: write_todos replaces the whole list, so it may be called only once in an answer. Call it once."


class Todo(TypedDict):
    """One thing to do."""

    content: str
    status: Literal["pending", "in_progress", "completed"]


class PlanningState(AgentState):
    """The list."""

    todos: NotRequired[Annotated[list[Todo], OmitFromInput]]


def write_todos(todos: list[Todo], tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Write the list."""
    told = ToolMessage(f"The list is now: {todos}", tool_call_id=tool_call_id, name=NAME)
    return Command(update={"todos": todos, "messages": [told]})


class TodoListMiddleware(AgentMiddleware):
    """Gives the model a list of things to do: the tool `write_todos` and the state key ``todos``."""

    state_schema = PlanningState

    def __init__(self, *, system_prompt: str = PROMPT, tool_description: str = DESCRIPTION) -> None:
        self.system_prompt = system_prompt
        self.tools = [Tool(write_todos, description=tool_description)]

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Tell the model of the list, and refuse two lists in one answer."""
        response = yield request.override(system_message=with_text(request.system_message, self.system_prompt))
        answer, _after = last_answer(response.result)
        calls = [call for call in answer.tool_calls if call["name"] == NAME] if answer is not None else []
        if len(calls) < 2:
            return response
        refused = [ToolMessage(TWICE, tool_call_id=call["id"], name=NAME, status="error") for call in calls]
        return ModelResponse([*response.result, *refused], response.structured_response)


def with_text(system: SystemMessage | None, text: str) -> SystemMessage:
    """A system message with one more block of text."""
    if system is None:
        return SystemMessage(text)
    before = [{"type": "text", "text": system.content}] if isinstance(system.content, str) else system.content
    content: Any = [*before, {"type": "text", "text": f"\n\n{text}"}]
    return system.model_copy(update={"content": content})
