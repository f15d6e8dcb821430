"""What a conversation that grows costs: a loop of tool calls and a long chat, in bytes stored and time per turn."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from time import process_time
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

from benchmarks.databases import File, bare_sqlite, commits, sqlite
from benchmarks.graphs import THREADS, new_thread
from benchmarks.measured import Bench, Row, Sides, measured
from benchmarks.sides import FLOOR, OURS, messages_of
from benchmarks.timing import Repetition, Sample, around, exact, once, timed

TEXT = (
    "So the forecast for tomorrow is light rain in the morning, clearing up by noon, with a mild breeze. " * 3
)  # 300 B


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


# -- tool calls -------------------------------------------------------------------------------------------------------


def marks_of(side: SimpleNamespace, turns: int, saver: Any) -> list[float]:
    """CPU seconds at the end of each superstep of a tool loop."""
    kinds = messages_of(side)
    app = tool_loop(side, turns, saver)
    given = {"messages": [kinds.human("hi", id="h")], "turn": 0}
    marks = [process_time()]
    for _ in app.stream(given, new_thread(1_000_000), stream_mode="updates", durability="async"):
        marks.append(process_time())
    return marks


def loop_of(side: SimpleNamespace, turns: int) -> Repetition:
    """Time of a turn in the second and in the last tenth of a loop, and what the loop stored."""

    def play() -> tuple[Sample, ...]:
        with sqlite(side) as file:
            empty = file.size()
            times = around(lambda: tenths(marks_of(side, turns, file.saver)))
            return (*times, Sample((file.size() - empty) / 1e6))

    def tenths(marks: list[float]) -> tuple[float, ...]:
        part = len(marks) // 50  # the quickest of the five parts of a tenth, each of an even number of steps
        parts = [(marks[at + part] - marks[at]) * 1e6 / part * 2 for at in range(0, 50 * part - part, part)]
        return (min(parts[5:10]), min(parts[-5:]))

    return play


@measured(
    Row("tools.turn", "ReAct loop, a turn in the second tenth of 500, SQLite NORMAL, async"),
    Row("tools.late", "ReAct loop, a turn in the last tenth of 500, SQLite NORMAL, async"),
    Row("tools.bytes", "stored after 500 tool turns", "MB"),
)
def tools(bench: Bench) -> Sides:
    sides = bench.each(lambda side: loop_of(side, 500))
    connection = bench.stack.enter_context(bare_sqlite())
    return {
        **{name: repeat if name == OURS else once(repeat) for name, repeat in sides.items()},
        FLOOR: timed(lambda: commits(connection, 200), 100),  # two supersteps a turn
    }


# -- a chat -----------------------------------------------------------------------------------------------------------


def talk(side: SimpleNamespace, file: File, turns: int, config: dict[str, Any]) -> Callable[[int], float]:
    """Say so much, one invoke a turn; what comes back says more and tells the CPU microseconds of one invoke."""
    kinds, app = messages_of(side), chat(side, file.saver)

    def say() -> float:
        before = process_time()
        app.invoke({"messages": [kinds.human(TEXT, id=f"h{next(THREADS)}")]}, config, durability="async")
        return (process_time() - before) * 1e6

    for _ in range(turns):
        say()
    return lambda more: min(say() for _ in range(more))


def bytes_a_message(side: SimpleNamespace, messages: int) -> tuple[float]:
    """What a chat of so many stores, by message."""
    with sqlite(side) as file:
        empty = file.size()
        talk(side, file, messages // 2, new_thread())
        return ((file.size() - empty) / messages,)


def long_invoke(side: SimpleNamespace, messages: int) -> Repetition:
    """The quickest of ten invokes on a chat that has so many messages."""

    def play() -> tuple[Sample, ...]:
        kinds, config = messages_of(side), new_thread()
        said = [kinds.human(TEXT, id=f"given{number}") for number in range(messages - 20)]
        with sqlite(side) as file:
            chat(side, file.saver).invoke({"messages": said}, config, durability="async")
            more = talk(side, file, 1, config)
            return around(lambda: (more(9),))

    return play


def decoding(connection: sqlite3.Connection, messages: int) -> Repetition:
    """The floor of an invoke: read and decode as many messages, add one, commit it."""
    import orjson

    said = [{"type": "human", "content": TEXT, "id": f"h{number}"} for number in range(messages)]
    connection.execute("INSERT INTO steps VALUES (-1, 0, ?)", (orjson.dumps(said),))

    def read() -> None:
        (blob,) = connection.execute("SELECT blob FROM steps WHERE thread = -1").fetchone()
        assert len(orjson.loads(blob)) == messages
        commits(connection, 1)()

    return timed(lambda: read, 1)


@measured(Row("chat.invoke", "one invoke on a chat of 1,000 messages of 300 B, SQLite NORMAL, async"))
def invoke_late(bench: Bench) -> Sides:
    sides = bench.each(lambda side: long_invoke(side, 1_000))
    return {**sides, FLOOR: decoding(bench.stack.enter_context(bare_sqlite()), 1_000)}


@measured(Row("chat.bytes", "stored by a chat of 1,000 messages of 300 B (check: 200), a message", "B"), rounds=1)
def stored_by_a_chat(bench: Bench) -> Sides:
    messages = bench.size(1_000, 200)
    return bench.each(lambda side: exact(lambda: bytes_a_message(side, messages)))
