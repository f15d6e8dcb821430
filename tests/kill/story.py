"""The run that is killed everywhere: a fan-out, a subgraph, a question; and what must hold of it afterwards."""

from __future__ import annotations

import operator
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, TypedDict

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.records import Page
from pregel.graph import START, StateGraph
from pregel.types import Command, Durability, interrupt

CONFIG: Any = {"configurable": {"thread_id": "t"}}
LEVEL = {"x": 0, "y": 0, "p": 1, "q": 2, "ask": 3, "z": 4}  # the order of supersteps, those of the subgraph among them
DONE = {"a": ["x", "y", "yes", "z"], "b": ["p", "q"]}


class Inner(TypedDict, total=False):
    b: Annotated[list[str], operator.add]


class State(Inner, total=False):
    a: Annotated[list[str], operator.add]


def build(log: Path) -> StateGraph[Any]:
    """Every node leaves its name in the log when it starts."""

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


def finish(saver: JournalSaver, log: Path, durability: Durability) -> Any:
    """Run the thread from wherever it is to its end."""
    app = build(log).compile(checkpointer=saver)
    if not app.get_state(CONFIG).created_at:
        app.invoke({}, CONFIG, durability=durability)
    while (state := app.get_state(CONFIG)).next:
        app.invoke(Command(resume="yes") if state.interrupts else None, CONFIG, durability=durability)
    return state.values


async def afinish(saver: JournalSaver, log: Path, durability: Durability) -> Any:
    """The same, awaited."""
    app = build(log).compile(checkpointer=saver)
    if not (await app.aget_state(CONFIG)).created_at:
        await app.ainvoke({}, CONFIG, durability=durability)
    while (state := await app.aget_state(CONFIG)).next:
        await app.ainvoke(Command(resume="yes") if state.interrupts else None, CONFIG, durability=durability)
    return state.values


def stored(saver: JournalSaver) -> set[str]:
    """The nodes whose writes the store holds."""
    found = [saved for _, saved in saver.page("t", Page(ns=None))]
    applied = {name for saved in found for key in "ab" for name in saved.values.get(key, [])}
    pending = {write.name for saved in found for write in saved.writes if write.idx >= 0}
    return {"ask" if name == "yes" else name for name in applied | pending} & LEVEL.keys()


def check(started: Collection[str], kept: set[str], again: Collection[str], durability: Durability, where: str) -> None:
    """What must hold of the nodes that had started at the kill, those that were stored, and those that ran after it."""
    assert set() == kept & set(again) - {"ask"}, f"ran again though stored, killed {where}"
    if durability != "exit":
        late = max((LEVEL[name] for name in started), default=0)
        allowed = 1 if durability == "sync" else 2  # supersteps that may be open when the next one has not begun
        lost = {name for name in started if name not in kept and name != "ask"}
        assert all(LEVEL[name] > late - allowed for name in lost), f"lost {lost} of {started}, killed {where}"
