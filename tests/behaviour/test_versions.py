"""Versions of graphs: a thread is gone on with by the version that began it, and workers select by it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.durable import Worker
from pregel.errors import DefinitionError, InvalidInputError, VersionMismatchError
from pregel.types import Command, interrupt
from pregel.waits import wait_for_event

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark
from .test_authority import has_authority, row_of
from .test_starts import INPUT, start, work
from .test_thread_api import Api


@pytest.fixture(autouse=True)
def needs_a_status(request: pytest.FixtureRequest) -> None:
    if "saver" in request.fixturenames and not has_authority(request.getfixturevalue("saver")):
        pytest.skip("no status is kept there")


def asks(state: State) -> dict[str, Any]:
    return {"a": [interrupt("go on?")]}


def orders(saver: Saver, version: str | None, **nodes: Any) -> Any:
    """A graph of this version that leaves its version behind, twice."""
    told = f"v{version}"
    return chain("x", "y", **{"x": mark(told), "y": mark(told), **nodes}).compile(
        checkpointer=saver, name="orders", version=version
    )


def values(run: Runner, app: Any, thread: str) -> list[str]:
    found: list[str] = run.state(app, {"configurable": {"thread_id": thread}}).values["a"]
    return found


def go_on(run: Runner, app: Any, how: str, newest: Any) -> None:
    """Go on with thread 1, somehow."""
    place: Any = {"configurable": {"thread_id": "1"}}
    if how in ("resume", "wake"):
        Api(run, app)(how, "1")
    elif how == "replay":
        run.invoke(app, None, newest)
    elif how == "update":
        run.update(app, place, {"a": ["by hand"]})
    else:
        run.invoke(app, Command(resume="yes") if how == "invoke" else INPUT, place)


@pytest.mark.acceptance("S3-12")
@pytest.mark.parametrize("began", ["1", "2", None])
@pytest.mark.parametrize("how", ["resume", "invoke", "new input", "update", "wake", "replay"])
def test_another_version_is_refused_and_nothing_is_written(
    run: Runner, saver: Saver, thread: Thread, how: str, began: str | None
) -> None:
    def waits(state: State) -> dict[str, Any]:
        return {"a": [str(wait_for_event("paid"))]}

    other = "1" if began != "1" else "2"
    own = orders(saver, began, y=waits if how == "wake" else asks)
    run.invoke(own, INPUT, thread("1"))
    before = row_of(saver, "1")
    app = orders(saver, other)
    with pytest.raises(VersionMismatchError) as caught:
        go_on(run, app, how, run.state(own, thread("1")).config)

    assert (began, other) == (caught.value.of_thread, caught.value.of_graph)
    assert before == row_of(saver, "1")
    assert began == Api(run, own)("status", "1").version


@pytest.mark.acceptance("S3-12")
def test_a_thread_at_its_end_begins_again_by_a_later_version_and_never_by_an_older_one(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    v1, v2 = (orders(saver, version) for version in ("1.9", "1.10"))
    run.invoke(v1, INPUT, thread("1"))
    run.invoke(v2, INPUT, thread("1"))
    for older in (v1, orders(saver, None)):
        with pytest.raises(VersionMismatchError):
            run.invoke(older, INPUT, thread("1"))

    assert ["in", "v1.9", "v1.9", "in", "v1.10", "v1.10"] == values(run, v2, "1")
    assert "1.10" == Api(run, v2)("status", "1").version == run.state(v2, thread("1")).metadata["graph_version"]


@pytest.mark.acceptance("S3-24")
def test_a_rolling_deploy_finishes_old_runs_on_old_code(run: Runner, saver: Saver) -> None:
    v1, v2 = orders(saver, "1"), orders(saver, "2")
    for name in "ab":
        start(run, v1, INPUT, key=name)
    start(run, v2, INPUT, key="c")

    assert 1 == work(run, v2)
    assert "pending" == Api(run, v2)("status", "a").status
    start(run, v1, INPUT, {"configurable": {"thread_id": "d"}})
    assert 3 == work(run, v2, v1)
    expected = {"a": "v1", "b": "v1", "c": "v2", "d": "v1"}
    assert {name: ["in", told, told] for name, told in expected.items()} == {
        name: values(run, v2, name) for name in expected
    }


@pytest.mark.acceptance("S3-9")
def test_a_worker_takes_its_own_version_or_older_ones_too(run: Runner, saver: Saver) -> None:
    graphs = {version: orders(saver, version) for version in ("1.9", "1.10", "2", None)}
    for version, graph in graphs.items():
        start(run, graph, INPUT, key=str(version))
    middle = graphs["1.10"]

    assert 1 == work(run, middle, match="strict")
    assert 2 == work(run, middle, match="current_or_older")
    assert {"1.9", "1.10", "None"} == {
        name for name in map(str, graphs) if values(run, middle, name) == ["in", "v1.10", "v1.10"]
    }
    assert ("pending", "2") == (Api(run, middle)("status", "2").status, Api(run, middle)("status", "2").version)
    assert "1.10" == Api(run, middle)("status", "1.9").version


@pytest.mark.acceptance("S3-9")
def test_a_thread_that_no_graph_takes_is_left_or_failed(run: Runner, saver: Saver) -> None:
    v1, v2 = orders(saver, "1"), orders(saver, "2")
    start(run, v1, INPUT, key="1")
    before = row_of(saver, "1")
    assert 0 == work(run, v2, on_mismatch="reject")
    assert before == row_of(saver, "1")

    assert 1 == work(run, v2, on_mismatch="fail")
    info = Api(run, v2)("status", "1")
    assert ("failed", "1") == (info.status, info.version)
    assert "VersionMismatchError" in info.reason
    assert "'1'" in info.reason
    assert "'2'" in info.reason
    Api(run, v1)("resume", "1")
    assert ["in", "v1", "v1"] == values(run, v1, "1")


def test_rewinding_and_settling_are_no_versions_work(run: Runner, saver: Saver, thread: Thread) -> None:
    def fails(state: State) -> dict[str, Any]:
        raise ValueError("broken")

    v1, v2 = orders(saver, "1", y=fails), orders(saver, "2")
    with pytest.raises(ValueError, match="broken"):
        run.invoke(v1, INPUT, thread("1"))
    Api(run, v2)("rewind", "1", reason="mended")

    assert "1" == Api(run, v2)("status", "1").version


@pytest.mark.acceptance("S3-14")
def test_a_start_can_name_a_version(run: Runner, saver: Saver) -> None:
    v1, v2 = orders(saver, "1"), orders(saver, "2")
    start(run, v1, INPUT, key="1", version="2")

    assert "2" == Api(run, v1)("status", "1").version
    assert 1 == work(run, v2)
    assert ["in", "v2", "v2"] == values(run, v2, "1")
    with pytest.raises(InvalidInputError, match="'3' is known"):
        start(run, v1, INPUT, key="2", version="3")


@pytest.mark.acceptance("S3-14")
def test_an_unversioned_call_from_a_node_is_of_the_version_around_it(run: Runner, saver: Saver) -> None:
    inner = {version: orders(saver, version) for version in (None, "1", "2")}

    def x(state: State) -> dict[str, Any]:
        inner[None].start(INPUT, key=f"inner of {state['a'][0]}")
        called: dict[str, Any] = called_graphs[None].invoke({"a": []})
        return {"a": called["a"]}

    called_graphs = {version: chain("x", x=mark(f"c{version}")).compile(name="c", version=version) for version in inner}
    outer = {
        version: chain("x", x=x).compile(checkpointer=saver, name="outer", version=version)
        for version in (None, "1", "2", "3")
    }
    for version, graph in outer.items():
        run.invoke(graph, {"a": [f"{version}"]}, {"configurable": {"thread_id": f"outer {version}"}})

    assert {"None": ("cNone", None), "1": ("c1", "1"), "2": ("c2", "2"), "3": ("cNone", None)} == {
        version: (values(run, outer[None], f"outer {version}")[1], row_version(saver, f"inner of {version}"))
        for version in map(str, outer)
    }


def test_of_graphs_with_one_name_and_version_the_last_is_meant_and_none_without_a_name(run: Runner) -> None:
    def x(state: State) -> dict[str, Any]:
        found: dict[str, Any] = inner.invoke({"a": []})
        return {"a": found["a"] + unnamed.invoke({"a": []})["a"]}

    inner, unnamed = chain("x", x=mark("without")).compile(name="inner"), chain("x", x=mark("unnamed")).compile()
    versions = [chain("x", x=mark(f"compiled {n}")).compile(name="inner", version="1") for n in range(9)]
    versions.append(chain("x", x=mark("another")).compile(version="1"))
    outer = chain("x", x=x).compile(name="outer", version="1")

    assert ["compiled 8", "unnamed"] == run.invoke(outer, {"a": []})["a"]


def row_version(saver: Saver, thread: str) -> str | None:
    _, _, version = row_of(saver, thread).graph.partition(" @ ")
    return version or None


@pytest.mark.acceptance("S6-7")
@pytest.mark.parametrize("rests", ["interrupted", "waiting", "pending"])
def test_a_graph_is_replaced_while_its_thread_rests(run: Runner, saver: Saver, thread: Thread, rests: str) -> None:
    def waits(state: State) -> dict[str, Any]:
        return {"a": [wait_for_event("paid").value]}

    def compiled(**nodes: Any) -> Any:
        return chain("x", "y", "z", **nodes).compile(checkpointer=saver, name="orders")

    old = compiled(y={"interrupted": asks, "waiting": waits}.get(rests))
    new = compiled(y={"interrupted": asks, "waiting": waits}.get(rests, mark("new y")), z=mark("new z"))
    if rests == "pending":
        start(run, old, INPUT, key="1")
        assert 1 == work(run, new)
    else:
        run.invoke(old, INPUT, thread("1"))
    if rests == "interrupted":
        Api(run, new)("resume", "1", "answer")
    if rests == "waiting":
        Api(run, old)("send_event", "1", "paid", "answer")
        assert 1 == work(run, new)

    assert ["in", "x", "new y" if rests == "pending" else "answer", "new z"] == values(run, new, "1")


@pytest.mark.acceptance("S6-7")
def test_a_worker_goes_on_with_the_graph_that_replaces_another_at_the_next_step(run: Runner, saver: Saver) -> None:
    holding, let_go, last = threading.Event(), threading.Event(), threading.Event()

    def x(state: State) -> dict[str, Any]:
        holding.set()
        assert let_go.wait(60)
        return {"a": ["old x"]}

    def z(state: State) -> dict[str, Any]:
        worker.stop()
        last.set()
        return {"a": ["new z"]}

    old = chain("x", "y", "z", x=x, y=mark("old y")).compile(checkpointer=saver, name="orders")
    new = chain("x", "y", "z", x=mark("new x"), y=mark("new y"), z=z).compile(checkpointer=saver, name="orders")
    worker = Worker(old, poll_interval=0.05)
    start(run, old, INPUT, key="1")
    thread = threading.Thread(target=worker.run if run.name == "sync" else lambda: asyncio.run(worker.arun()))
    thread.start()
    assert holding.wait(60)
    worker.replace(new)
    let_go.set()
    thread.join(60)

    assert last.is_set()
    assert ["in", "old x", "new y", "new z"] == values(run, new, "1")


def test_what_is_no_version_and_no_place_for_one_is_refused() -> None:
    saver = InMemorySaver()
    for version in ("", "1 2", 1):
        with pytest.raises(DefinitionError):
            chain("x").compile(version=version, name="orders")  # type: ignore[arg-type]  # that is what is refused
    with pytest.raises(DefinitionError):
        chain("x").compile(version="1", name="a @ b")
    v1 = orders(saver, "1")
    for arguments in ({"match": "newer"}, {"on_mismatch": "wait"}):
        with pytest.raises(InvalidInputError):
            Worker(v1, **arguments)  # type: ignore[arg-type]  # that is what is refused
    with pytest.raises(InvalidInputError):
        Worker([v1, orders(saver, "1")])
    with pytest.raises(InvalidInputError):
        Worker(v1).replace(orders(saver, "2"))
