"""Ctrl-C inside a node: it reaches the caller, and what had ended before it is kept."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.config import RunnableConfig
from pregel.constants import START
from pregel.graph.state import StateGraph
from tests.simulation.graphs import IN, State, note


@pytest.mark.parametrize("names", [["stop"], ["work", "stop"]])
def test_an_interrupted_process_winds_the_run_down_and_can_continue_it(names: list[str]) -> None:
    pressed = False

    def stop(state: dict[str, Any]) -> dict[str, Any]:
        nonlocal pressed
        if not pressed:
            pressed = True
            raise KeyboardInterrupt
        return {"log": ["stop"]}

    builder: StateGraph[Any] = StateGraph(State)
    for name, before in zip(names, [START, *names], strict=False):
        builder.add_node(name, stop if name == "stop" else note(name))
        builder.add_edge(before, name)
    saver = InMemorySaver()
    app = builder.compile(checkpointer=saver)
    config: RunnableConfig = {"configurable": {"thread_id": "1"}}

    with pytest.raises(KeyboardInterrupt):
        app.invoke(IN, config)

    assert [("idle", "cancelled")] == [(row.status, row.reason) for row in saver.threads()]
    assert "stop" == app.invoke(None, config)["log"][-1]
