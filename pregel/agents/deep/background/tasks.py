"""What a background task is: its record in the state, and the server that works on it, as a protocol.

1. A task is a thread of the server, each message to it a run of that thread. Both have names that we choose: `task_id`
   and `key` are the same however often a call is tried, so a server starts nothing twice.
2. A record says what is known here; `told` says whether the agent has been given what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, Protocol, get_args, runtime_checkable

from typing_extensions import TypedDict

from pregel.agents.tools.base import ToolException
from pregel.errors import DefinitionError

TaskStatus = Literal["pending", "running", "waiting", "success", "error", "timeout", "cancelled", "unknown"]
"""`waiting`: it asks something, an update answers. `unknown`: whether the server took the work is not known."""
STATUSES: tuple[str, ...] = get_args(TaskStatus)
OPEN: tuple[str, ...] = ("pending", "running", "unknown")
"""What may still change by itself."""
UpdateStrategy = Literal["interrupt", "enqueue"]


class AgentServerError(ToolException):
    """The server of a background task refused a request. A tool that meets it tells the model."""

    code = "AGENT_SERVER"
    fix = "See what the server says; its log knows more."


class UnclearAnswerError(AgentServerError):
    """The server could not be reached, or gave no answer: what was asked may have been done."""

    code = "UNCLEAR_ANSWER"
    fix = "Check the task later; asking again does nothing twice."


class AsyncSubAgent(TypedDict):
    """A subagent on a server.

    - `graph_id`: its name there. `url`: where the server is; `headers`, such as a key, are sent with each request and
      stored nowhere. Or `server`, an `AgentServer` of your own.
    - `webhook`: a URL that the server calls when a run ends.
    - `update_strategy`: whether a message stops the work under way (``interrupt``, the default) or waits for it.
    - `notify_parent`: whether the agent is told by itself what came of a task (default), or has to check it.
    """

    name: str
    description: str
    graph_id: str
    url: NotRequired[str]
    headers: NotRequired[Mapping[str, str]]
    server: NotRequired[AgentServer]
    webhook: NotRequired[str]
    update_strategy: NotRequired[UpdateStrategy]
    notify_parent: NotRequired[bool]


class AsyncTask(TypedDict):
    """A background task as it is stored in the state, under its id in ``async_tasks``. Times are ISO texts, in UTC."""

    task_id: str
    agent_name: str
    thread_id: str
    run_id: str | None
    superseded_run_ids: list[str]
    status: TaskStatus
    created_at: str
    last_checked_at: str
    last_updated_at: str
    told: bool


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. `text`: its answer, what it asks, or why it failed."""

    run_id: str | None
    status: TaskStatus
    text: str = ""


@runtime_checkable
class AgentServer(Protocol):
    """Where background tasks run. Verbs block; programs that await call them on threads.

    AgentServerError: it refused; UnclearAnswerError: nobody knows.
    """

    def send(
        self,
        agent: AsyncSubAgent,
        task_id: str,
        message: str,
        *,
        key: str,
        strategy: Literal["reject", "interrupt", "enqueue"] = "reject",
        answers: bool = False,
    ) -> Progress:
        """Give a task a message, as a run of its thread, which is made when it is new.

        The run that was started with the same `key` is found again instead of started twice. `answers`: the message is
        the answer to what the task asks.
        """

    def check(
        self, agent: AsyncSubAgent, task_id: str, run_id: str | None, *, timeout: float | None = None
    ) -> Progress:
        """How far a run is; of the newest one where none is named. `timeout` in seconds."""

    def cancel(self, agent: AsyncSubAgent, task_id: str, run_id: str) -> None:
        """Stop a run."""


def merged(old: dict[str, AsyncTask] | None, new: dict[str, AsyncTask] | None) -> dict[str, AsyncTask]:
    """Records by task id, the newer ones in the place of older ones."""
    return {**(old or {}), **(new or {})}


def checked(agent: Mapping[str, Any]) -> None:
    """DefinitionError when something is wrong with a background subagent."""
    named, keys = agent.get("name", agent), set(agent)
    if missing := {"name", "description", "graph_id"} - keys:
        raise DefinitionError(f"The subagent {named!r} lacks {' and '.join(sorted(missing))}.", fix="Give it them.")
    if unknown := keys - AsyncSubAgent.__annotations__.keys():
        raise DefinitionError(
            f"The background subagent {named!r} has the unknown keys {', '.join(sorted(unknown))}.",
            fix=f"It may have {', '.join(AsyncSubAgent.__annotations__)}.",
        )
    if ("url" in keys) == ("server" in keys):
        raise DefinitionError(
            f"The background subagent {named!r} needs a url or a server.", fix="Say where it runs, in one way."
        )
    if agent.get("update_strategy", "interrupt") not in get_args(UpdateStrategy):
        raise DefinitionError(
            f"The update_strategy of {named!r} is {agent['update_strategy']!r}.", fix="Use 'interrupt' or 'enqueue'."
        )
