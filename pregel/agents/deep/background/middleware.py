"""AsyncSubAgentMiddleware: tools that start, check, update, cancel and list background tasks, and news of them.

1. A task is named by its tool call: a call that is tried again after a crash finds what it has started.
2. Where the server's answer is unclear the task is recorded as ``unknown``, and the next look settles it.
3. What came of a task is told once: news and the mark that they were told are one write. A task that ends while the
   agent does not run is told the next time that it does.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Annotated, Any, NotRequired, cast

from pregel.agents.deep.background.http import HttpAgentServer
from pregel.agents.deep.background.tasks import (
    OPEN,
    STATUSES,
    AgentServer,
    AgentServerError,
    AsyncSubAgent,
    AsyncTask,
    Progress,
    UnclearAnswerError,
    checked,
    merged,
)
from pregel.agents.flow import AgentFlow, either
from pregel.agents.history import last_answer
from pregel.agents.middleware.base import AgentMiddleware, hook_config
from pregel.agents.middleware.requests import ModelRequest
from pregel.agents.middleware.todo import with_text
from pregel.agents.state import AgentState, OmitFromInput
from pregel.agents.tools.base import Tool, ToolException
from pregel.agents.tools.inject import ToolRuntime
from pregel.errors import DefinitionError
from pregel.messages import HumanMessage, ToolMessage
from pregel.types import Command

log = logging.getLogger("pregel.agents")
log.addHandler(logging.NullHandler())

TASKS = "async_tasks"
NOTICE = "deepagents_notification"
"""The mark, in `additional_kwargs`, of a message that tells what came of a task."""
LOOK, AT_ONCE = 5.0, 8  # seconds for a look at a task, and looks side by side
CHANGES = ("update_async_task", "cancel_async_task")
PROMPT = """Work that takes long goes to background subagents with `start_async_task`: it comes back at once with a task
id, and you go on. You are told what came of a task when it is done, so do not check again and again. Tell a task more,
or answer what it asks, with `update_async_task`; stop one that is not needed with `cancel_async_task`."""


class BackgroundState(AgentState):
    """The background tasks of a thread, by id."""

    async_tasks: NotRequired[Annotated[dict[str, AsyncTask], merged, OmitFromInput]]


class AsyncSubAgentMiddleware(AgentMiddleware):
    """Gives an agent subagents that work on servers while it goes on.

    `system_prompt` tells the model how to use them; None says nothing.
    """

    state_schema = BackgroundState

    def __init__(self, async_subagents: Sequence[AsyncSubAgent], *, system_prompt: str | None = PROMPT) -> None:
        if not async_subagents:
            raise DefinitionError("There are no subagents.", fix="Leave AsyncSubAgentMiddleware out, or give it some.")
        for one in async_subagents:
            checked(one)
        self.subagents = {one["name"]: one for one in async_subagents}
        if len(self.subagents) < len(async_subagents):
            raise DefinitionError("Two background subagents have one name.", fix="Name them apart.")
        self.servers: dict[str, AgentServer] = {
            name: one["server"] if "server" in one else HttpAgentServer(one["url"], one.get("headers"))
            for name, one in self.subagents.items()
        }
        self.system_prompt = system_prompt
        listed = "\n".join(f"- {one['name']}: {one['description']}" for one in async_subagents)
        self.tools = [
            Tool(function, name=name, description=description.replace("{subagents}", listed))
            for function, name, description in (
                (self._start, "start_async_task", "Give a task to a background subagent. They are:\n{subagents}"),
                (self._check, "check_async_task", "Look how far a background task is, and at what came of it."),
                (self._update, "update_async_task", "Tell a background task more, or answer what it asks."),
                (self._cancel, "cancel_async_task", "Stop a background task."),
                (self._list, "list_async_tasks", "List background tasks, those of one status where it is given."),
            )
        ]

    def wrap_model_call(self, request: ModelRequest, *_: Any) -> Any:
        """Tell the model how to use background subagents."""
        if self.system_prompt:
            request = request.override(system_message=with_text(request.system_message, self.system_prompt))
        return (yield request)

    @hook_config(can_jump_to=[])
    def before_model(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Tell what came of tasks meanwhile."""
        return (yield from self._news(state))

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Any) -> AgentFlow[Any]:
        """Go on when there is news; else the news wait for the next run."""
        news = yield from self._news(state)
        return None if news is None or "messages" not in news else {**news, "jump_to": "model"}

    # -- news ----------------------------------------------------------------------------------------------------------

    def _news(self, state: Any) -> AgentFlow[dict[str, Any] | None]:
        looked_for = [task for task in (state.get(TASKS) or {}).values() if self._is_followed(task)]
        if not looked_for:
            return None
        found = yield either(lambda: self._look_at(looked_for), None)
        tasks: dict[str, AsyncTask] = {}
        messages: list[HumanMessage] = []
        for task, progress in found:
            if progress is None or progress.status in OPEN:
                continue
            tasks[task["task_id"]] = {**_moved(task, progress), "told": True}
            messages.append(_notice(task, progress))
        return {TASKS: tasks, "messages": messages} if messages else None

    def _is_followed(self, task: AsyncTask) -> bool:
        agent = self.subagents.get(task["agent_name"])
        return agent is not None and agent.get("notify_parent", True) and task["status"] in OPEN and not task["told"]

    def _look_at(self, tasks: Sequence[AsyncTask]) -> list[tuple[AsyncTask, Progress | None]]:
        with ThreadPoolExecutor(min(len(tasks), AT_ONCE)) as pool:
            return list(zip(tasks, pool.map(self._look, tasks), strict=True))

    def _look(self, task: AsyncTask) -> Progress | None:
        name = task["agent_name"]
        try:
            return self.servers[name].check(self.subagents[name], task["task_id"], task["run_id"], timeout=LOOK)
        except AgentServerError as error:
            log.warning("The background task %s could not be looked at: %s", task["task_id"], error)
            return None

    # -- tools ---------------------------------------------------------------------------------------------------------

    def _start(self, description: str, subagent_type: str, runtime: ToolRuntime[Any, Any]) -> Any:
        agent = self.subagents.get(subagent_type)
        if agent is None:
            named = ", ".join(self.subagents)
            return f"There is no background subagent {subagent_type!r}. They are: {named}."
        key = runtime.idempotency_key
        task_id = str(uuid.UUID(key))
        try:
            progress = self.servers[agent["name"]].send(agent, task_id, description, key=key)
            said = f"Started: task {task_id}."
        except UnclearAnswerError as error:
            progress = Progress(None, "unknown")
            said = f"Task {task_id} may have been started, its server did not answer ({error}). Do not start it again."
        now = _now()
        task: AsyncTask = {
            "task_id": task_id,
            "agent_name": agent["name"],
            "thread_id": task_id,
            "run_id": progress.run_id,
            "superseded_run_ids": [],
            "status": "running" if progress.status not in ("pending", "unknown") else progress.status,
            "created_at": now,
            "last_checked_at": now,
            "last_updated_at": now,
            "told": False,
        }
        return _command(runtime, said, task)

    def _check(self, task_id: str, runtime: ToolRuntime[Any, Any]) -> Any:
        task, agent, server = self._found(task_id, runtime)
        if task["status"] == "cancelled":
            return f"Task {task_id} was cancelled."
        progress = server.check(agent, task_id, task["run_id"])
        told = task["told"] or progress.status not in OPEN
        return _command(runtime, _said(task, progress), {**_moved(task, progress), "told": told})

    def _update(self, task_id: str, message: str, runtime: ToolRuntime[Any, Any]) -> Any:
        task, agent, server = self._found(task_id, runtime)
        _only_change(task_id, runtime)
        progress = server.send(
            agent,
            task_id,
            message,
            key=runtime.idempotency_key,
            strategy=agent.get("update_strategy", "interrupt"),
            answers=task["status"] == "waiting",
        )
        before = [task["run_id"]] if task["run_id"] not in (None, progress.run_id) else []
        moved: Any = {
            **_moved(task, progress),
            "status": "pending" if progress.status == "pending" else "running",
            "superseded_run_ids": [*task["superseded_run_ids"], *before],
            "last_updated_at": _now(),
            "told": False,
        }
        return _command(runtime, f"Task {task_id} has the message.", moved)

    def _cancel(self, task_id: str, runtime: ToolRuntime[Any, Any]) -> Any:
        task, agent, server = self._found(task_id, runtime)
        _only_change(task_id, runtime)
        if task["status"] not in (*OPEN, "waiting"):
            return f"Task {task_id} has ended already: {task['status']}."
        run_id = task["run_id"] or server.check(agent, task_id, None).run_id
        if run_id is not None:
            server.cancel(agent, task_id, run_id)
        cancelled: Any = {**task, "run_id": run_id, "status": "cancelled", "last_updated_at": _now(), "told": True}
        return _command(runtime, f"Task {task_id} is cancelled.", cancelled)

    def _list(self, runtime: ToolRuntime[Any, Any], status_filter: str | None = None) -> Any:
        if status_filter not in (None, "all", *STATUSES):
            return f"There is no status {status_filter!r}. They are: {', '.join(STATUSES)}."
        known: Mapping[str, AsyncTask] = runtime.state.get(TASKS) or {}
        shown = [task for task in known.values() if status_filter in (None, "all", task["status"])]
        if not shown:
            return "There are no such tasks." if known else "There are no background tasks."
        return "\n".join(f"{task['task_id']} {task['agent_name']}: {task['status']}" for task in shown)

    def _found(self, task_id: str, runtime: ToolRuntime[Any, Any]) -> tuple[AsyncTask, AsyncSubAgent, AgentServer]:
        known: Mapping[str, AsyncTask] = runtime.state.get(TASKS) or {}
        task = known.get(task_id)
        if task is None:
            raise ToolException(f"There is no task {task_id!r}. `list_async_tasks` lists them.")
        name = task["agent_name"]
        if name not in self.subagents:
            raise ToolException(f"There is no background subagent {name!r} any more.")
        return task, self.subagents[name], self.servers[name]


def _only_change(task_id: str, runtime: ToolRuntime[Any, Any]) -> None:
    """ToolException when a call before this one in the same answer changes the same task."""
    answer, _ = last_answer(runtime.state["messages"])
    for call in answer.tool_calls if answer is not None else ():
        if call["id"] == runtime.tool_call_id:
            return
        if call["name"] in CHANGES and call["args"].get("task_id") == task_id:
            raise ToolException(f"Task {task_id} is changed by another call of the same answer: one at a time.")


def _command(runtime: ToolRuntime[Any, Any], said: str, task: AsyncTask) -> Command[Any]:
    message = ToolMessage(said, tool_call_id=cast("str", runtime.tool_call_id))
    return Command(update={TASKS: {task["task_id"]: task}, "messages": [message]})


def _moved(task: AsyncTask, progress: Progress) -> AsyncTask:
    run_id = progress.run_id or task["run_id"]
    return {**task, "run_id": run_id, "status": progress.status, "last_checked_at": _now()}


def _said(task: AsyncTask, progress: Progress) -> str:
    head = f"Task {task['task_id']} ({task['agent_name']}): {progress.status}"
    return f"{head}\n\n{progress.text}" if progress.text else head


def _notice(task: AsyncTask, progress: Progress) -> HumanMessage:
    """What came of a task, as a message that is one however often it is made."""
    return HumanMessage(
        _said(task, progress),
        id=f"{task['task_id']}:{progress.run_id}",
        additional_kwargs={NOTICE: {"task_id": task["task_id"], "status": progress.status}},
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
