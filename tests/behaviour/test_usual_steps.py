"""The usual superstep on the in-memory saver: it goes in without an Append, under every rule of one."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Append, Hold, Page, Receipt
from pregel.errors import AuthorityLost, GraphDrained, SerializationError, ThreadDeleted
from pregel.graph import END, START, StateGraph
from pregel.runtime import Runtime
from pregel.testing.history import difference, history

from .conftest import Runner
from .marks import Thread, chain
from .test_authority import row_of, take


def hold_of(saver: InMemorySaver) -> Hold:
    """What the run that has the thread holds."""
    row = row_of(saver)
    assert row.run is not None
    return Hold(row.tno, row.epoch, row.run)


class Watched(InMemorySaver):
    """Hears of each append, so none goes the short way."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[Append] = []

    def append(self, append: Append) -> Receipt:
        self.appends.append(append)
        return super().append(append)


class State(TypedDict, total=False):
    n: int
    items: Annotated[list[str], operator.add]
    box: dict[str, list[int]]
    keys: Annotated[list[str], operator.add]


def grow(state: State, runtime: Runtime[Any]) -> State:
    """One more of everything; and changes what an earlier step put into the state."""
    box = state["box"] if "box" in state else {"all": list[int]()}
    box["all"].append(state["n"])
    return {"n": state["n"] + 1, "items": [f"item {state['n']}"], "box": box, "keys": [runtime.idempotency_key]}


def rest(state: State) -> None:
    return None


def growing(saver: InMemorySaver) -> Any:
    graph = StateGraph(State)
    graph.add_node("grow", grow)
    graph.add_node("rest", rest)
    graph.add_edge(START, "grow")
    graph.add_edge("grow", "rest")
    graph.add_conditional_edges("rest", lambda state: "grow" if state["n"] < 6 else END, ["grow", END])
    return graph.compile(checkpointer=saver)


def test_a_run_leaves_the_same_thread_whichever_way_its_steps_went(run: Runner, thread: Thread) -> None:
    short, long = InMemorySaver(), Watched()

    for saver in (short, long):
        app = growing(saver)
        run.invoke(app, {"n": 0, "items": ["first"]}, thread("1"))
        run.invoke(app, {"n": 3}, thread("1"))

    told = [history([saved for _, saved in saver.page("1", Page(None))]) for saver in (long, short)]
    assert "" == difference(*told)
    assert len(long.appends) > 15
    assert [0, 0] == [len(saver.verify("1")) for saver in (short, long)]


def test_what_changes_later_changes_no_step_that_is_kept(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver()

    run.invoke(growing(saver), {"n": 0}, thread("1"))

    kept = [saved.values["box"]["all"] for _, saved in saver.page("1", Page()) if "box" in saved.values]
    assert [list(range(n)) for n in (6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1)] == kept


@pytest.mark.acceptance("S4-3")
def test_a_run_that_lost_its_thread_keeps_nothing_of_its_next_step(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver()

    def lose(state: Any) -> dict[str, Any]:
        saver.renew([hold_of(saver)], keep=False)
        take(saver)
        return {"a": ["c"]}

    app = chain("a", "b", "c", "d", c=lose).compile(checkpointer=saver)

    with pytest.raises(AuthorityLost):
        run.invoke(app, {"a": []}, thread("1"))

    assert ["a", "b"] == app.get_state(thread("1")).values["a"]


def test_a_run_whose_thread_was_deleted_does_not_bring_it_back(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver()

    def lose(state: Any) -> dict[str, Any]:
        saver.delete_thread("1")
        return {"a": ["c"]}

    app = chain("a", "b", "c", "d", c=lose).compile(checkpointer=saver)

    with pytest.raises(ThreadDeleted):
        run.invoke(app, {"a": []}, thread("1"))

    assert 0 == row_of(saver).tno


def test_what_another_run_asks_is_heard_with_the_next_step(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver()

    def ask(state: Any) -> dict[str, Any]:
        assert saver.ask(hold_of(saver), "interrupt")
        return {"a": ["c"]}

    app = chain("a", "b", "c", "d", c=ask).compile(checkpointer=saver)

    with pytest.raises(GraphDrained, match="newer run"):
        run.invoke(app, {"a": []}, thread("1"))

    assert ("d",) == app.get_state(thread("1")).next


def test_a_value_that_cannot_be_stored_fails_the_run_after_the_steps_before_it(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver()
    graph = StateGraph(dict)
    for name in ("a", "b", "c"):
        graph.add_node(name, lambda state, name=name: {"file": open} if name == "b" else name)
    graph.add_edge(START, "a")
    graph.add_edge("a", "b")
    graph.add_edge("b", "c")
    app = graph.compile(checkpointer=saver)

    with pytest.raises(SerializationError):
        run.invoke(app, {"start": 1}, thread("1"))

    assert "failed" == row_of(saver).status
    assert ("b",) == app.get_state(thread("1")).next


def test_the_number_of_a_deleted_thread_is_given_to_no_other(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver()
    app = chain("a").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    before = row_of(saver).tno

    saver.delete_thread("1")
    run.invoke(app, {"a": []}, thread("1"))

    assert row_of(saver).tno > before
