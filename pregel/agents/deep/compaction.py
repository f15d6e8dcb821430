"""The tool `compact_conversation`: a model has the beginning of a long history summarised when it finds it fit.

What it makes is what the middleware itself would make later, so the next call is shown it and the state keeps every
message. Before half of what the middleware waits for there is nothing to do.
"""

from __future__ import annotations

from typing import Any

from pregel.agents.deep.backends.base import Backend
from pregel.agents.deep.summarization import (
    EVENT,
    SummarizationMiddleware,
    SummarizedState,
    create_summarization_middleware,
)
from pregel.agents.flow import AgentFlow, block, wait
from pregel.agents.middleware.base import AgentMiddleware
from pregel.agents.middleware.requests import ModelRequest
from pregel.agents.middleware.todo import with_text
from pregel.agents.tools.base import Tool
from pregel.agents.tools.inject import ToolRuntime
from pregel.flow import arun, run
from pregel.messages import ToolMessage
from pregel.types import Command

DESCRIPTION = (
    "Have the beginning of this conversation summarised. Use it when you go on to something else, or when most of what "
    "was said does not matter any more. The whole of it stays in a file."
)


class SummarizationToolMiddleware(AgentMiddleware):
    """Gives an agent the tool over a `SummarizationMiddleware`, which the agent needs as well (a deep agent has one).

    `system_prompt` is added to the system message.
    """

    state_schema = SummarizedState

    def __init__(self, summarization: SummarizationMiddleware, *, system_prompt: str | None = None) -> None:
        self.summarization, self.system_prompt = summarization, system_prompt
        self.tools = [Tool(self._blocking, self._awaiting, name="compact_conversation", description=DESCRIPTION)]

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Tell the model what it is to know of the tool."""
        if self.system_prompt:
            request = request.override(system_message=with_text(request.system_message, self.system_prompt))
        return (yield request)

    def _blocking(self, runtime: ToolRuntime[Any, Any]) -> Any:
        return run(self._compact(runtime), block)

    async def _awaiting(self, runtime: ToolRuntime[Any, Any]) -> Any:
        return await arun(self._compact(runtime), wait)

    def _compact(self, runtime: ToolRuntime[Any, Any]) -> AgentFlow[Any]:
        event = yield from self.summarization.compacted(runtime.state)
        if event is None:
            return "There is nothing to summarise yet: the conversation is short."
        message = ToolMessage(
            "The beginning of the conversation is summarised.", tool_call_id=str(runtime.tool_call_id)
        )
        return Command(update={EVENT: event, "messages": [message]})


def create_summarization_tool_middleware(
    model: Any, backend: Backend, *, system_prompt: str | None = None
) -> SummarizationToolMiddleware:
    """The tool over a middleware as `create_summarization_middleware` makes it."""
    return SummarizationToolMiddleware(create_summarization_middleware(model, backend), system_prompt=system_prompt)
