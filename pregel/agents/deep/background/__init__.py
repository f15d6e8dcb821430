"""Background subagents: agents on a server that work on while the agent that gave them the work goes on, or ends."""

from pregel.agents.deep.background.http import HttpAgentServer
from pregel.agents.deep.background.middleware import AsyncSubAgentMiddleware
from pregel.agents.deep.background.tasks import (
    AgentServer,
    AgentServerError,
    AsyncSubAgent,
    AsyncTask,
    Progress,
    TaskStatus,
    UnclearAnswerError,
)

__all__ = [
    "AgentServer",
    "AgentServerError",
    "AsyncSubAgent",
    "AsyncSubAgentMiddleware",
    "AsyncTask",
    "HttpAgentServer",
    "Progress",
    "TaskStatus",
    "UnclearAnswerError",
]
