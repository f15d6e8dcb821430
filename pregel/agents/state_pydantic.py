"""The states of `create_react_agent` as pydantic models."""

from __future__ import annotations

from typing import Annotated, Any

from pregel.extras import extra
from pregel.managed import RemainingSteps
from pregel.messages import add_messages

with extra("agents", "AgentStatePydantic"):
    from pydantic import BaseModel


class AgentStatePydantic(BaseModel):
    """Messages, and how many steps are left."""

    messages: Annotated[list[Any], add_messages]
    remaining_steps: RemainingSteps = 25


class AgentStateWithStructuredResponsePydantic(AgentStatePydantic):
    """The same with a structured answer."""

    structured_response: Any = None
