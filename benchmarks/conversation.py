"""What a conversation that grows costs: a loop of tool calls and a long chat, in bytes stored and time per turn."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

from benchmarks._harness import OURS, REFERENCE, Budget, Report, options, sides

THREADS = count()
TEXT = (
    "So the forecast for tomorrow is light rain in the morning, clearing up by noon, with a mild breeze. " * 3
)  # 300 B


# -- the graphs -------------------------------------------------------------------------------------------------------


def messages_of(side: SimpleNamespace) -> SimpleNamespace:
    """The message classes of a side, and the reducer that goes with them."""
    module = import_module("pregel.messages" if side.package == "pregel" else "langchain_core.messages")
    reducer = import_module(f"{side.package}.graph.message").add_messages
    return SimpleNamespace(
        ai=module.AIMessage, human=module.HumanMessage, tool=module.ToolMessage, add_messages=reducer
    )


def tool_loop(side: SimpleNamespace, turns: int, saver: Any) -> Any:
    """An agent that calls one tool a turn; each turn is two supersteps and two messages."""
    kinds = messages_of(side)

    history = Annotated[list[Any], kinds.add_messages]
    Loop = TypedDict("Loop", {"messages": history, "turn": int})  # noqa: UP013  # its reducer is a local name

    def agent(state: Any) -> dict[str, Any]:
        turn = state["turn"]
        call = {"name": "forecast", "args": {"city": f"city {turn}", "days": 3}, "id": f"call_{turn}"}
        return {"messages": [kinds.ai("", id=f"a{turn}", tool_calls=[call])], "turn": turn + 1}

    def tools(state: Any) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [kinds.tool(TEXT[:100], id=f"t{call['id']}", tool_call_id=call["id"])]}

    graph = side.StateGraph(Loop)
    graph.add_node("agent", agent)
    graph.add_node("tools", tools)
    graph.add_edge(side.START, "agent")
    graph.add_conditional_edges("agent", lambda state: "tools" if state["turn"] <= turns else side.END)
    graph.add_edge("tools", "agent")
    return graph.compile(saver)


def chat(side: SimpleNamespace, saver: Any) -> Any:
    """One node that answers."""
    kinds = messages_of(side)

    history = Annotated[list[Any], kinds.add_messages]
    Chat = TypedDict("Chat", {"messages": history})  # noqa: UP013  # its reducer is a local name

    graph = side.StateGraph(Chat)
    graph.add_node("answer", lambda state: {"messages": [kinds.ai(TEXT, id=f"a{len(state['messages'])}")]})
    graph.add_edge(side.START, "answer")
    return graph.compile(saver)


# -- the measurements -------------------------------------------------------------------------------------------------


@contextmanager
def database(side: SimpleNamespace) -> Iterator[tuple[Any, Callable[[], int]]]:
    """A saver on a new database file, and how many bytes the file has."""
    saver_type = import_module(f"{side.package}.checkpoint.sqlite").SqliteSaver
    with TemporaryDirectory() as directory:
        path = Path(directory) / "bench.db"
        connection = sqlite3.connect(path, check_same_thread=False)
        saver = saver_type(connection)
        saver.setup()
        connection.execute("PRAGMA synchronous=NORMAL")

        def size() -> int:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return path.stat().st_size

        yield saver, size
        connection.close()


def config() -> dict[str, Any]:
    """A new thread."""
    return {"configurable": {"thread_id": f"t{next(THREADS)}"}, "recursion_limit": 1_000_000}


def loops(report: Report, turns: int, rivals: dict[str, SimpleNamespace]) -> None:
    """Stored bytes of a tool loop, and its time per turn, early and late."""
    stored: dict[str, float] = {}
    early: dict[str, float] = {}
    late: dict[str, float] = {}
    for name, side in rivals.items():
        kinds = messages_of(side)
        with database(side) as (saver, size):
            app = tool_loop(side, turns, saver)
            marks = [process_time()]
            given = {"messages": [kinds.human("hi", id="h")], "turn": 0}
            for _ in app.stream(given, config(), stream_mode="updates", durability="async"):
                marks.append(process_time())
            stored[name] = size() / 1e6
        tenth = len(marks) // 10
        early[name] = (marks[2 * tenth] - marks[tenth]) * 1e3 / tenth * 2
        late[name] = (marks[-1] - marks[-1 - tenth]) * 1e3 / tenth * 2
    report.add(f"{turns} tool turns, SQLite: stored, MB", stored, Budget(1.5, 1.0, 350), digits=2)
    report.add("time per turn in the second tenth, ms", early, Budget(0.3, 0.15), digits=3)
    report.add("time per turn in the last tenth, ms", late, Budget(0.3, 0.15), digits=3)


def chats(report: Report, messages: int, rivals: dict[str, SimpleNamespace]) -> None:
    """Bytes a message of a long chat, one invoke a turn, and the time of an invoke at its end."""
    stored: dict[str, float] = {}
    times: dict[str, float] = {}
    for name, side in rivals.items():
        kinds = messages_of(side)
        with database(side) as (saver, size):
            app, where = chat(side, saver), config()
            taken: list[float] = []
            for turn in range(messages // 2):
                before = process_time()
                app.invoke({"messages": [kinds.human(TEXT, id=f"h{turn}")]}, where, durability="async")
                taken.append(process_time() - before)
            stored[name] = size() / messages
        times[name] = min(taken[-10:]) * 1e3
    report.add(f"chat of {messages} messages of 300 B, SQLite: bytes a message", stored, Budget(1200, 700), digits=0)
    report.add(f"one invoke at {messages} messages, ms", times, Budget(2.5, 0.6, 10), digits=2)


def main() -> None:
    """Measure and print."""
    given = options(__doc__ or "")
    report = Report("Conversation: bytes and CPU time")
    everyone = sides()
    ours = {OURS: everyone[OURS]}
    rivals = (
        everyone if given.quick and REFERENCE in everyone else ours
    )  # the reference needs minutes for the full size
    loops(report, 50 if given.quick else 500, rivals)
    chats(report, 100 if given.quick else 1000, rivals)
    if not given.quick:
        chats(report, 5000, ours)
    report.show()


if __name__ == "__main__":
    main()
