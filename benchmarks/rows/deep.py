"""What a deep agent costs: to make one, a turn of a conversation in time, and what that leaves in SQLite.

A turn is a message, a file that is written, one that is edited, a subagent that reads it, and an answer. The models are
scripted and cost next to nothing: what is measured is the loop, the files and the saver. The peer (deepagents) is
measured too where it is installed, over a LangChain model that says the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import util
from time import process_time
from types import SimpleNamespace
from typing import Any

from benchmarks.databases import sqlite
from benchmarks.foreign import foreign_model
from benchmarks.graphs import new_thread, python
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.rows.agent import WORDS
from benchmarks.sides import FLOOR, OURS
from benchmarks.timing import Repetition, Sample, around, once, timed

TURN = 5  # answers of the lead's model in a turn
Make = Callable[[Any], Any]


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


def own() -> Make:
    """Our deep agent."""
    from pregel.agents.deep import create_deep_agent
    from pregel.agents.models import ScriptedModel, call_tool
    from pregel.messages.convert import kind_of

    def answer(request: Any) -> Any:
        called = said_by(request.messages, kind_of)
        return WORDS if called is None else call_tool(*called)

    return lambda saver: create_deep_agent(ScriptedModel(answer), checkpointer=saver)


def peers() -> Make:
    """The peer's, over a LangChain model."""
    from deepagents import create_deep_agent

    model = foreign_model(WORDS, lambda messages: said_by(messages, lambda message: str(message.type)))
    return lambda saver: create_deep_agent(model, checkpointer=saver)


def made(bench: Bench) -> dict[str, Make]:
    """How each side makes one."""
    if OURS in bench.sides:
        return {OURS: own()}
    return {name: peers() for name in bench.sides if util.find_spec("deepagents")}


def played(side: SimpleNamespace, make: Make, turns: int) -> Repetition:
    """The mean of a turn in a conversation of so many: CPU milliseconds and stored kilobytes."""

    def play() -> tuple[Sample, ...]:
        with sqlite(side) as file:
            agent, config, before = make(file.saver), new_thread(), file.size()

            def talk() -> tuple[float]:
                began = process_time()
                for turn in range(turns):
                    state = agent.invoke({"messages": [("user", f"{turn}: {WORDS}")]}, config)
                assert len(state["files"]) == turns, "a turn did not do what it is measured for"
                return ((process_time() - began) * 1e3 / turns,)

            return (*around(talk), Sample((file.size() - before) / 1024 / turns))

    return play


@measured(Row("deep.create", "make a deep agent", "ms"))
def creation(bench: Bench) -> Sides:
    sides = {name: timed(partial(partial, make, None), 1, scale=1e3) for name, make in made(bench).items()}
    return {**sides, FLOOR: python()}


def conversation(turns: int) -> None:
    """The rows of a conversation of so many turns."""

    @measured(
        Row(f"deep.turn_{turns}", f"deep agent, a turn of {turns}, SQLite NORMAL, sync", "ms"),
        Row(f"deep.kept_{turns}", f"deep agent, stored a turn of {turns}", "kB"),
        full=turns > 10,
    )
    def turn(bench: Bench) -> Sides:
        sides = {name: played(bench.sides[name], make, turns) for name, make in made(bench).items()}
        return {name: repeat if name == OURS else once(repeat) for name, repeat in sides.items()}


conversation(10)
conversation(100)
