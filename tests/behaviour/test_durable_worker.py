"""`pregel.durable.Worker`: takes up what can go on, once, and leaves alone what waits for a person."""

from __future__ import annotations

import asyncio
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import ThreadRow
from pregel.durable import Worker
from pregel.errors import GraphDrained, InvalidInputError, StoreError
from pregel.runtime import RunControl
from pregel.testing import FakeClock
from pregel.types import interrupt
from pregel.waits import wait_for_event

from .conftest import Runner
from .marks import Saver, State, Thread, chain, failing_once, mark
from .test_authority import has_authority, row_of, take
from .test_starts import INPUT, start, work
from .test_thread_api import Api


@pytest.fixture(autouse=True)
def needs_a_status(request: pytest.FixtureRequest) -> None:
    if "saver" in request.fixturenames and not has_authority(request.getfixturevalue("saver")):
        pytest.skip("no status is kept there")


def asks(state: State) -> dict[str, Any]:
    return {"a": [interrupt("go on?")]}


def test_an_abandoned_run_is_taken_up(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    app = chain("x", "y", y=mark("y", calls)).compile(checkpointer=saver, name="orders", interrupt_before=["y"])
    run.invoke(app, INPUT, thread("1"))
    holder = take(saver, ttl=-1.0)  # a run that was not heard of for its lease
    holder.send(holder.blank())

    assert "abandoned" == Api(run, app)("status", "1").status
    assert 1 == work(run, _without_breakpoints(app))
    assert (["y"], "idle") == (calls, Api(run, app)("status", "1").status)


def _without_breakpoints(app: Any) -> Any:
    return app.copy({"interrupt_before_nodes": ()})


def test_what_waits_for_a_person_is_left_alone(run: Runner, saver: Saver, thread: Thread) -> None:
    control = RunControl()

    def drains(state: State) -> dict[str, Any]:
        control.request_drain("enough")
        return {}

    asking = chain("ask", ask=asks).compile(checkpointer=saver, name="ask")
    failing = chain("fail", fail=failing_once("fail", ValueError("broken"))).compile(checkpointer=saver, name="fail")
    drained = chain("x", "y", x=drains).compile(checkpointer=saver, name="drain")
    done = chain("x").compile(checkpointer=saver, name="done")
    run.invoke(asking, INPUT, thread("1"))
    with pytest.raises(ValueError, match="broken"):
        run.invoke(failing, INPUT, thread("2"))
    with pytest.raises(GraphDrained):
        run.invoke(drained, INPUT, thread("3"), control=control)
    run.invoke(done, INPUT, thread("4"))
    before = [row_of(saver, name).seq for name in "1234"]

    assert 0 == work(run, asking, failing, drained, done)
    assert before == [row_of(saver, name).seq for name in "1234"]


def test_what_waits_is_taken_up_when_its_time_or_its_event_has_come(run: Runner, saver: Saver, thread: Thread) -> None:
    def node(state: State) -> dict[str, Any]:
        found = wait_for_event("paid", timeout=60)
        return {"a": ["late" if found is None else found.value]}

    app = chain("wait", wait=node).compile(checkpointer=saver, name="orders")
    app.clock = FakeClock()
    for name in "12":
        run.invoke(app, INPUT, thread(name))
    assert 0 == work(run, app)

    Api(run, app)("send_event", "1", "paid", "in time")
    assert (1, 0) == (work(run, app), work(run, app))
    app.clock.advance(60)
    assert (1, 0) == (work(run, app), work(run, app))
    assert ["in time", "late"] == [run.state(app, thread(name)).values["a"][-1] for name in "12"]


def test_threads_of_other_graphs_are_left_alone(run: Runner, saver: Saver) -> None:
    one, other = (chain("x").compile(checkpointer=saver, name=name) for name in ("one", "other"))
    start(run, one, INPUT, key="1")

    assert (0, 1) == (work(run, other), work(run, other, one))


def test_a_run_that_fails_does_not_stop_the_worker(run: Runner, saver: Saver, caplog: pytest.LogCaptureFixture) -> None:
    app = chain("x", x=failing_once("x", ValueError("broken"))).compile(checkpointer=saver, name="orders")
    api = Api(run, app)
    for key in "12":
        start(run, app, INPUT, key=key)
    with caplog.at_level(logging.WARNING, "pregel.durable.worker"):
        assert 2 == work(run, app)

    assert ("failed", "idle") == (api("status", "1").status, api("status", "2").status)  # the oldest comes first
    assert ["thread '1' failed: ValueError: broken"] == [record.getMessage() for record in caplog.records]


def test_a_node_that_exits_does_not_stop_the_worker(run: Runner, saver: Saver) -> None:
    """`sys.exit` of a library, say: the run has failed, and is neither lost nor taken up for ever."""

    def exits(state: State) -> dict[str, Any]:
        if state["a"] == ["exit"]:
            raise SystemExit(3)
        return {}

    async def aexits(state: State) -> dict[str, Any]:
        return exits(state)

    for node in [exits] if run.name == "sync" else [exits, aexits]:
        app = chain("x", x=node).compile(checkpointer=saver, name=node.__name__)
        api = Api(run, app)
        bad, good = f"bad {node.__name__}", f"good {node.__name__}"
        start(run, app, {"a": ["exit"]}, key=bad)
        start(run, app, INPUT, key=good)

        assert (2, 0) == (work(run, app), work(run, app))
        assert ("failed", "idle") == (api("status", bad).status, api("status", good).status)
        assert "raised SystemExit(3)" in api("status", bad).reason


class Overtaken(InMemorySaver):
    """A store in which another worker comes in between this one's look and its claim."""

    between: Any = None

    def pending(self, *place: Any) -> list[ThreadRow]:
        found = super().pending(*place)
        if found and self.between is not None:
            between, self.between = self.between, None
            between()
        return found


def test_a_thread_that_another_worker_has_taken_meanwhile_is_not_run_again(run: Runner) -> None:
    saver, calls = Overtaken(), list[str]()

    def ask(state: State) -> dict[str, Any]:
        calls.append("ask")
        return asks(state)

    app = chain("ask", ask=ask).compile(checkpointer=saver, name="orders")
    start(run, app, INPUT, key="1")
    saver.between = Worker(app).run_once

    assert (0, ["ask"]) == (work(run, app), calls)
    assert "interrupted" == app.threads.status("1").status


class Counted(InMemorySaver):
    """A store that counts the rows of threads that it has given."""

    rows = 0

    def threads(self, **wanted: Any) -> list[ThreadRow]:
        return self._counted(super().threads(**wanted))

    def pending(self, *place: Any) -> list[ThreadRow]:
        return self._counted(super().pending(*place))

    def _counted(self, found: list[ThreadRow]) -> list[ThreadRow]:
        self.rows += len(found)
        return found


def test_a_look_reads_no_more_of_what_was_started_than_there_is_room_for(run: Runner) -> None:
    saver, calls = Counted(), list[int]()

    def node(state: State) -> dict[str, Any]:
        calls.append(saver.rows)
        if len(calls) == 100:
            worker.stop()
        return {}

    app = chain("x", x=node).compile(checkpointer=saver, name="orders")
    for number in range(100):
        start(run, app, INPUT, key=str(number))
    worker = Worker(app, concurrency=1, poll_interval=3600)

    worker.run() if run.name == "sync" else asyncio.run(worker.arun())

    assert max(calls) <= 4 * 100


def test_what_is_for_other_workers_hides_nothing(run: Runner, saver: Saver) -> None:
    strange = chain("x").compile(checkpointer=saver, name="strange")
    app = chain("x").compile(checkpointer=saver, name="orders")
    for number in range(120):
        start(run, strange, INPUT, key=f"strange-{number}")
    start(run, app, INPUT, key="1")

    assert 1 == work(run, app)


def test_many_workers_run_each_thing_once(run: Runner, saver: Saver) -> None:
    calls: list[str] = []

    def node(state: State) -> dict[str, Any]:
        calls.append(state["a"][0])
        return {"a": ["done"]}

    app = chain("x", x=node).compile(checkpointer=saver, name="orders")
    names = [str(n) for n in range(12)]
    for name in names:
        start(run, app, {"a": [name]}, key=name)
    if run.name == "sync":
        with ThreadPoolExecutor(4) as pool:
            taken = sum(pool.map(lambda _: Worker(app).run_once(), range(4)))
    else:

        async def together() -> int:
            return sum(await asyncio.gather(*[Worker(app).arun_once() for _ in range(4)]))

        taken = asyncio.run(together())

    assert (12, sorted(names)) == (taken, sorted(calls))


class Running:
    """A worker that runs until it is stopped, with an hour between two looks."""

    def __init__(self, run: Runner, app: Any, **options: Any) -> None:
        self.worker = Worker(app, poll_interval=3600.0, **options)
        target = self.worker.run if run.name == "sync" else lambda: asyncio.run(self.worker.arun())
        self.thread = threading.Thread(target=target)

    def __enter__(self) -> Worker:
        self.thread.start()
        return self.worker

    def __exit__(self, *exc: object) -> None:
        self.worker.stop()
        self.thread.join()


@pytest.fixture(params=["memory", "sqlite"])
def shared(request: pytest.FixtureRequest, tmp_path: Any) -> Any:
    """A saver for a worker on a thread, and for the test beside it."""
    from pregel.checkpoint.sqlite import SqliteSaver

    if request.param == "memory":
        yield InMemorySaver()
        return
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db"), synchronous="NORMAL") as saver:
        yield saver


def test_a_start_of_the_same_process_wakes_a_worker_that_pauses(run: Runner, shared: Saver) -> None:
    ended = threading.Semaphore(0)

    def node(state: State) -> dict[str, Any]:
        ended.release()
        return {}

    app = chain("x", x=node).compile(checkpointer=shared, name="orders")
    with Running(run, app, concurrency=1):
        for n in range(12):  # its pauses have grown beyond any test after these
            app.start(INPUT, key=str(n))
            assert ended.acquire(timeout=60)

    assert {"idle"} == {app.threads.status(str(n)).status for n in range(12)}


def test_a_worker_that_is_stopped_leaves_its_run_to_others(run: Runner, shared: Saver) -> None:
    begun, go, calls = threading.Event(), threading.Event(), list[str]()

    def x(state: State) -> dict[str, Any]:
        calls.append("x")
        begun.set()
        go.wait(60)
        return {"a": ["x"]}

    app = chain("x", "y", x=x, y=mark("y", calls)).compile(checkpointer=shared, name="orders")
    with Running(run, app) as worker:
        app.start(INPUT, key="1")
        assert begun.wait(60)
        worker.stop("SIGTERM")
        go.set()
    info = app.threads.status("1")

    assert ("pending", "SIGTERM", ["x"]) == (info.status, info.reason, calls)
    assert (1, ["x", "y"]) == (work(run, app), calls)
    assert ["in", "x", "y"] == app.get_state({"configurable": {"thread_id": "1"}}).values["a"]


def test_a_cancelled_worker_ends_when_its_runs_have_stopped() -> None:
    calls: list[str] = []

    async def main() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def x(state: State) -> dict[str, Any]:
            begun.set()
            await go.wait()
            return {"a": ["x"]}

        app = chain("x", "y", x=x, y=mark("y", calls)).compile(checkpointer=InMemorySaver(), name="orders")
        await app.astart(INPUT, key="1")
        working = asyncio.create_task(Worker(app).arun())
        await begun.wait()
        working.cancel()
        asyncio.get_running_loop().call_soon(go.set)
        with pytest.raises(asyncio.CancelledError):
            await working
        assert ("pending", []) == ((await app.threads.astatus("1")).status, calls)
        assert (1, ["y"]) == (await Worker(app).arun_once(), calls)

    asyncio.run(main())


class Away(InMemorySaver):
    """A store that is away for the first looks."""

    looks = 3

    def threads(self, **wanted: Any) -> list[ThreadRow]:
        if self.looks:
            self.looks -= 1
            raise StoreError("the server is away", fix="Wait.")
        return super().threads(**wanted)


def test_a_worker_outlives_a_store_that_is_away(run: Runner) -> None:
    ended = threading.Event()

    def node(state: State) -> dict[str, Any]:
        ended.set()
        return {}

    app = chain("x", x=node).compile(checkpointer=Away(), name="orders")
    app.start(INPUT, key="1")
    with Running(run, app):
        assert ended.wait(60)


def test_threads_that_cannot_be_read_keep_no_other_waiting(run: Runner, tmp_path: Any) -> None:
    from pregel.checkpoint.serde.encrypted import EncryptedSerializer
    from pregel.checkpoint.sqlite import SqliteSaver

    ended = threading.Event()

    def node(state: State) -> dict[str, Any]:
        ended.set()
        return {}

    with ExitStack() as savers:
        old, new = (
            chain("x", x=node).compile(
                checkpointer=savers.enter_context(
                    SqliteSaver.from_conn_string(
                        str(tmp_path / "threads.db"), serde=EncryptedSerializer.from_pycryptodome_aes(key=key * 16)
                    )
                ),
                name="orders",
            )
            for key in (b"1", b"2")
        )
        for key in "123":
            old.start(INPUT, key=key)
        new.start(INPUT, key="4")
        with Running(run, new, concurrency=1):
            assert ended.wait(20)

        assert {"pending"} == {old.threads.status(key).status for key in "123"}


def test_a_worker_that_could_mix_threads_up_is_refused() -> None:
    saver = InMemorySaver()
    one = chain("x").compile(checkpointer=saver, name="one")
    for graphs in (
        [],
        [one, chain("y").compile(checkpointer=saver, name="one")],
        [one, chain("y").compile(checkpointer=InMemorySaver(), name="two")],
        chain("x").compile(checkpointer=saver),
    ):
        with pytest.raises(InvalidInputError):
            Worker(graphs)
    wrong: list[dict[str, Any]] = [{"concurrency": 0}, {"poll_interval": 0}]
    for options in wrong:
        with pytest.raises(InvalidInputError):
            Worker(one, **options)
