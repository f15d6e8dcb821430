"""A deep agent that reviews a repository of 60 files, as a program that dies where it is told.

``python -m tests.kill.research DIRECTORY ACTION``: `run` and `resume` go on with the thread, `answer` answers its
question. Three reviewers work side by side on a third each, and one of them asks. The report is a file of the agent's
state, and is published through a tool. What is done outside of the thread leaves a line in ``DIRECTORY/log``. The
process dies at the point that KILL_AT names, once.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pregel import Command
from pregel.agents import ScriptedModel, ToolRuntime, tool
from pregel.agents.deep import create_deep_agent
from pregel.agents.deep.backends import CompositeBackend, FilesystemBackend, ReadResult, StateBackend
from pregel.agents.models import ChatRequest, call_tool, call_tools
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.types import interrupt
from tests.kill.outside import Outside

POINTS = ("reading", "asking", "answered", "published")
"""Where it may die, in the order in which it gets there."""
PARTS = ("a", "b", "c")
FILES, UNSAFE = 20, 4
"""Files of a part, and how many of them divide."""
TASK = "Which files divide without looking first?"
QUESTION = "Is dividing by a constant a fault?"
REPORT = "\n".join(f"{part}: {UNSAFE} files divide" for part in PARTS) + "\n(by a constant is no fault)\n"
CONFIG: Any = {"configurable": {"thread_id": "research"}}


def repository(directory: Path) -> Path:
    """60 files in three directories; every fifth one divides."""
    root = directory / "repository"
    for number in range(FILES * len(PARTS)):
        path = root / PARTS[number // FILES] / f"m{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def f(x):\n    return x {'/' if number % 5 == 0 else '+'} {number}\n")
    return root


class Watched(FilesystemBackend):
    """The repository; the process may die while a file is read."""

    outside: Outside

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        self.outside.note(f"read {file_path}")
        self.outside.die_at("reading")
        return super().read(file_path, offset, limit)


def build(outside: Outside, saver: Any) -> Any:
    """The agent."""

    @tool
    def ask(question: str) -> str:
        """Ask whoever wants the report."""
        outside.die_at("asking")
        answer = str(interrupt(question))
        outside.note("heard the answer")
        outside.die_at("answered")
        return answer

    @tool
    def publish(path: str, runtime: ToolRuntime) -> str:
        """Give the report to whoever wanted it."""
        report = runtime.state["files"][path]["content"]
        known = outside.directory / f"published-{runtime.idempotency_key}"
        if not known.exists():
            known.write_text(report)
            outside.note("published")
        outside.die_at("published")
        return "It is out."

    def script(request: ChatRequest) -> Any:
        first = next(message.text for message in request.messages if message.type == "human")
        turn = sum(message.type == "ai" for message in request.messages)
        results = [message.text for message in request.messages if message.type == "tool"]
        who = first.removeprefix("Review ")
        outside.note(f"{'lead' if first == TASK else who} thought {turn}")
        return lead(turn, results) if first == TASK else reviewer(who, turn, results)

    disk = Watched(repository(outside.directory))
    disk.outside = outside
    model = ScriptedModel(script)
    review: Any = {"name": "reviewer", "description": "Reviews a directory.", "tools": [ask], "model": model}
    backend = CompositeBackend(StateBackend(), {"/repo/": disk})
    return create_deep_agent(model, [publish], subagents=[review], backend=backend, checkpointer=saver)


def lead(turn: int, results: Sequence[str]) -> Any:
    """What the agent does: search, share out, write, publish."""
    if turn == 0:
        return call_tool("grep", {"pattern": " / ", "path": "/repo"}, id="search")
    if turn == 1:
        assert len(results[0].splitlines()) == UNSAFE * len(PARTS)
        return call_tools(*(review(part) for part in PARTS))
    if turn == 2:
        assert [f"{part}: {UNSAFE} files divide" for part in PARTS] == [text.splitlines()[0] for text in results[1:]]
        remarks = [line for text in results[1:] for line in text.splitlines()[1:]]
        content = "\n".join([*(text.splitlines()[0] for text in results[1:]), *remarks]) + "\n"
        return call_tool("write_file", {"file_path": "/REPORT.md", "content": content}, id="report")
    return call_tool("publish", {"path": "/REPORT.md"}, id="publish") if turn == 3 else "The report is out."


def review(part: str) -> Any:
    """The call that gives a part to a reviewer."""
    return call_tool("task", {"description": f"Review {part}", "subagent_type": "reviewer"}, id=f"review-{part}")


def reviewer(part: str, turn: int, results: Sequence[str]) -> Any:
    """What a reviewer does: search, read, and in one part ask."""
    if turn == 0:
        return call_tool("grep", {"pattern": " / ", "path": f"/repo/{part}"}, id=f"search-{part}")
    if turn == 1:
        paths = results[0].splitlines()
        return call_tools(*(call_tool("read_file", {"file_path": path}, id=path) for path in paths))
    if turn == 2 and part == "b":
        return call_tool("ask", {"question": QUESTION}, id="ask")
    dividing = sum(" / " in text for text in results[1 : 1 + UNSAFE])
    return f"{part}: {dividing} files divide" + (f"\n(by a constant {results[-1]})" if part == "b" else "")


def told(state: Any) -> dict[str, Any]:
    """What the program says of a state."""
    asked = [question.value for question in state.get("__interrupt__", ())]
    report = state["files"].get("/REPORT.md", {}).get("content")
    return {"asked": asked, "last": state["messages"][-1].text, "report": report}


def main(directory: Path, action: str) -> None:
    """Do it and say what came of it."""
    given: dict[str, Any] = {
        "run": {"messages": TASK},
        "resume": None,
        "answer": Command(resume="is no fault"),
    }
    with SqliteSaver.from_conn_string(str(directory / "db")) as saver:
        agent = build(Outside(directory), saver)
        json.dump(told(agent.invoke(given[action], CONFIG)), sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
