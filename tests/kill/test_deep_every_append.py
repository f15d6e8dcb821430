"""A deep agent that is killed at each append of its run goes on: files, todos and subagents are there once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pregel.agents.deep import create_deep_agent
from pregel.agents.middleware import TodoListMiddleware
from pregel.agents.models import ScriptedModel, call_tool, call_tools
from tests.kill.test_sqlite_every_append import Killing, When, forked

ROOT = Path(__file__).parents[2]
ZYGOTE = "import sys; from tests.kill.test_deep_every_append import zygote; zygote(*sys.argv[1:])"
CONFIG: Any = {"configurable": {"thread_id": "t"}}
DONE = {
    "files": {"/notes.md": "two", "/part.md": "of the subagent"},
    "todos": ["part"],
    "types": ["human", "ai", "tool", "tool", "tool", "ai", "tool", "ai"],
    "results": ["The part is done.", "All is done."],
}


def build(saver: Any, log: Path) -> Any:
    """An agent that keeps todos, writes and edits a file, and has a subagent write one beside it."""

    def asked(request: Any, who: str, *answers: Any) -> Any:
        turn = sum(message.type == "ai" for message in request.messages)
        with log.open("a") as file:
            file.write(f"{who} {turn}\n")
        return answers[turn]

    def part(request: Any) -> Any:
        write = call_tool("write_file", {"file_path": "/part.md", "content": "of the subagent"}, id="s1")
        return asked(request, "part", write, "The part is done.")

    def lead(request: Any) -> Any:
        begin = call_tools(
            call_tool("write_todos", {"todos": [{"content": "part", "status": "in_progress"}]}, id="t1"),
            call_tool("write_file", {"file_path": "/notes.md", "content": "one"}, id="w1"),
            call_tool("task", {"description": "Do the part.", "subagent_type": "part"}, id="a1"),
        )
        edit = call_tool("edit_file", {"file_path": "/notes.md", "old_string": "one", "new_string": "two"}, id="e1")
        return asked(request, "lead", begin, edit, "All is done.")

    spec: Any = {"name": "part", "description": "Does a part.", "system_prompt": "Do it.", "model": ScriptedModel(part)}
    return create_deep_agent(
        ScriptedModel(lead), subagents=[spec], middleware=[TodoListMiddleware()], checkpointer=saver
    )


def run(path: str, log: Path, nth: int = 0, when: When = "before") -> dict[str, Any]:
    """Run the thread to its end, or to the append at which it is killed."""
    with Killing.from_conn_string(path, synchronous="NORMAL") as saver:
        saver.nth, saver.when = nth, when
        agent = build(saver, log)
        values = agent.invoke(None if agent.get_state(CONFIG).created_at else {"messages": "Do it."}, CONFIG)
    return {
        "files": {name: data["content"] for name, data in sorted(values["files"].items())},
        "todos": [todo["content"] for todo in values["todos"]],
        "types": [message.type for message in values["messages"]],
        "results": [values["messages"][4].text, values["messages"][-1].text],
    }


def zygote(here: str, when: When) -> None:
    """Forks a run for each append that there is, kills it there, has another one go on; tells of each as a line."""
    for nth in count(1):
        path, log = f"{here}/{nth}.db", Path(f"{here}/{nth}.log")
        status, _ = forked(lambda: run(path, log, nth, when))  # noqa: B023
        if status == 0:
            return  # its run has no more appends than that
        _, told = forked(lambda: run(path, log))  # noqa: B023
        print(json.dumps([nth, told, log.read_text().splitlines()]), flush=True)


@pytest.mark.slow
@pytest.mark.acceptance("S1-60", "S1-61")
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_deep_agent_survives_a_death_at_each_append(when: When, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", ZYGOTE, str(tmp_path), when]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (0, "") == (done.returncode, done.stderr)

    deaths = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(deaths) > 10
    for nth, told, asked in deaths:
        assert told == DONE, f"killed {when} append {nth}"
        again = [line for line, times in Counter(asked).items() if times > 1]
        assert {"lead 0", "lead 1", "lead 2", "part 0", "part 1"} == set(asked)
        assert len(asked) == 5 + len(again), f"killed {when} append {nth}"  # nothing more than once again
        assert len(again) <= (1 if when == "before" else 0) + (1 if nth > 1 else 0), again
