"""Lists that grow inside of subgraphs: stored as what is new, each namespace for itself, and read back as they were."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel.channels import DeltaChannel
from pregel.checkpoint.flows import Sql
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.flow import Flow
from pregel.graph import START, StateGraph
from pregel.graph.message import add_messages
from pregel.messages import AIMessage, BaseMessage, HumanMessage
from pregel.types import Command, interrupt

TEXT = "x" * 200


def flat(old: list[str], writes: list[list[str]]) -> list[str]:
    return [*old, *(line for write in writes for line in write)]


class Inner(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], add_messages]
    lines: Annotated[list[str], operator.add]
    delta: Annotated[list[str], DeltaChannel(flat)]
    left: int


class Outer(TypedDict, total=False):
    messages: Annotated[list[BaseMessage], add_messages]
    asks: bool


def inner(*, persistent: bool, asks: bool = False) -> Any:
    """Four rounds, each of which adds to three lists; the third one asks."""

    def work(state: Inner) -> dict[str, Any]:
        left = state.get("left", 0)
        n = len(state["lines"])
        if asks and left == 2:
            interrupt("go on?")
        line = f"{n}" + TEXT
        return {"messages": [AIMessage(line, id=f"i{n}")], "lines": [line], "delta": [line], "left": left - 1}

    builder = StateGraph(Inner)
    builder.add_node("begin", lambda state: {"left": 4})
    builder.add_node("work", work)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "work")
    builder.add_conditional_edges("work", lambda state: ["work"] if state["left"] else [])
    return builder.compile(checkpointer=True if persistent else None)


def outer(saver: JournalSaver, **how: Any) -> Any:
    builder = StateGraph(Outer)
    builder.add_node("inner", inner(**how))
    builder.add_edge(START, "inner")
    return builder.compile(saver)


def place(**more: Any) -> Any:
    return {"configurable": {"thread_id": "1", **more}}


def lines(n: int) -> list[str]:
    return [f"{number}" + TEXT for number in range(n)]


def kinds(saver: JournalSaver, ns: str) -> set[str]:
    """The kinds of value rows in a namespace."""

    def flow() -> Flow[set[str]]:
        tno = (yield Sql("lock_thread", ("1",)))[0][0]
        number = (yield Sql("namespace", (tno, ns)))[0][0]
        return {row[2] for row in (yield Sql("value_keys", (tno, number)))}

    return saver.write(flow())


@pytest.mark.acceptance("S1-52")
@pytest.mark.parametrize("durability", ["async", "exit"])  # the other tests use "sync"
def test_a_persistent_subgraph_stores_what_is_new(saver: JournalSaver, durability: str) -> None:
    app = outer(saver, persistent=True)

    for turn in range(3):
        app.invoke({"messages": [HumanMessage(TEXT, id=f"h{turn}")]}, place(), durability=durability)

    state = app.get_state(place(checkpoint_ns="inner")).values
    assert lines(12) == state["lines"] == state["delta"]
    assert 15 == len(state["messages"]) == len(app.get_state(place()).values["messages"])
    assert "delta" in kinds(saver, "inner")
    assert [] == saver.verify("1")


def test_a_subgraph_that_asked_goes_on_with_its_lists(saver: JournalSaver) -> None:
    app = outer(saver, persistent=False, asks=True)
    app.invoke({"messages": [HumanMessage(TEXT, id="h")]}, place())

    asked = app.get_state(place(), subgraphs=True).tasks[0].state.values
    assert lines(2) == asked["lines"] == asked["delta"]
    app.invoke(Command(resume=True), place())

    assert ["h", "i0", "i1", "i2", "i3"] == [message.id for message in app.get_state(place()).values["messages"]]
    assert [] == saver.verify("1")


def test_every_checkpoint_of_a_subgraph_reads_back_also_after_a_fork_and_a_prune(saver: JournalSaver) -> None:
    app = outer(saver, persistent=True)
    for turn in range(2):
        app.invoke({"messages": [HumanMessage(TEXT, id=f"h{turn}")]}, place())
    within = place(checkpoint_ns="inner")
    history = [entry.values.get("lines", []) for entry in app.get_state_history(within)]
    assert sorted(history, key=len, reverse=True) == history
    assert [lines(n) for n in range(9)] == [lines(n) for n in sorted({len(entry) for entry in history})]

    app.update_state(within, {"lines": ["more"], "delta": ["more"]}, as_node="work")
    saver.prune(["1"])

    state = app.get_state(within).values
    assert [*lines(8), "more"] == state["lines"] == state["delta"]
    assert [] == saver.verify("1")
