"""Threads as every released format must load them: `write` makes them, with the version that is imported.

`python -c "from tests.behaviour.golden import write; write('tests/golden/threads-<format>.sql')"` was run once with the
first version of a format, in a tree of that version with this file in it; then names of the machine were taken out.
"""

from __future__ import annotations

import operator
import os
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.graph import START, StateGraph
from pregel.messages import AIMessage, AnyMessage, HumanMessage, add_messages
from pregel.types import Command, interrupt

METADATA = {"long": 2**53, "who": "Zoë", "run_id": "6f1c6ffd-4b3e-4c43-8df4-4a22ff5df5c0"}
NOTE = "n" * 200  # more than a manifest holds inline


@dataclass
class Order:
    item: str
    amount: int


class Inner(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    checked: bool


class State(TypedDict, total=False):
    kind: str
    log: Annotated[list[str], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]
    order: Order
    note: str


def config(thread: str) -> Any:
    """The config of a golden thread."""
    return {"configurable": {"thread_id": thread}, "metadata": METADATA}


def left(state: State) -> dict[str, Any]:
    return {"log": ["left"], "note": NOTE, "order": Order("tea", 2)}


def right(state: State) -> dict[str, Any]:
    if state["kind"] == "failed" and "WRITING" in os.environ:
        raise ValueError("no tea")
    if state["kind"] == "killed" and "WRITING" in os.environ:
        os._exit(9)
    return {"log": ["right"], "messages": [HumanMessage("tea?", id="m1")]}


def ask(state: State) -> dict[str, Any]:
    answer = interrupt({"buy": state["order"].item}) if state["kind"] != "done" else "yes"
    return {"log": [f"ask {answer}"], "messages": [AIMessage(answer, id="m2")]}


def check(state: Inner) -> dict[str, Any]:
    return {"log": ["check"], "checked": True}


def build() -> StateGraph[Any]:
    """Two nodes at once, a subgraph, a question."""
    inner = StateGraph(Inner).add_node("check", check).add_edge(START, "check")
    graph = StateGraph(State).add_node("left", left).add_node("right", right).add_node("ask", ask)
    graph.add_node("sub", inner.compile())
    graph.add_edge(START, "left").add_edge(START, "right").add_edge(["left", "right"], "sub")
    return graph.add_edge("sub", "ask")


def run(app: Any, thread: str) -> None:
    """Take a thread to where it stands in the golden file; `killed` does not return."""
    try:
        app.invoke({"kind": thread, "log": [f"in {thread}"]}, config(thread))
    except ValueError:
        assert thread == "failed"


def put_foreign(saver: Any) -> None:
    """A checkpoint and a write as another engine puts them."""
    where: Any = {"configurable": {"thread_id": "foreign", "checkpoint_ns": ""}}
    checkpoint: Any = {
        "v": 1,
        "id": "1ef4f797-8335-6428-8001-8a1503f9b875",
        "ts": "2024-07-31T20:14:19.804150+00:00",
        "channel_values": {"log": ["theirs"], "note": NOTE},
        "channel_versions": {"log": 2, "note": 3},
        "versions_seen": {"left": {"log": 1}},
    }
    where = saver.put(where, checkpoint, {"source": "input", "step": -1, "writes": {}}, {"log": 2, "note": 3})
    saver.put_writes(where, [("log", "more"), ("order", Order("tea", 1))], "task-1")


KILLED = """
import sys
from tests.behaviour.golden import *
with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    run(build().compile(checkpointer=saver), "killed")
"""


def write(target: str) -> None:
    """Make the threads and dump the database as SQL."""
    os.environ["WRITING"] = "1"
    path = Path(target).with_suffix(".db")
    assert subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False).returncode == 9
    with SqliteSaver.from_conn_string(path) as saver:
        app = build().compile(checkpointer=saver)
        for thread in ("done", "asked", "failed", "answered", "updated"):
            run(app, thread)
        app.invoke(Command(resume="yes"), config("answered"))
        first = list(app.get_state_history(config("updated")))[1]
        app.update_state(first.config, {"log": ["by hand"]}, as_node="sub")
        put_foreign(saver)
    connection = sqlite3.connect(path)
    Path(target).write_text("\n".join(connection.iterdump()) + "\n", "utf-8")
    connection.close()
    for left_over in path.parent.glob(f"{path.name}*"):
        left_over.unlink()
