"""What a deep agent costs: to make one, a turn of a conversation in time, and what that leaves in SQLite.

A turn is a message, a file that is written, one that is edited, a subagent that reads it, and an answer. The models are
scripted and cost next to nothing: what is measured is the loop, the files and the saver. The reference (deepagents) is
measured too where it is installed, over a LangChain model that says the same.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import util
from time import perf_counter, process_time
from typing import Any

from benchmarks._foreign import foreign_model
from benchmarks._harness import OURS, REFERENCE, Report, options
from benchmarks.react import WORDS, database

TURN = 5  # answers of the lead's model in a turn


def step(answers: int, path: str) -> tuple[str, dict[str, Any]] | None:
    """The tool call that follows so many answers of a turn; None when the turn is over."""
    steps = [
        ("write_file", {"file_path": path, "content": f"first line\n{WORDS}\n"}),
        ("edit_file", {"file_path": path, "old_string": "first", "new_string": "only"}),
        ("task", {"description": f"Read {path}", "subagent_type": "general-purpose"}),
        ("ls", {"path": "/"}),
    ]
    return steps[answers] if answers < len(steps) else None


def said_by(messages: Any, kind: Callable[[Any], str]) -> tuple[str, dict[str, Any]] | None:
    """What the model calls next, by what there is; None for an answer."""
    first = next(message for message in messages if kind(message) == "human")
    answers = sum(kind(message) == "ai" for message in messages)
    if str(first.content).startswith("Read "):
        return ("read_file", {"file_path": str(first.content)[5:]}) if answers == 0 else None
    return step(answers % TURN, f"/notes/{answers // TURN}.md")


def ours() -> Callable[[Any], Any]:
    """Our deep agent."""
    from pregel.agents.deep import create_deep_agent
    from pregel.agents.models import ScriptedModel, call_tool
    from pregel.messages.convert import kind_of

    def answer(request: Any) -> Any:
        called = said_by(request.messages, kind_of)
        return WORDS if called is None else call_tool(*called)

    return lambda saver: create_deep_agent(ScriptedModel(answer), checkpointer=saver)


def reference() -> Callable[[Any], Any]:
    """The reference's, over a LangChain model."""
    from deepagents import create_deep_agent

    model = foreign_model(WORDS, lambda messages: said_by(messages, lambda message: str(message.type)))
    return lambda saver: create_deep_agent(model, checkpointer=saver)


def contenders() -> dict[str, tuple[Callable[[Any], Any], str]]:
    """What can be measured here."""
    found: dict[str, tuple[Callable[[Any], Any], str]] = {OURS: (ours(), "pregel")}
    if util.find_spec("deepagents"):
        found[REFERENCE] = (reference(), "langgraph")
    return found


def creation(make: Callable[[Any], Any], rounds: int) -> float:
    """CPU milliseconds of making an agent, the least of some rounds."""
    least = float("inf")
    for _ in range(rounds + 1):  # the first one warms up
        began = process_time()
        make(None)
        least = min(least, process_time() - began)
    return least * 1e3


def play(make: Callable[[Any], Any], package: str, turns: int) -> tuple[float, float, float]:
    """CPU and wall milliseconds and stored kilobytes of a turn, the mean over a conversation of so many."""
    config: Any = {"configurable": {"thread_id": "t"}}
    with database(package) as (saver, size):
        agent, before = make(saver), size()
        cpu, wall = process_time(), perf_counter()
        for turn in range(turns):
            state = agent.invoke({"messages": [("user", f"{turn}: {WORDS}")]}, config)
        cpu, wall = process_time() - cpu, perf_counter() - wall
        assert len(state["files"]) == turns, "a turn did not do what it is measured for"
        return cpu * 1e3 / turns, wall * 1e3 / turns, (size() - before) / 1024 / turns


def main() -> None:
    """Measure and print."""
    given = options(__doc__ or "")
    report = Report("A deep agent, SQLite")
    found = contenders()
    report.add("create, CPU ms", {name: creation(make, given.rounds) for name, (make, _) in found.items()}, digits=2)
    for turns in (5, 20) if given.quick else (10, 100):
        figures = {name: play(make, package, turns) for name, (make, package) in found.items()}
        for at, what in enumerate(("CPU ms", "wall ms", "stored kB")):
            report.add(f"{turns} turns, {what} a turn", {name: row[at] for name, row in figures.items()}, digits=2)
    report.show()


if __name__ == "__main__":
    main()
