"""Background subagents, on a server in another process: started once, told once, whatever becomes of the agent."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

import pregel
from pregel.agents import create_agent
from pregel.agents.deep import AsyncSubAgent, AsyncSubAgentMiddleware, create_deep_agent
from pregel.agents.deep.background import AgentServer, AgentServerError, HttpAgentServer, Progress, UnclearAnswerError
from pregel.agents.models import ScriptedModel, call_tool, call_tools
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import DefinitionError
from pregel.messages import HumanMessage, ToolMessage

TOP = Path(pregel.__file__).parents[1]
THREAD: Any = {"configurable": {"thread_id": "1"}}
Invoke = Callable[..., Any]


class Remote:
    """The server, from outside."""

    def __init__(self, url: str) -> None:
        self.url = url

    def control(self, **what: Any) -> None:
        with urlopen(Request(f"{self.url}/control", json.dumps(what).encode(), method="POST")):
            pass

    def seen(self) -> dict[str, Any]:
        with urlopen(f"{self.url}/seen") as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def messages(self) -> list[str]:
        return [run["message"] for run in self.seen()["runs"]]


@pytest.fixture(scope="module")
def process() -> Iterator[Remote]:
    command = [sys.executable, "-S", str(Path(__file__).with_name("agent_server.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield Remote(f"http://127.0.0.1:{int(process.stdout.readline())}")
        process.communicate()


@pytest.fixture
def remote(process: Remote) -> Remote:
    """The server as if it had just started."""
    process.control(reset=True)
    return process


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Invoke:
    if request.param == "sync":
        return lambda agent, *args: agent.invoke(*args)
    return lambda agent, *args: asyncio.run(agent.ainvoke(*args))


def spec(remote: Remote, **more: Any) -> AsyncSubAgent:
    found: Any = {"name": "worker", "description": "Works long.", "graph_id": "agent", "url": remote.url, **more}
    return found  # type: ignore[no-any-return]


def start(description: str) -> Any:
    return call_tool("start_async_task", {"description": description, "subagent_type": "worker"})


def on_task(name: str, **arguments: Any) -> Callable[[Any], Any]:
    """A call about the task that was started."""

    def answer(request: Any) -> Any:
        said = next(one.text for one in request.messages if isinstance(one, ToolMessage) and "task " in one.text)
        return call_tool(name, {"task_id": said.partition("task ")[2].split()[0].strip("."), **arguments})

    return answer


def scripted(*turns: Any) -> ScriptedModel:
    """A model that says these one by one; a function is asked with the request."""
    left = iter(turns)

    def answer(request: Any) -> Any:
        turn = next(left)
        return turn(request) if callable(turn) else turn

    return ScriptedModel(answer)


def notices(state: Any) -> list[str]:
    return [one.text.partition("\n\n")[2] for one in state["messages"] if "deepagents_notification" in _marks(one)]


def _marks(message: Any) -> Any:
    return message.additional_kwargs if isinstance(message, HumanMessage) else {}


def results(state: Any) -> list[str]:
    return [one.text for one in state["messages"] if isinstance(one, ToolMessage)]


def only_task(state: Any) -> Any:
    (task,) = state["async_tasks"].values()
    return task


def test_the_middleware_alone_gives_any_agent_background_subagents(remote: Remote) -> None:
    middleware = AsyncSubAgentMiddleware(async_subagents=[spec(remote)])
    agent = create_agent(scripted(start("count"), "started", "told"), middleware=[middleware])

    assert spec(remote)["name"] in only_task(agent.invoke({"messages": "go"})).values()


def test_a_task_works_on_while_the_agent_ends_and_is_told_once(invoke: Invoke, remote: Remote) -> None:
    model = scripted(start("hold the line"), "started", "still there", "thanks", "nothing new")
    agent = create_deep_agent(model, subagents=[spec(remote)], checkpointer=InMemorySaver())

    state = invoke(agent, {"messages": "go"}, THREAD)
    assert "running" == only_task(state)["status"]
    invoke(agent, {"messages": "and?"}, THREAD)
    remote.control(finish=True)
    state = invoke(agent, {"messages": "now?"}, THREAD)

    assert ["done: hold the line"] == notices(state)
    assert ("success", True) == (only_task(state)["status"], only_task(state)["told"])
    assert "thanks" == state["messages"][-1].text
    state = invoke(agent, {"messages": "again?"}, THREAD)
    assert ["done: hold the line"] == notices(state)
    assert ["hold the line"] == remote.messages()


def test_news_at_the_end_send_the_agent_back_to_its_model(invoke: Invoke, remote: Remote) -> None:
    def finishing(request: Any) -> str:
        remote.control(finish=True)
        return "waiting"

    model = scripted(start("hold"), finishing, "It is done.")
    state = invoke(create_deep_agent(model, subagents=[spec(remote)]), {"messages": "go"})

    assert ["waiting", "done: hold", "It is done."] == [
        one.text.partition("\n\n")[2] or one.text for one in state["messages"][-3:]
    ]


def test_a_task_is_checked_updated_cancelled_and_listed(remote: Remote) -> None:
    model = scripted(
        start("hold"),
        on_task("check_async_task"),
        on_task("update_async_task", message="hold more"),
        call_tool("list_async_tasks", {"status_filter": "running"}),
        on_task("cancel_async_task"),
        on_task("check_async_task"),
        call_tool("list_async_tasks", {"status_filter": "running"}),
        call_tool("check_async_task", {"task_id": "other"}),
        "end",
    )
    state = create_deep_agent(model, subagents=[spec(remote)]).invoke({"messages": "go"})
    task = only_task(state)
    name = task["task_id"]

    assert [
        f"Started: task {name}.",
        f"Task {name} (worker): running",
        f"Task {name} has the message.",
        f"{name} worker: running",
        f"Task {name} is cancelled.",
        f"Task {name} was cancelled.",
        "There are no such tasks.",
        "Error: There is no task 'other'. `list_async_tasks` lists them.\nMend the call and try again.",
    ] == results(state)
    assert ["interrupted", "interrupted"] == [run["status"] for run in remote.seen()["runs"]]
    assert ([f"{name}-0"], f"{name}-1", "cancelled") == (task["superseded_run_ids"], task["run_id"], task["status"])
    assert [] == notices(state)


def test_what_a_task_asks_is_told_and_an_update_answers_it(remote: Remote) -> None:
    model = scripted(start("ask me"), on_task("update_async_task", message="the red one"), "end", "more", "more")
    agent = create_deep_agent(model, subagents=[spec(remote)], checkpointer=InMemorySaver())
    state = agent.invoke({"messages": "go"}, THREAD)

    assert ["Which one?", "done: the red one"] == notices(state)
    assert {"resume": "the red one"} == remote.seen()["runs"][1]["body"]["command"]


def test_a_failed_task_is_told_with_its_reason(remote: Remote) -> None:
    state = create_deep_agent(scripted(start("fail"), "sorry"), subagents=[spec(remote)]).invoke({"messages": "go"})

    assert ["It broke."] == notices(state)
    assert "error" == only_task(state)["status"]


def test_without_notices_the_agent_asks_itself(remote: Remote) -> None:
    model = scripted(start("hold"), "started", on_task("check_async_task"), "end")
    agent = create_deep_agent(model, subagents=[spec(remote, notify_parent=False)], checkpointer=InMemorySaver())
    agent.invoke({"messages": "go"}, THREAD)
    remote.control(finish=True)
    state = agent.invoke({"messages": "and?"}, THREAD)

    assert [] == notices(state)
    assert results(state)[-1].endswith("success\n\ndone: hold")


def test_two_changes_of_one_task_in_one_answer_are_refused(remote: Remote) -> None:
    def both(request: Any) -> Any:
        update = on_task("update_async_task", message="more")(request)
        return call_tools(update, on_task("cancel_async_task")(request))

    state = create_deep_agent(scripted(start("hold"), both, "end"), subagents=[spec(remote)]).invoke({"messages": "go"})

    assert "changed by another call of the same answer" in results(state)[-1]
    assert ["hold", "more"] == remote.messages()


# -- what fails --------------------------------------------------------------------------------------------------------


def quick(remote: Remote) -> HttpAgentServer:
    return HttpAgentServer(remote.url, {"X-Key": "secret"}, sleep=lambda seconds: None)


def served(remote: Remote) -> AsyncSubAgent:
    found: Any = {key: value for key, value in spec(remote).items() if key != "url"} | {"server": quick(remote)}
    return found  # type: ignore[no-any-return]


def test_a_lost_answer_starts_nothing_twice(remote: Remote) -> None:
    remote.control(lose=1)
    state = create_deep_agent(scripted(start("once"), "end", "end"), subagents=[served(remote)]).invoke(
        {"messages": "go"}
    )

    assert ["once"] == remote.messages()
    assert ["done: once"] == notices(state)
    assert "secret" == remote.seen()["headers"]["X-Key"]


@pytest.mark.parametrize("answer", ["<html>", '{"run', "null", "[1]", '{"run_id": 5}'])
def test_an_answer_that_cannot_be_read_starts_nothing_twice(remote: Remote, answer: str) -> None:
    remote.control(garble=answer)
    state = create_deep_agent(scripted(start("once"), "end", "end"), subagents=[served(remote)]).invoke(
        {"messages": "go"}
    )

    assert ["once"] == remote.messages()
    assert ["done: once"] == notices(state)


@pytest.mark.parametrize("answer", ["<html>", '{"values": {"messages": [7]}}'])
def test_a_state_that_cannot_be_read_is_an_error_of_the_server(remote: Remote, answer: str) -> None:
    agent, server = served(remote), quick(remote)
    task = server.send(agent, "lied", "once", key="k")
    remote.control(garble=answer)

    with pytest.raises(AgentServerError):
        server.check(agent, "lied", task.run_id)


def test_a_task_whose_start_is_unclear_is_recorded_and_settled_later(remote: Remote) -> None:
    remote.control(lose=3)

    class Away(HttpAgentServer):
        """After the answer was lost the server cannot be asked about it."""

        lost = 0

        def _once(self, method: str, path: str, *args: Any, **options: Any) -> Any:
            if self.lost and self.lost < 3 and method == "GET":
                self.lost += 1
                raise UnclearAnswerError("away")
            try:
                return super()._once(method, path, *args, **options)
            except UnclearAnswerError:
                self.lost += 1
                raise

    away = Away(remote.url, sleep=lambda seconds: None)
    agent = served(remote) | {"server": away}
    state = create_deep_agent(scripted(start("once"), "end", "end"), subagents=[agent]).invoke({"messages": "go"})

    assert "may have been started" in results(state)[0]
    assert ["once"] == remote.messages()
    assert ["done: once"] == notices(state)


def test_a_refusal_is_told_to_the_model_and_nothing_is_recorded(remote: Remote) -> None:
    remote.control(refuse=403)
    state = create_deep_agent(scripted(start("x"), "end"), subagents=[spec(remote)]).invoke({"messages": "go"})

    assert "403" in results(state)[0]
    assert {} == state.get("async_tasks", {})


def test_a_redirect_is_not_followed(remote: Remote) -> None:
    remote.control(refuse=302)
    with pytest.raises(AgentServerError, match="302"):
        quick(remote).send(spec(remote), "t", "x", key="k")

    assert 1 == remote.seen()["requests"]


def test_a_server_that_is_away_fails_no_run(remote: Remote, caplog: pytest.LogCaptureFixture) -> None:
    class Away(HttpAgentServer):
        def check(self, *args: Any, **options: Any) -> Progress:
            raise UnclearAnswerError("away")

    agent = served(remote) | {"server": Away(remote.url)}
    state = create_deep_agent(scripted(start("x"), "end"), subagents=[agent]).invoke({"messages": "go"})

    assert "running" == only_task(state)["status"]
    assert "could not be looked at: away" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"url": "file:///etc/passwd"},
        {"url": "x"},
        {"graph_id": None},
        {"odd": 1},
        {"update_strategy": "x"},
        {"url": None},
    ],
)
def test_a_background_subagent_that_is_wrong_is_refused(change: dict[str, Any]) -> None:
    given = {"name": "w", "description": "d", "graph_id": "g", "url": "http://localhost:1"} | change
    agent: Any = {key: value for key, value in given.items() if value is not None}
    if "graph_id" not in agent:
        agent["url"] = "http://localhost:1"
    with pytest.raises(DefinitionError):
        create_deep_agent(ScriptedModel(["x"]), subagents=[agent])


def test_the_http_server_is_a_server_by_the_protocol() -> None:
    assert isinstance(HttpAgentServer("http://localhost:1"), AgentServer)


# -- killed ------------------------------------------------------------------------------------------------------------


class Died(BaseException):
    """As if the process had ended here."""


def test_a_task_that_was_started_before_a_crash_is_found_again(invoke: Invoke, remote: Remote) -> None:
    class Dying(HttpAgentServer):
        def send(self, *args: Any, **options: Any) -> Progress:
            super().send(*args, **options)
            raise Died

    saver = InMemorySaver()
    dying = served(remote) | {"server": Dying(remote.url)}
    with pytest.raises(Died):
        invoke(
            create_deep_agent(scripted(start("once")), subagents=[dying], checkpointer=saver),
            {"messages": "go"},
            THREAD,
        )
    again = create_deep_agent(scripted("end", "told"), subagents=[spec(remote)], checkpointer=saver)
    state = invoke(again, None, THREAD)

    assert ["once"] == remote.messages()
    assert ["done: once"] == notices(state)


PROGRAM = """
import os, signal, sys
from pregel.agents.deep import create_deep_agent
from pregel.agents.deep.background import HttpAgentServer
from pregel.agents.models import ScriptedModel, call_tool
from pregel.checkpoint.sqlite import SqliteSaver

url, path = sys.argv[1:]
class Dying(HttpAgentServer):
    def send(self, *args, **options):
        super().send(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

agent = {"name": "worker", "description": "d", "graph_id": "agent", "server": Dying(url)}
call = call_tool("start_async_task", {"description": "once", "subagent_type": "worker"})
with SqliteSaver.from_conn_string(path) as saver:
    made = create_deep_agent(ScriptedModel([call]), subagents=[agent], checkpointer=saver)
    made.invoke({"messages": "go"}, {"configurable": {"thread_id": "1"}})
"""


@pytest.mark.slow
def test_a_task_is_started_once_though_the_process_is_killed(remote: Remote, tmp_path: Path) -> None:
    path = str(tmp_path / "saver.db")
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    done = subprocess.run([sys.executable, "-c", PROGRAM, remote.url, path], env=environment, check=False)
    assert -signal.SIGKILL == done.returncode

    with SqliteSaver.from_conn_string(path) as saver:
        agent = create_deep_agent(scripted("end", "told"), subagents=[spec(remote)], checkpointer=saver)
        state = agent.invoke(None, THREAD)

    assert ["once"] == remote.messages()
    assert ["done: once"] == notices(state)
