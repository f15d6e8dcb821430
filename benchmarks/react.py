"""What a turn of a tool-calling conversation costs in time and stored bytes, beside the reference.

A turn is a human message, a model's call of one tool, its result, and the model's answer, on one thread in SQLite. The
models are fakes that cost next to nothing: what is measured is the loop, the state and the saver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module, util
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from benchmarks._foreign import foreign_model
from benchmarks._harness import OURS, REFERENCE, Report, options

WORDS = "what is said in a turn, two hundred characters of it or so: " * 4


def ours() -> Any:
    """Our agent over our objects."""
    from pregel.agents import ScriptedModel, create_agent
    from pregel.agents.models import call_tool
    from pregel.messages.convert import kind_of

    def answer(request: Any) -> Any:
        last = request.messages[-1]
        return WORDS if kind_of(last) == "tool" else call_tool("look", {"what": "it"})

    return lambda saver: create_agent(ScriptedModel(answer), [look], checkpointer=saver)


def ours_with_theirs() -> Any:
    """Our agent over LangChain's model and tool."""
    from pregel.agents import create_agent

    return lambda saver: create_agent(looking(), [foreign_tool()], checkpointer=saver)


def reference() -> Any:
    """The reference's agent over LangChain's model and tool."""
    from langgraph.prebuilt import create_react_agent

    return lambda saver: create_react_agent(looking(), [foreign_tool()], checkpointer=saver)


def look(what: str) -> str:
    """Look at something."""
    return WORDS


def foreign_tool() -> Any:
    """The tool as LangChain's."""
    from langchain_core.tools import tool

    return tool(look)


def looking() -> Any:
    """A LangChain chat model that calls the tool and then answers."""
    return foreign_model(WORDS, lambda messages: None if messages[-1].type == "tool" else ("look", {"what": "it"}))


@contextmanager
def database(package: str) -> Iterator[tuple[Any, Callable[[], int]]]:
    """A SQLite saver, and how many bytes its file holds by now."""
    saver_type = import_module(f"{package}.checkpoint.sqlite").SqliteSaver
    with TemporaryDirectory() as directory:
        connection = sqlite3.connect(Path(directory) / "bench.db", check_same_thread=False)
        saver = saver_type(connection)
        saver.setup()
        connection.execute("PRAGMA synchronous=NORMAL")

        def size() -> int:
            pages, page = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
            return int(pages * page)

        yield saver, size
        connection.close()


def play(make: Any, package: str, turns: int) -> tuple[float, float]:
    """CPU milliseconds and stored kilobytes of a turn, the mean over a conversation of so many."""
    config = {"configurable": {"thread_id": "t"}}
    with database(package) as (saver, size):
        agent, before = make(saver), size()
        began = process_time()
        for turn in range(turns):
            agent.invoke({"messages": [("user", f"{turn}: {WORDS}")]}, config)
        return (process_time() - began) * 1e3 / turns, (size() - before) / 1024 / turns


def contenders() -> dict[str, tuple[Any, str]]:
    """What can be measured here: LangChain and the reference may not be installed."""
    found: dict[str, tuple[Any, str]] = {OURS: (ours(), "pregel")}
    if util.find_spec("langchain_core"):
        found["ours, LangChain's model"] = (ours_with_theirs(), "pregel")
    if util.find_spec("langgraph") and util.find_spec("langgraph.prebuilt"):
        found[REFERENCE] = (reference(), "langgraph")
    return found


def main() -> None:
    """Measure and print."""
    given = options(__doc__ or "")
    report = Report("A turn of a tool-calling conversation, SQLite")
    for turns in (10, 50) if given.quick else (10, 100, 500):
        figures = {name: play(make, package, turns) for name, (make, package) in contenders().items()}
        report.add(f"{turns} turns, CPU ms a turn", {name: cpu for name, (cpu, _) in figures.items()}, digits=2)
        report.add(f"{turns} turns, stored kB a turn", {name: size for name, (_, size) in figures.items()}, digits=1)
        for name in figures.keys() - {OURS, REFERENCE}:
            both = {OURS: figures[name][0], **({REFERENCE: figures[REFERENCE][0]} if REFERENCE in figures else {})}
            report.add(f"{turns} turns, {name}: CPU ms a turn", both, digits=2)
    report.show()


if __name__ == "__main__":
    main()
