"""An agent whose process is killed ten times: its budget is that of the thread, and it spends what it would have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pregel.agents import ScriptedModel, create_agent, tool
from pregel.agents.middleware import BudgetMiddleware
from pregel.agents.models import call_tool
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.messages import AIMessage
from tests.kill.test_sqlite_every_append import forked

ROOT = Path(__file__).parents[2]
ZYGOTE = "import sys; from tests.kill.test_budget import zygote; zygote(*sys.argv[1:])"
CONFIG: Any = {"configurable": {"thread_id": "t"}}
DEATHS, CALLS = 10, 12


def run(directory: Path, deaths: int) -> Any:
    """Go on with an agent that never ends by itself; what it has spent. It dies in its tool, up to so many times."""
    log, died = directory / "log", directory / "died"

    def script(request: Any) -> AIMessage:
        with log.open("a") as file:
            file.write("asked\n")
        usage: Any = {"input_tokens": 100, "output_tokens": 10, "total_tokens": 110}
        call = call_tool("work", {}, id=f"c{len(request.messages)}")
        return AIMessage("", tool_calls=call.tool_calls, usage_metadata=usage)

    @tool
    def work() -> str:
        """Work."""
        times = len(died.read_text()) if died.exists() else 0
        if times < deaths and log.read_text().count("asked") > times:
            with died.open("a") as file:
                file.write("x")
            os.kill(os.getpid(), signal.SIGKILL)
        return "worked"

    budget = BudgetMiddleware(max_calls=CALLS, prices={"scripted": (1.0, 2.0)})
    with SqliteSaver.from_conn_string(directory / "threads.db", synchronous="NORMAL") as saver:
        agent = create_agent(ScriptedModel(script), [work], middleware=[budget], checkpointer=saver)
        state = agent.invoke(None if agent.get_state(CONFIG).created_at else {"messages": "go"}, CONFIG)
    spent = {key: value for key, value in state["budget_spent"].items() if key != "seconds"}
    return [spent, state["messages"][-1].text]


def zygote(here: str, deaths: str) -> None:
    """Forks processes until one comes to the end; tells how many died, and what the last one said."""
    died = 0
    while True:
        status, told = forked(lambda: run(Path(here), int(deaths)))
        if status == 0:
            print(json.dumps([died, *told]))
            return
        assert os.WTERMSIG(status) == signal.SIGKILL, status
        died += 1


@pytest.mark.slow
@pytest.mark.acceptance("S6-8")
def test_an_agent_that_is_restarted_ten_times_spends_the_same(tmp_path: Path) -> None:
    told, asked = [], []
    for deaths in (0, DEATHS):
        here = tmp_path / str(deaths)
        here.mkdir()
        command = [sys.executable, "-W", "error", "-c", ZYGOTE, str(here), str(deaths)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert (0, "") == (done.returncode, done.stderr)
        told.append(json.loads(done.stdout))
        asked.append((here / "log").read_text().count("asked"))

    (no_deaths, *whole), (deaths, *cut) = told
    assert (0, DEATHS) == (no_deaths, deaths)
    assert whole == cut
    assert [CALLS, CALLS] == asked
    assert (CALLS, f"The budget of {CALLS} calls is spent: {CALLS}.") == (cut[0]["calls"], cut[1])
