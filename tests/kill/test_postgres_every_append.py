"""A process that is killed at each statement of its run: before the server gets it, and after it has done it."""

from __future__ import annotations

import operator
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.records import Page
from pregel.graph import START, StateGraph
from pregel.types import Command, Durability, interrupt
from tests.proxy import Proxy, standing

ROOT = Path(__file__).parents[2]
CONFIG: Any = {"configurable": {"thread_id": "t"}}
LEVEL = {"x": 0, "y": 0, "p": 1, "q": 2, "ask": 3, "z": 4}  # the order of supersteps, those of the subgraph among them
DONE = {"a": ["x", "y", "yes", "z"], "b": ["p", "q"]}

RUN = """
import sys
from tests.kill.test_postgres_every_append import finish
finish(*sys.argv[1:])
"""


class Inner(TypedDict, total=False):
    b: Annotated[list[str], operator.add]


class State(Inner, total=False):
    a: Annotated[list[str], operator.add]


def build(log: Path) -> StateGraph[Any]:
    """A fan-out, a subgraph, a question; every node leaves its name in the log when it starts."""

    def node(name: str, key: str = "a") -> Any:
        def body(state: Any) -> dict[str, Any]:
            with log.open("a") as file:
                file.write(f"{name}\n")
            return {key: [interrupt("go on?") if name == "ask" else name]}

        return body

    inner = StateGraph(Inner).add_node("p", node("p", "b")).add_node("q", node("q", "b"))
    inner.add_edge(START, "p").add_edge("p", "q")
    graph = StateGraph(State).add_node("sub", inner.compile())
    for name in ("x", "y", "ask", "z"):
        graph.add_node(name, node(name))
    graph.add_edge(START, "x").add_edge(START, "y").add_edge(["x", "y"], "sub")
    return graph.add_edge("sub", "ask").add_edge("ask", "z")


def finish(dsn: str, log: str, durability: Durability) -> Any:
    """Run the thread from wherever it is to its end."""
    with PostgresSaver.from_conn_string(dsn, prepare=False) as saver:
        app = build(Path(log)).compile(checkpointer=saver)
        if not app.get_state(CONFIG).created_at:
            app.invoke({}, CONFIG, durability=durability)
        while (state := app.get_state(CONFIG)).next:
            app.invoke(Command(resume="yes") if state.interrupts else None, CONFIG, durability=durability)
        return state.values


def stored(dsn: str) -> set[str]:
    """The nodes whose writes the database holds."""
    with PostgresSaver.from_conn_string(dsn) as saver:
        found = [saved for _, saved in saver.page("t", Page(ns=None))]
    applied = {name for saved in found for key in "ab" for name in saved.values.get(key, [])}
    pending = {write.name for saved in found for write in saved.writes if write.idx >= 0}
    return {"ask" if name == "yes" else name for name in applied | pending} & LEVEL.keys()


@pytest.mark.slow
@pytest.mark.timeout(600)  # a process for each statement
@pytest.mark.acceptance("S1-43")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_is_killed_at_any_statement_goes_on(
    dsn: str, tmp_path: Path, durability: Durability, when: Any, request: pytest.FixtureRequest
) -> None:
    empty = request.getfixturevalue("worker_database").empty
    deaths = 0
    with standing(Proxy(dsn)) as proxy:
        while True:
            empty()
            log = tmp_path / f"log-{deaths}"
            log.touch()
            child = subprocess.Popen([sys.executable, "-c", RUN, proxy.dsn, log, durability], cwd=ROOT)
            proxy.on_cut = child.kill
            proxy.cut(deaths + 1, when)
            status = child.wait()
            if status == 0:
                break  # its run has no more statements than that
            deaths += 1
            started, kept = log.read_text().split(), stored(dsn)
            log.write_text("")

            assert DONE == finish(dsn, str(log), durability)

            again = log.read_text().split()
            assert set() == kept & set(again) - {"ask"}, f"ran again though stored, killed at {deaths}"
            if durability != "exit":
                late = max((LEVEL[name] for name in started), default=0)
                allowed = (
                    1 if durability == "sync" else 2
                )  # supersteps that may be open when the next one has not begun
                lost = {name for name in started if name not in kept and name != "ask"}
                assert all(LEVEL[name] > late - allowed for name in lost), f"lost {lost} of {started} at {deaths}"
    assert deaths >= 5
