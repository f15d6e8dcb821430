"""The real drivers keep the order of a Step: what a node stands on is stored before the node runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Page
from pregel.config import RunnableConfig
from pregel.constants import START
from pregel.errors import InvalidUpdateError
from pregel.graph.state import StateGraph
from tests.simulation.graphs import IN, State, conflicting

CONFIG: RunnableConfig = {"configurable": {"thread_id": "1"}}


def newest(saver: InMemorySaver) -> tuple[str, int]:
    """Status and newest step of the only thread."""
    ((_, saved),) = saver.page("1", Page(limit=1))
    return saver.threads()[0].status, saved.step


def watching(saver: InMemorySaver, seen: list[tuple[str, int]], *, waits: bool) -> Any:
    """A graph of one node and a fan-out, each of which looks at what is stored when it runs."""

    def look(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(newest(saver))
        return {"log": ["looked"]}

    async def alook(state: dict[str, Any]) -> dict[str, Any]:
        return look(state)

    builder = StateGraph(State)
    for name in ("first", "left", "right"):
        builder.add_node(name, alook if waits else look)
    builder.add_edge(START, "first")
    builder.add_edge("first", "left")
    builder.add_edge("first", "right")
    return builder.compile(checkpointer=saver)


def test_a_node_finds_its_checkpoint_stored_and_its_thread_claimed() -> None:
    saver, seen = InMemorySaver(), list[tuple[str, int]]()

    watching(saver, seen, waits=False).invoke(IN, CONFIG)

    assert [("running", 0), ("running", 1), ("running", 1)] == seen


@pytest.mark.parametrize("waits", [True, False])
def test_a_node_of_an_awaiting_run_finds_the_same(waits: bool) -> None:
    saver, seen = InMemorySaver(), list[tuple[str, int]]()

    asyncio.run(watching(saver, seen, waits=waits).ainvoke(IN, CONFIG))

    assert [("running", 0), ("running", 1), ("running", 1)] == seen


@pytest.mark.acceptance("S1-33")
def test_a_step_that_cannot_be_applied_leaves_its_writes_and_no_checkpoint() -> None:
    saver = InMemorySaver()
    app = conflicting().copy({"checkpointer": saver})

    with pytest.raises(InvalidUpdateError, match="last"):
        app.invoke(IN, CONFIG)

    (_, head), *older = saver.page("1", Page())
    assert (0, [-1]) == (head.step, [saved.step for _, saved in older])
    assert [("a", "a"), ("b", "b")] == [(write.name, write.value) for write in head.writes if write.channel == "last"]
    assert "failed" == saver.threads()[0].status
