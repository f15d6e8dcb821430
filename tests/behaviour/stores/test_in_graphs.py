"""Stores in graphs: what nodes are given, and that facts and progress are kept apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import pytest

from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.config import get_store
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.store.base import BaseStore
from pregel.store.memory import InMemoryStore
from pregel.store.sqlite import AsyncSqliteStore, SqliteStore
from pregel.types import Command, interrupt

from ..conftest import Runner

Thread = Callable[[str], Any]
Saver = BaseCheckpointSaver[Any]


class State(TypedDict, total=False):
    user: str
    fact: str
    known: list[str]


def remembering() -> StateGraph[Any]:
    """Remembers a fact about a user, and tells all that are known."""

    def remember(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        place = ("facts", state["user"])
        if state.get("fact"):
            runtime.store.put(place, state["fact"], {"text": state["fact"]})
        return {"known": sorted(item.value["text"] for item in runtime.store.search(place))}

    return StateGraph(State).add_node("remember", remember).add_edge(START, "remember")


@pytest.mark.acceptance("S1-51")
def test_what_one_thread_learned_another_one_knows(run: Runner, saver: Saver, thread: Thread) -> None:
    app = remembering().compile(checkpointer=saver, store=InMemoryStore())
    run.invoke(app, {"user": "ann", "fact": "likes tea"}, thread("one"))
    run.invoke(app, {"user": "bob", "fact": "likes jam"}, thread("two"))

    assert ["likes tea"] == run.invoke(app, {"user": "ann"}, thread("three"))["known"]
    assert ["likes jam"] == run.invoke(app, {"user": "bob"}, thread("three"))["known"]


@pytest.mark.acceptance("S1-51")
def test_facts_are_found_by_what_they_say_and_lapse(run: Runner) -> None:
    now = [1_700_000_000.0]
    store = InMemoryStore(ttl={"default_ttl": 1.0, "refresh_on_read": False}, clock=lambda: now[0])
    app = remembering().compile(store=store)
    run.invoke(app, {"user": "ann", "fact": "likes tea"})

    assert ["likes tea"] == [item.key for item in store.search(("facts",), filter={"text": "likes tea"})]
    assert [] == store.search(("facts",), filter={"text": "likes jam"})
    now[0] += 61.0
    assert [] == run.invoke(app, {"user": "ann"})["known"]


@pytest.mark.acceptance("S5-5")
def test_dropping_memory_loses_no_progress(run: Runner, saver: Saver, thread: Thread) -> None:
    def ask(state: State, store: BaseStore) -> dict[str, Any]:
        facts = [item.key for item in store.search(("facts",))]
        return {"fact": interrupt("which?"), "known": facts}

    graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask")
    store = InMemoryStore()
    store.put(("facts",), "old", {})
    run.invoke(graph.compile(checkpointer=saver, store=store), {"user": "ann"}, thread("t"))
    store.delete(("facts",), "old")
    after = graph.compile(checkpointer=saver, store=InMemoryStore())

    assert ("ask",) == run.state(after, thread("t")).next
    assert {"user": "ann", "fact": "x", "known": []} == run.invoke(after, Command(resume="x"), thread("t"))


@pytest.mark.acceptance("S5-5")
def test_dropping_a_thread_loses_no_memory(run: Runner, thread: Thread) -> None:
    saver, store = InMemorySaver(), InMemoryStore()
    app = remembering().compile(checkpointer=saver, store=store)
    run.invoke(app, {"user": "ann", "fact": "likes tea"}, thread("t"))
    saver.delete_thread("t")

    assert ["likes tea"] == run.invoke(app, {"user": "ann"}, thread("t"))["known"]


def test_every_way_to_the_store_is_the_same_object(run: Runner) -> None:
    seen: list[Any] = []

    def look(state: State, runtime: Runtime[Any], store: BaseStore) -> None:
        seen.extend([runtime.store, store, get_store()])

    store = InMemoryStore()
    run.invoke(StateGraph(State).add_node("look", look).add_edge(START, "look").compile(store=store), {"user": "a"})

    assert [True] * 3 == [one is store for one in seen]


def test_without_a_store_there_is_none(run: Runner) -> None:
    seen: list[Any] = []

    def look(state: State, runtime: Runtime[Any]) -> None:
        seen.extend([runtime.store, get_store()])

    run.invoke(StateGraph(State).add_node("look", look).add_edge(START, "look").compile(), {"user": "a"})

    assert [None, None] == seen


@pytest.mark.parametrize("how", ["as a node", "invoked by a node"])
def test_subgraphs_have_the_store_of_the_graph_around_them(run: Runner, how: str) -> None:
    child = remembering().compile()

    def call(state: State) -> Any:
        return child.invoke(state)

    node: Any = child if how == "as a node" else call
    app = StateGraph(State).add_node("child", node).add_edge(START, "child").compile(store=InMemoryStore())

    assert ["x"] == run.invoke(app, {"user": "ann", "fact": "x"})["known"]


def test_a_store_that_was_not_entered_is_refused() -> None:
    for given in (SqliteStore.from_conn_string(":memory:"), AsyncSqliteStore.from_conn_string(":memory:")):
        with pytest.raises(TypeError, match="Invalid store"):
            remembering().compile(store=given)  # type: ignore[arg-type]
