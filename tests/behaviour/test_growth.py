"""Nothing on the hot path is quadratic: calls are counted, of Python and of C, while a size grows fourfold.

Time is not looked at, so a busy machine changes nothing here. What C does within one call is not seen; the curves of
``python -m benchmarks curves`` show that.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from pregel.agents.history import in_order
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.graph import END, START, StateGraph
from pregel.graph.message import add_messages
from pregel.messages import AIMessage, HumanMessage, ToolMessage
from pregel.types import Send
from tests.counted import calls

CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 1_000_000}
WARM: Any = {"configurable": {"thread_id": "warm"}}
FILES = count()
SMALL, FOURFOLD = 40, 160
FLAT, LINEAR = 1.1, 4.1  # of one that is linear and has a fixed part, fourfold is a little less than 4


class Counter(TypedDict):
    n: int
    until: int


class Items(TypedDict):
    items: list[int]
    out: Annotated[list[int], operator.add]


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]
    turn: int


def growth(prepare: Callable[[int], Callable[[], Any]]) -> float:
    """How many times as many calls a size of fourfold makes; the first run warms up what is kept for a process."""
    prepare(SMALL)()
    small, large = (calls(prepare(size)) for size in (SMALL, FOURFOLD))
    return large / small


def counting(state: Any) -> dict[str, int]:
    return {"n": state["n"] + 1}


def loop(schema: Any, saver: Any = None, idle: int = 0) -> Any:
    """A loop of one node, in a graph of so many more."""
    graph = StateGraph(schema).add_node("n", counting).add_edge(START, "n")
    others = [f"idle{number}" for number in range(idle)]
    for name in others:
        graph.add_node(name, counting)
    ends = ["n", *others, END]
    graph.add_conditional_edges("n", lambda state: "n" if state["n"] < state["until"] else END, ends)
    return graph.compile(saver)


@pytest.fixture(params=["none", "memory", "sqlite"])
def saved(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """A new saver at each call."""
    with ExitStack() as stack:

        def new() -> Any:
            if request.param == "sqlite":
                path = str(tmp_path / f"{next(FILES)}.db")
                return stack.enter_context(SqliteSaver.from_conn_string(path, synchronous="NORMAL"))
            return InMemorySaver() if request.param == "memory" else None

        yield new


def test_a_run_of_four_times_the_steps_does_four_times_as_much(saved: Any) -> None:
    def run(steps: int) -> Callable[[], Any]:
        return partial(loop(Counter, saved()).invoke, {"n": 0, "until": steps}, CONFIG)

    assert growth(run) < LINEAR


def test_nodes_that_do_not_run_cost_a_step_nothing(saved: Any) -> None:
    def run(nodes: int) -> Callable[[], Any]:
        app = loop(Counter, saved(), idle=nodes)
        app.invoke({"n": 0, "until": 1}, WARM)  # the first run of a graph looks at all of it once
        return partial(app.invoke, {"n": 0, "until": 20}, CONFIG)

    assert growth(run) < FLAT


def test_compiling_four_times_the_nodes_does_four_times_as_much() -> None:
    assert growth(lambda nodes: lambda: loop(Counter, None, nodes)) < LINEAR


def test_channels_that_do_not_change_cost_a_step_no_more_than_to_be_read(saved: Any) -> None:
    def run(channels: int) -> Callable[[], Any]:
        wide = TypedDict("wide", {"n": int, "until": int, **{f"c{number}": int for number in range(channels)}})  # type: ignore[misc]
        given = {"n": 0, "until": 10, **{f"c{number}": number for number in range(channels)}}
        return partial(loop(wide, saved()).invoke, given, CONFIG)

    assert growth(run) < LINEAR


def test_four_times_the_tasks_do_four_times_as_much(saved: Any) -> None:
    async def work(item: int) -> dict[str, list[int]]:
        return {"out": [item]}

    def run(tasks: int) -> Callable[[], Any]:
        graph = StateGraph(Items).add_node("work", work)
        graph.add_conditional_edges(START, lambda state: [Send("work", item) for item in state["items"]], ["work"])
        app = graph.compile(saved())
        return lambda: asyncio.run(app.ainvoke({"items": list(range(tasks)), "out": []}, CONFIG))

    assert growth(run) < LINEAR


def test_a_loop_of_four_times_the_tool_turns_does_four_times_as_much(saved: Any) -> None:
    def agent(state: Chat) -> dict[str, Any]:
        call = {"name": "look", "args": {"at": state["turn"]}, "id": f"c{state['turn']}", "type": "tool_call"}
        return {"messages": [AIMessage("", id=f"a{state['turn']}", tool_calls=[call])], "turn": state["turn"] + 1}

    def tools(state: Chat) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage("seen", id=f"t{call['id']}", tool_call_id=call["id"])]}

    def run(turns: int) -> Callable[[], Any]:
        graph = StateGraph(Chat).add_node("agent", agent).add_node("tools", tools)
        graph.add_edge(START, "agent").add_edge("tools", "agent")
        graph.add_conditional_edges("agent", lambda state: "tools" if state["turn"] < turns else END)
        return partial(graph.compile(saved()).invoke, {"messages": [HumanMessage("hi", id="h")], "turn": 0}, CONFIG)

    assert growth(run) < LINEAR


def test_a_message_on_a_thread_of_four_times_the_messages_does_at_most_four_times_as_much(saved: Any) -> None:
    def run(messages: int) -> Callable[[], Any]:
        graph = StateGraph(Chat).add_node("n", lambda state: {"messages": [AIMessage("so", id="new")]})
        app = graph.add_edge(START, "n").compile(saved())
        said = [HumanMessage("hi", id=f"h{number}") for number in range(messages)]
        app.invoke({"messages": said, "turn": 0}, CONFIG)
        return partial(app.invoke, {"messages": [HumanMessage("more", id="more")]}, CONFIG)

    assert growth(run) < LINEAR


class Name(str):
    """A text whose comparisons are calls that are counted."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str(self) < str(other)


def test_four_times_the_nodes_of_one_step_do_four_times_as_much() -> None:
    """But for sorting their names, which is a little more."""

    def run(nodes: int) -> Callable[[], Any]:
        graph = StateGraph(Items).add_node("end", lambda state: {})
        for number in range(nodes):
            graph.add_node(name := Name(f"n{number:04d}"), lambda state: {"out": [1]})
            graph.add_edge(START, name).add_edge(name, "end")
        return partial(graph.compile().invoke, {"items": [], "out": []})

    assert growth(run) < 1.5 * LINEAR


def test_four_times_the_results_out_of_order_are_put_in_order_by_four_times_as_much() -> None:
    def put(number: int) -> Callable[[], Any]:
        asked = [{"name": "look", "args": {}, "id": f"c{at}", "type": "tool_call"} for at in range(number)]
        results = [ToolMessage("seen", tool_call_id=f"c{at}") for at in reversed(range(number))]
        return partial(in_order, [AIMessage("", tool_calls=asked), *results])

    assert growth(put) < LINEAR
