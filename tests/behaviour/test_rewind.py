"""`app.threads.rewind`: a thread that failed is made ready to go on, and how it failed is kept."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pregel.errors import CannotRewindError, GraphDrained, InvalidInputError, ThreadNotFoundError
from pregel.graph import START, StateGraph
from pregel.runtime import RunControl, Runtime
from pregel.testing import FakeClock
from pregel.types import RetryPolicy, interrupt
from pregel.waits import sleep

from .conftest import Runner
from .marks import Saver, State, Thread, chain, failing_once, mark
from .test_authority import has_authority, row_of, take
from .test_concurrency import Held
from .test_thread_api import Api


@pytest.fixture(autouse=True)
def needs_a_status(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")


class Broken:
    """A graph of three nodes of which the second fails until it is mended."""

    def __init__(self, saver: Saver) -> None:
        self.calls: list[str] = []
        self.trouble: list[Exception] = [ValueError("first"), ValueError("second")]
        self.run_ids: list[Any] = []
        self.app = chain("x", "y", "z", x=self.node("x"), y=self.node("y"), z=self.node("z")).compile(
            checkpointer=saver
        )

    def node(self, name: str) -> Any:
        def called(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
            self.calls.append(name)
            assert runtime.execution_info is not None
            self.run_ids.append(runtime.execution_info.run_id)
            if name == "y" and self.trouble:
                raise self.trouble.pop(0)
            return {"a": [name]}

        return called


def failed(run: Runner, saver: Saver, thread: Thread) -> tuple[Broken, Api]:
    """A thread that failed in its second node."""
    broken = Broken(saver)
    with pytest.raises(ValueError, match="first"):
        run.invoke(broken.app, {"a": []}, thread("1"))
    return broken, Api(run, broken.app)


@pytest.mark.acceptance("S3-18")
def test_a_rewind_keeps_the_thread_and_says_in_its_history_who_why_and_what_had_failed(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    broken, api = failed(run, saver, thread)
    epoch = row_of(saver).epoch

    first = api("rewind", "1", reason="mended", operator="ann")
    assert row_of(saver).epoch > epoch
    with pytest.raises(ValueError, match="second"):
        api("resume", "1")
    second = api("rewind", "1", reason="mended at last", operator="bob")
    assert {"a": ["x", "y", "z"]} == api("resume", "1")

    assert ("1", "1") == (first.thread_id, second.thread_id)
    assert ["1"] == [info.thread_id for info in api("list")]
    assert first.execution_id != second.execution_id
    assert [None, None, first.execution_id, *[second.execution_id] * 2] == broken.run_ids
    told = [
        (one["execution_id"], one["reason"], one["operator"], one["error"], [task[3] for task in one["failed"]])
        for snapshot in run.history(broken.app, thread("1"))
        for one in snapshot.metadata.get("rewinds", ())
    ]
    assert [
        (first.execution_id, "mended", "ann", "ValueError: first", ["ValueError('first')"]),
        (second.execution_id, "mended at last", "bob", "ValueError: second", ["ValueError('second')"]),
    ] == told
    made_by = [snapshot.metadata.get("run_id") for snapshot in run.history(broken.app, thread("1"))]
    assert [second.execution_id, second.execution_id, None, None, None] == made_by


@pytest.mark.acceptance("S3-21")
def test_a_rewind_only_asks_and_asking_again_changes_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    broken, api = failed(run, saver, thread)
    broken.trouble.clear()

    rewound = api("rewind", "1", reason="mended", operator="ann")
    calls, seq, info = list(broken.calls), row_of(saver).seq, api("status", "1")
    again = api("rewind", "1", reason="impatience", operator="bob")

    assert ["x", "y"] == calls == broken.calls
    assert ("idle", True, "rewound by ann: mended") == (info.status, info.can_resume, info.reason)
    assert (False, True) == (rewound.repeated, again.repeated)
    assert (rewound.execution_id, "mended", "ann") == (again.execution_id, again.reason, again.operator)
    assert seq == row_of(saver).seq
    assert {"a": ["x", "y", "z"]} == run.invoke(broken.app, None, thread("1"))


@pytest.mark.acceptance("S3-21")
def test_a_caller_that_is_cancelled_once_the_rewind_was_accepted_does_not_undo_it(
    saver: Saver, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, api = failed(Runner(), saver, thread)
    broken.trouble.clear()
    cancelled = []

    async def cancelled_when_it_lands() -> None:
        append = saver.aappend  # type: ignore[attr-defined]  # ours has one
        asking = asyncio.create_task(broken.app.threads.arewind("1", reason="mended"))

        async def appended(records: Any) -> Any:
            receipt = await append(records)
            cancelled.append(asking.cancel())
            return receipt

        monkeypatch.setattr(saver, "aappend", appended)
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(cancelled_when_it_lands())
    monkeypatch.undo()

    assert [True] == cancelled
    assert "rewound: mended" == api("reason", "1")
    assert api("rewind", "1", reason="mended").repeated
    assert {"a": ["x", "y", "z"]} == api("resume", "1")


def refused(run: Runner, app: Any, saver: Saver) -> str:
    """Why a thread is not rewound; nothing is written."""
    row = row_of(saver)
    with pytest.raises(CannotRewindError) as error:
        Api(run, app)("rewind", "1", reason="mended")
    assert (row.seq, row.epoch, row.status) == (row_of(saver).seq, row_of(saver).epoch, row_of(saver).status)
    assert error.value.fix
    return error.value.reason


@pytest.mark.acceptance("S3-17")
@pytest.mark.parametrize("how", ["running", "interrupted", "finished", "stopped", "abandoned"])
def test_only_a_thread_that_failed_is_rewound(run: Runner, saver: Saver, thread: Thread, how: str) -> None:
    if how == "running":
        held = Held(Runner(), saver, thread("1"))
        assert how == refused(run, held.app, saver)
        held.end()
        return

    def stops(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.control is not None
        runtime.control.request_drain()
        return {"a": ["x"]}

    asks: Any = lambda state: {"a": [interrupt("?")]}  # noqa: E731
    first: Any = {"interrupted": asks, "stopped": stops}.get(how, lambda state: {"a": ["x"]})
    app = chain("x", "y", x=first).compile(checkpointer=saver)
    if how == "stopped":
        with pytest.raises(GraphDrained):
            run.invoke(app, {"a": []}, thread("1"), control=RunControl())
    else:
        run.invoke(app, {"a": []}, thread("1"))
    if how == "abandoned":
        take(saver, ttl=-1.0)

    assert how == refused(run, app, saver)


def test_a_thread_that_is_not_there_and_a_rewind_without_a_reason_are_refused(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    api = Api(run, chain("x").compile(checkpointer=saver))

    with pytest.raises(ThreadNotFoundError):
        api("rewind", "1", reason="mended")
    with pytest.raises(InvalidInputError, match="reason"):
        api("rewind", "1", reason=" ")


@pytest.mark.acceptance("S3-17")
def test_a_thread_that_went_on_while_it_was_looked_at_is_not_rewound(
    run: Runner, saver: Saver, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, api = failed(run, saver, thread)
    broken.trouble.clear()
    verb = "append" if run.name == "sync" else "aappend"
    append: Any = getattr(saver, verb)
    moved: list[int] = []

    def goes_on(records: Any) -> Any:
        monkeypatch.undo()
        broken.app.invoke(None, thread("1"))
        moved.append(row_of(saver).seq)
        return append(records)

    async def agoes_on(records: Any) -> Any:
        monkeypatch.undo()
        await broken.app.ainvoke(None, thread("1"))
        moved.append(0)
        return await append(records)

    monkeypatch.setattr(saver, verb, goes_on if run.name == "sync" else agoes_on)
    with pytest.raises(CannotRewindError) as error:
        api("rewind", "1", reason="mended")

    assert ("finished", 1) == (error.value.reason, len(moved))
    assert "idle" == row_of(saver).status
    assert ["x", "y", "y", "z"] == broken.calls
    assert not any("rewinds" in one.metadata for one in run.history(broken.app, thread("1")))


def test_retries_before_a_rewind_leave_the_whole_allowance_to_what_comes_after(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    """What was made once stays, and the attempts before are in the history."""
    trouble, made, attempts = [ConnectionError(str(n)) for n in range(3)], list[str](), list[int]()

    def make() -> str:
        made.append("made")
        return "name"

    def flaky(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.execution_info is not None
        attempts.append(runtime.execution_info.node_attempt)
        name = runtime.step("name", make)
        if trouble:
            raise trouble.pop(0)
        return {"a": [name]}

    async def aflaky(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        assert runtime.execution_info is not None
        attempts.append(runtime.execution_info.node_attempt)
        name = await runtime.astep("name", make)
        if trouble:
            raise trouble.pop(0)
        return {"a": [name]}

    retry = RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False)
    graph = StateGraph(State).add_node("y", flaky if run.name == "sync" else aflaky, retry_policy=retry)
    app = graph.add_edge(START, "y").compile(checkpointer=saver)
    api = Api(run, app)
    with pytest.raises(ConnectionError, match="1"):
        run.invoke(app, {"a": []}, thread("1"))

    rewound = api("rewind", "1", reason="the network is back")
    assert {"a": ["name"]} == api("resume", "1")

    assert [(2, "ConnectionError('1')")] == [(task.attempts, task.error) for task in rewound.failed]
    assert (4, ["made"]) == (len(attempts), made)


def test_siblings_that_finished_are_not_done_again(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    graph = StateGraph(State)
    for name, node in (("one", mark("one", calls)), ("two", failing_once("two", ValueError("broken"), calls))):
        graph.add_node(name, node).add_edge(START, name)
    app = graph.compile(checkpointer=saver)
    api = Api(run, app)
    with pytest.raises(ValueError, match="broken"):
        run.invoke(app, {"a": []}, {**thread("1"), "max_concurrency": 1})

    api("rewind", "1", reason="mended")

    assert {"a": ["one", "two"]} == api("resume", "1")
    assert ["one", "two", "two"] == calls


def test_of_many_who_rewind_at_once_one_does(run: Runner, saver: Saver, thread: Thread) -> None:
    broken, _ = failed(run, saver, thread)
    threads = broken.app.threads

    async def asked() -> list[Any]:
        return list(await asyncio.gather(*[threads.arewind("1", reason=str(number)) for number in range(8)]))

    if run.name == "sync":
        with ThreadPoolExecutor(8) as pool:
            rewound = list(pool.map(lambda number: threads.rewind("1", reason=str(number)), range(8)))
    else:
        rewound = asyncio.run(asked())

    assert [False, *[True] * 7] == sorted(one.repeated for one in rewound)
    assert 1 == len({one.execution_id for one in rewound}) == len({one.reason for one in rewound})
    (told,) = run.state(broken.app, thread("1")).metadata["rewinds"]
    assert rewound[0].reason == told["reason"]


@pytest.mark.acceptance("S3-19")
def test_a_graph_that_a_node_calls_is_rewound_with_it(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    inner = chain("one", "two", one=mark("one", calls), two=failing_once("two", ValueError("broken"), calls)).compile()
    done = chain("done", done=mark("done", calls)).compile()

    def node(state: State) -> Any:
        return {"a": done.invoke({"a": []})["a"] + inner.invoke({"a": []})["a"]}

    async def anode(state: State) -> Any:
        return {"a": (await done.ainvoke({"a": []}))["a"] + (await inner.ainvoke({"a": []}))["a"]}

    graph = StateGraph(State).add_node("calls", node if run.name == "sync" else anode).add_edge(START, "calls")
    app = graph.compile(checkpointer=saver)
    api = Api(run, app)
    with pytest.raises(ValueError, match="broken"):
        run.invoke(app, {"a": []}, thread("1"))

    rewound = api("rewind", "1", reason="mended")

    assert {"a": ["done", "one", "two"]} == api("resume", "1")
    assert ["done", "one", "two", "two"] == calls
    assert [("calls", ""), ("two", "call:1")] == [
        (task.node, task.ns.rpartition("|")[2]) for task in rewound.failed if task.node in ("calls", "two")
    ]


@pytest.mark.acceptance("S3-20")
def test_a_rewind_keeps_the_timers_and_retries_of_the_history(run: Runner, saver: Saver, thread: Thread) -> None:
    """A timer that was over before the failure in its own node, one that still runs beside it, and failed attempts."""
    noon = datetime(2026, 12, 1, 12, tzinfo=UTC)
    calls: list[str] = []
    trouble = [ConnectionError(str(number)) for number in range(3)]

    def flaky(state: State) -> dict[str, Any]:
        calls.append("flaky")
        sleep(60)
        calls.append("slept")
        if trouble:
            raise trouble.pop(0)
        return {"a": ["flaky"]}

    def patient(state: State) -> dict[str, Any]:
        sleep(3600)
        return {"a": ["patient"]}

    def first(state: State) -> dict[str, Any]:
        sleep(10)
        return {"a": ["first"]}

    retry = RetryPolicy(max_attempts=2, initial_interval=0.001, jitter=False)
    graph = StateGraph(State).add_node("first", first).add_node("flaky", flaky, retry_policy=retry)
    graph.add_node("patient", patient).add_edge(START, "first").add_edge("first", "flaky").add_edge("first", "patient")
    app = graph.compile(checkpointer=saver)
    app.clock = clock = FakeClock(noon.timestamp())
    api = Api(run, app)
    run.invoke(app, {"a": []}, thread("1"))
    clock.advance(10)
    assert "__interrupt__" in api("wake", "1")  # both wait
    with pytest.raises(CannotRewindError, match="waits for a time"):
        api("rewind", "1", reason="impatience")
    clock.advance(60)
    with pytest.raises(ConnectionError, match="1"):
        api("wake", "1")

    rewound = api("rewind", "1", reason="the network is back")
    waiting = api("resume", "1")["__interrupt__"]

    assert [("flaky", 2)] == [(task.node, task.attempts) for task in rewound.failed if "Connection" in task.error]
    assert [noon + timedelta(seconds=3610)] == [asked.value.due for asked in waiting]  # it has not moved
    assert "waiting" == api("status", "1").status
    assert 4 == calls.count("slept")  # two before, and the whole allowance again
    clock.advance(3600)
    assert ["1"] == list(api("due"))
    assert ["first", "flaky", "patient"] == api("wake", "1")["a"]
