"""Continue-as-new: the thread keeps its id, and its new execution has nothing of the old one but its input."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.durable import ContinueAsNew
from pregel.errors import InvalidUpdateError, NoCheckpointerError, VersionMismatchError
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import RetryPolicy, interrupt
from pregel.waits import wait_for_event

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel
from .test_authority import has_authority, row_of
from .test_starts import INPUT, start, work
from .test_thread_api import Api


@pytest.fixture(autouse=True)
def needs_a_status(request: pytest.FixtureRequest) -> None:
    if "saver" in request.fixturenames and not has_authority(request.getfixturevalue("saver")):
        pytest.skip("no status is kept there")


def cycles(last: int, **asked: Any) -> Any:
    """A node that begins a new execution until that is the last one; `b` counts them."""

    def node(state: State) -> dict[str, Any]:
        cycle = int(state["b"])
        if cycle < last:
            raise ContinueAsNew({"b": str(cycle + 1)}, **asked)
        return {"a": [f"end of {cycle}"]}

    return node


@pytest.mark.acceptance("S2-24", "S3-15")
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_new_execution_has_nothing_of_the_old_one_but_its_input(
    run: Runner, saver: Saver, thread: Thread, durability: str
) -> None:
    app = chain("x", "y", y=cycles(3)).compile(checkpointer=saver)
    told = run.invoke(app, {"a": ["in"], "b": "1"}, thread("1"), durability=durability)

    assert {"a": ["x", "end of 3"], "b": "3"} == told == run.state(app, thread("1")).values
    history = run.history(app, thread("1"))
    began = [one for one in history if one.parent_config is None]
    assert 3 == len(began) if durability != "exit" else 1 <= len(began)
    assert len(began) == len({one.metadata["run_id"] for one in began if "run_id" in one.metadata}) + 1 or (
        durability == "exit"
    )
    if durability != "exit":
        assert ["in", "x"] == history[-3].values["a"]  # of the first execution
    assert "idle" == Api(run, app)("status", "1").status


@pytest.mark.acceptance("S3-10", "S3-15")
def test_another_version_goes_on_and_its_result_is_the_runs(run: Runner, saver: Saver, thread: Thread) -> None:
    v1 = chain("x", "y", y=cycles(9, version="2")).compile(checkpointer=saver, name="orders", version="1")
    v2 = chain("p", "q").compile(checkpointer=saver, name="orders", version="2")
    handle = start(run, v1, {"a": ["in"], "b": "1"}, key="1")

    assert 1 == work(run, v1)
    info = Api(run, v1)("status", "1")
    assert ("pending", "2") == (info.status, info.version)
    assert 0 == work(run, v1)
    with pytest.raises(VersionMismatchError):
        Api(run, v1)("resume", "1")
    assert 1 == work(run, v2)
    state = run.state(v2, thread("1"))
    assert {"a": ["p", "q"], "b": "2"} == state.values
    assert handle.run_id != state.metadata["run_id"]
    assert "2" == state.metadata["graph_version"]
    assert ["in", "x"] == run.history(v2, thread("1"))[-3].values["a"]


def test_a_call_ends_with_nothing_where_another_version_is_to_go_on(run: Runner, saver: Saver, thread: Thread) -> None:
    v1 = chain("y", y=cycles(9, version="2")).compile(checkpointer=saver, name="orders", version="1")
    v2 = chain("p").compile(checkpointer=saver, name="orders", version="2")

    assert run.invoke(v1, {"b": "1"}, thread("1")) is None
    assert {"a": ["p"], "b": "2"} == Api(run, v2)("resume", "1")


@pytest.mark.acceptance("S3-13", "S2-24")
@pytest.mark.parametrize("keep", [None, True, False])
@pytest.mark.parametrize("version", [None, "2"])
def test_events_that_nobody_took_are_kept_unless_they_are_dropped(
    run: Runner, saver: Saver, thread: Thread, keep: bool | None, version: str | None
) -> None:
    asked = {} if keep is None else {"keep_events": keep}

    def node(state: State) -> dict[str, Any]:
        if state["b"] == "1":
            wait_for_event("paid")
            raise ContinueAsNew({"b": "2"}, version=version, **asked)
        found = wait_for_event("paid")
        return {"a": [found.value]}

    v1, v2 = (
        chain("wait", wait=node).compile(checkpointer=saver, name="orders", version=number) for number in ("1", "2")
    )
    last = v1 if version is None else v2
    run.invoke(v1, {"b": "1"}, thread("1"))
    for number in "12":
        Api(run, v1)("send_event", "1", "paid", f"payment {number}", id=number)
    while work(run, v1, v2):
        pass
    assert ("waiting" if keep is False else "idle") == Api(run, last)("status", "1").status
    assert Api(run, last)("send_event", "1", "paid", "again", id="2").repeated
    if keep is False:
        Api(run, last)("send_event", "1", "paid", "payment 3")
        assert 1 == work(run, last)

    assert ["payment 3" if keep is False else "payment 2"] == run.state(last, thread("1")).values["a"]


def test_what_its_siblings_did_asked_or_wait_for_is_not_applied(run: Runner, saver: Saver, thread: Thread) -> None:
    def asks(state: State) -> dict[str, Any]:
        return {} if state["b"] == "2" else {"a": [interrupt("go on?")]}

    def waits(state: State) -> dict[str, Any]:
        return {} if state["b"] == "2" else {"a": [str(wait_for_event("paid"))]}

    app = parallel("ask", "done", "new", "wait", ask=asks, new=cycles(2), wait=waits).compile(checkpointer=saver)

    assert {"a": ["done", "end of 2"], "b": "2"} == run.invoke(app, {"b": "1"}, thread("1"))
    assert () == run.state(app, thread("1")).next
    assert [] == Api(run, app)("due")


@pytest.mark.parametrize("inside", [False, True], ids=["root", "subgraph"])
@pytest.mark.parametrize("first", ["fail", "new"])
def test_a_sibling_that_fails_is_heard_whichever_came_first(
    run: Runner, saver: Saver, thread: Thread, first: str, inside: bool
) -> None:
    came = threading.Event()

    def turn(name: str, error: BaseException) -> Any:
        def node(state: State) -> dict[str, Any]:
            assert name == first or came.wait(60)
            came.set()
            raise error

        return node

    new, fail = turn("new", ContinueAsNew({"b": "2"})), turn("fail", ValueError("broken"))
    graph = parallel("fail", "new", fail=fail, new=new)
    app = (chain("sub", sub=graph.compile()) if inside else graph).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="broken"):
        run.invoke(app, {"b": "1"}, thread("1"))

    assert {"a": [], "b": "1"} == run.state(app, thread("1")).values


def test_of_two_that_begin_anew_the_first_in_task_order_has_its_way(run: Runner, saver: Saver, thread: Thread) -> None:
    came = threading.Event()

    def early(state: State) -> dict[str, Any]:
        if state["b"] == "1":
            came.set()
            raise ContinueAsNew({"b": "of y"})
        return {}

    def late(state: State) -> dict[str, Any]:
        if state["b"] == "1":
            assert came.wait(60)
            raise ContinueAsNew({"b": "of x"})
        return {}

    app = parallel("x", "y", x=late, y=early).compile(checkpointer=saver)

    assert "of x" == run.invoke(app, {"b": "1"}, thread("1"))["b"]


def test_neither_retries_nor_handlers_nor_except_catch_it(run: Runner, saver: Saver, thread: Thread) -> None:
    new = cycles(2)

    def node(state: State) -> dict[str, Any]:
        try:
            told: dict[str, Any] = new(state)
        except Exception:
            return {"a": ["swallowed"]}
        return told

    graph = StateGraph(State).add_node("x", node, retry_policy=RetryPolicy(max_attempts=3)).add_edge(START, "x")

    assert {"a": ["end of 2"], "b": "2"} == run.invoke(graph.compile(checkpointer=saver), {"b": "1"}, thread("1"))


@pytest.mark.parametrize("persistent", [True, None])
def test_a_graph_inside_begins_its_threads_execution_anew(
    run: Runner, saver: Saver, thread: Thread, persistent: bool | None
) -> None:
    inner = chain("in", "new", new=cycles(2)).compile(checkpointer=persistent)
    app = chain("x", "sub", sub=inner).compile(checkpointer=saver)
    told = run.invoke(app, {"b": "1"}, thread("1"))

    assert {"b": "2"} == {"b": told["b"]}
    assert 1 == told["a"].count("end of 2")
    assert 1 == run.state(app, thread("1")).values["a"].count("in")


def test_what_a_persistent_subgraph_kept_is_not_seen_by_the_new_execution(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    def asks(state: State) -> dict[str, Any]:
        return {"a": [interrupt("go on?")]} if state["b"] == "2" else {}

    inner = chain("in", "asks", asks=asks).compile(checkpointer=True)
    app = chain("ask", "sub", "new", ask=asks, sub=inner, new=cycles(2)).compile(checkpointer=saver)
    run.invoke(app, {"b": "1"}, thread("1"))
    for answer in "pq":  # each by a run of its own
        Api(run, app)("resume", "1", answer)
    inside = run.history(app, {"configurable": {"thread_id": "1", "checkpoint_ns": "sub"}})

    assert ["p", "in", "q"] == inside[0].values["a"]


def test_keys_of_effects_differ_from_those_of_the_old_execution(run: Runner, saver: Saver, thread: Thread) -> None:
    keys: list[str] = []
    new = cycles(3)

    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        keys.append(runtime.effect("charge", lambda key: key))
        told: dict[str, Any] = new(state)
        return told

    run.invoke(chain("x", x=node).compile(checkpointer=saver), {"b": "1"}, thread("1"))

    assert 3 == len(set(keys))


def test_an_input_that_is_none_fails_the_run_and_the_old_execution_stays(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    def node(state: State) -> dict[str, Any]:
        raise ContinueAsNew(["no", "state"])

    app = chain("x", "y", y=node).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError):
        run.invoke(app, INPUT, thread("1"))

    assert ["in", "x"] == run.state(app, thread("1")).values["a"]
    assert "failed" == row_of(saver, "1").status


def test_it_needs_a_checkpointer(run: Runner) -> None:
    with pytest.raises(NoCheckpointerError):
        run.invoke(chain("x", x=cycles(2)).compile(), {"b": "1"})


def test_an_update_and_a_new_input_keep_to_the_execution(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", x=mark("x"), y=cycles(2)).compile(checkpointer=saver)
    run.invoke(app, {"b": "1"}, thread("1"))
    began = run.state(app, thread("1")).metadata["execution_began"]
    run.update(app, thread("1"), {"a": ["by hand"]})
    run.invoke(app, {"a": ["more"]}, thread("1"))

    assert began == run.state(app, thread("1")).metadata["execution_began"]


def test_a_stream_shows_the_new_execution_too(run: Runner) -> None:
    app = chain("y", y=cycles(2)).compile(checkpointer=InMemorySaver())
    shown = run.stream(app, {"b": "1"}, {"configurable": {"thread_id": "1"}}, stream_mode="updates")

    assert [{"y": {"a": ["end of 2"]}}] == shown
