"""What a turn of a tool-calling agent costs in time and stored bytes.

A turn is a human message, a model's call of one tool, its result, and the model's answer, on one thread in SQLite. The
models are fakes that cost next to nothing: what is measured is the loop, the state and the saver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import process_time
from types import SimpleNamespace
from typing import Any

from benchmarks.databases import bare_sqlite, commits, sqlite
from benchmarks.foreign import foreign_model
from benchmarks.graphs import new_thread
from benchmarks.measured import Bench, Missing, Row, Sides, measured
from benchmarks.sides import FLOOR
from benchmarks.timing import Repetition, Sample, around, once, timed

WORDS = "what is said in a turn, two hundred characters of it or so: " * 4
LONG = 500  # turns of a conversation that is played once, since it takes half a minute
SUPERSTEPS = 4  # START, the model, the tool, the model


def look(what: str) -> str:
    """Look at something."""
    return WORDS


def own() -> Callable[[Any], Any]:
    """Our agent over our objects."""
    from pregel.agents import create_agent
    from pregel.agents.models import ChatModel, ChatRequest, call_tool
    from pregel.messages import AIMessage
    from pregel.messages.convert import kind_of

    class Model(ChatModel):
        """Calls the tool and then answers. It keeps nothing of what it was asked, unlike a `ScriptedModel`."""

        provider, model = "fake", "fake"

        def generate(self, request: ChatRequest) -> AIMessage:
            answers = kind_of(request.messages[-1]) == "tool"
            return AIMessage(WORDS) if answers else call_tool("look", {"what": "it"})

    return lambda saver: create_agent(Model(), [look], checkpointer=saver)


def looking() -> tuple[Any, Any]:
    """A LangChain chat model that calls the tool and then answers, and the tool as LangChain's."""
    try:
        from langchain_core.tools import tool
    except ImportError as error:
        raise Missing("LangChain is not installed: pip install 'pregel[compare]'.") from error
    model = foreign_model(WORDS, lambda messages: None if messages[-1].type == "tool" else ("look", {"what": "it"}))
    return model, tool(look)


def ours_over_langchain() -> Callable[[Any], Any]:
    """Our agent over LangChain's model and tool."""
    from pregel.agents import create_agent

    model, tool = looking()
    return lambda saver: create_agent(model, [tool], checkpointer=saver)


def peers() -> Callable[[Any], Any]:
    """The peer's agent over LangChain's model and tool."""
    model, tool = looking()
    from langgraph.prebuilt import create_react_agent

    return lambda saver: create_react_agent(model, [tool], checkpointer=saver)


def played(side: SimpleNamespace, make: Callable[[Any], Any], turns: int) -> Repetition:
    """The mean of a turn in a conversation of so many: CPU microseconds and stored kilobytes."""

    def play() -> tuple[Sample, ...]:
        with sqlite(side) as file:
            agent, config, before = make(file.saver), new_thread(), file.size()

            def talk() -> tuple[float]:
                began = process_time()
                for turn in range(turns):
                    agent.invoke({"messages": [("user", f"{turn}: {WORDS}")]}, config)
                return ((process_time() - began) * 1e6 / turns,)

            return (*around(talk), Sample((file.size() - before) / 1024 / turns))

    return play


def conversation(turns: int) -> None:
    """The rows of a conversation of so many turns, over our objects and over LangChain's, which the peer always has."""

    def rows(kind: str, how: str) -> tuple[Row, Row]:
        return (
            Row(f"agent.{kind}_{turns}", f"agent{how}, a turn of {turns}, SQLite NORMAL, sync"),
            Row(f"agent.{kind}_kept_{turns}", f"agent{how}, stored a turn of {turns}", "kB"),
        )

    def measure(bench: Bench, ours: Callable[[], Any]) -> Sides:
        def conversing(side: SimpleNamespace) -> Repetition:
            if side.package != "pregel":
                return once(played(side, peers(), turns))
            mine = played(side, ours(), turns)
            return once(mine) if turns >= LONG else mine

        connection = bench.stack.enter_context(bare_sqlite())
        return {**bench.each(conversing), FLOOR: timed(lambda: commits(connection, 50 * SUPERSTEPS), 50)}

    time, kept = rows("turn", "")

    @measured(time, replace(kept, name=f"agent.kept_{turns}"), full=turns > 10)
    def own_objects(bench: Bench) -> Sides:
        return measure(bench, own)

    @measured(*rows("foreign", " over LangChain's objects"), full=True)
    def foreign_objects(bench: Bench) -> Sides:
        return measure(bench, ours_over_langchain)


for turns in (10, 100, LONG):
    conversation(turns)
