"""Channels that are stored as what is new in them: every order of completion, every death at every effect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from pregel import Pregel
from pregel.channels import DeltaChannel
from pregel.checkpoint.flows import Sql
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.flow import Flow
from pregel.graph import START, StateGraph
from pregel.graph.message import add_messages
from pregel.messages import AnyMessage, RemoveMessage, ToolMessage
from pregel.testing import crash_matrix, explore

SIZE = 300  # a delta is lighter than what it stands on
FIRST = {"lines": ["in" * SIZE], "messages": [], "words": ["in" * SIZE], "turn": 0}


def joined(old: list[str], writes: Sequence[list[str]]) -> list[str]:
    return [*old, *chain.from_iterable(writes)]


class Logs(TypedDict, total=False):
    lines: Annotated[list[str], add]
    messages: Annotated[list[AnyMessage], add_messages]
    words: Annotated[list[str], DeltaChannel(joined, name="joined")]
    turn: int


def said(name: str, turn: int) -> dict[str, Any]:
    text = f"{name}{turn}"
    return {
        "lines": [text * SIZE],
        "messages": [ToolMessage(text * SIZE, id=text, tool_call_id=text)],
        "words": [text * SIZE],
    }


def growing(turns: int) -> Pregel:
    """Two nodes side by side that add to every log, and a third one that drops the first message."""

    def left(state: Any) -> dict[str, Any]:
        return {**said("l", state["turn"]), "turn": state["turn"] + 1}

    def right(state: Any) -> dict[str, Any]:
        return said("r", state["turn"])

    def drop(state: Any) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id=state["messages"][0].id)]}

    builder = StateGraph(Logs)
    for node in (left, right, drop):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "drop")
    builder.add_conditional_edges("drop", lambda state: ["left", "right"] if state["turn"] % turns else [])
    return builder.compile()


@pytest.mark.acceptance("S6-1")
def test_logs_end_the_same_in_every_order_and_after_every_death() -> None:
    report = explore(growing(1), FIRST, {"lines": ["again" * SIZE]}, faults=("crash", "lost", "zombie"))

    *_, end = report.ends
    texts = [text[: len(text) // SIZE] for text in end.values["lines"]]
    assert ("done", ["in", "l0", "r0", "again", "l1", "r1"]) == (end.status, texts)
    assert ["in", "l0", "r0", "l1", "r1"] == [text[: len(text) // SIZE] for text in end.values["words"]]
    assert ["l1", "r1"] == [message.id for message in end.values["messages"]]


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_logs_survive_every_death_in_every_durability(durability: Any, tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db"), synchronous="NORMAL") as saver:
        crash_matrix(growing(2), FIRST, saver=saver, durability=durability)


def test_what_is_explored_here_is_stored_as_deltas() -> None:
    saver = InMemorySaver()
    growing(2).copy({"checkpointer": saver}).invoke(FIRST, {"configurable": {"thread_id": "1"}})

    def flow() -> Flow[Counter[str]]:
        tno = (yield Sql("lock_thread", ("1",)))[0][0]
        return Counter(row[2] for row in (yield Sql("value_keys", (tno, 0))))

    assert saver.read(flow())["delta"] >= 5
