"""Controllers that carry revisions to a destination outside, which refuses older ones; and one that is alone."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from typing_extensions import TypedDict

from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.durable import Entities, Operation
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.testing import FakeClock
from pregel.testing.scripted import WatchedSaver
from pregel.waits import wait_for_event

from .conftest import Runner
from .marks import Saver, Thread
from .test_authority import has_authority
from .test_entities import Api
from .test_starts import start, work


class State(TypedDict, total=False):
    got: list[Any]
    revision: int
    applied: bool


@pytest.fixture(autouse=True)
def needs_events(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("no waits are kept there")


class Destination:
    """A document outside, which takes a revision only when it is newer: the look and the write are one statement."""

    def __init__(self) -> None:
        self.database = sqlite3.connect(":memory:", check_same_thread=False)
        self.database.execute("CREATE TABLE document (id INTEGER PRIMARY KEY, revision INTEGER)")
        self.database.execute("INSERT INTO document VALUES (1, 0)")
        self.attempts: list[int] = []
        self.applied: list[int] = []
        self.lock = threading.Lock()  # on the connection

    def put(self, revision: int) -> bool:
        """Whether it was applied."""
        fenced = "UPDATE document SET revision = :new WHERE id = 1 AND revision < :new"
        with self.lock:
            self.attempts.append(revision)
            done = self.database.execute(fenced, {"new": revision}).rowcount == 1
            self.applied += [revision] * done
        return done

    @property
    def revision(self) -> int:
        with self.lock:
            return int(self.database.execute("SELECT revision FROM document").fetchone()[0])

    def close(self) -> None:
        self.database.close()


@pytest.fixture
def destination() -> Any:
    made = Destination()
    yield made
    made.close()


# -- webhooks that come in any order -----------------------------------------------------------------------------------


@pytest.mark.acceptance("S2-26")
def test_webhooks_out_of_order_leave_the_newest_revision(
    run: Runner, saver: Saver, thread: Thread, destination: Destination
) -> None:
    def carry(state: State, runtime: Runtime[Any]) -> State:
        hook = wait_for_event("changed")
        applied = runtime.effect(f"put {hook.id}", lambda offered: destination.put(hook.value), idempotent=True)
        return {"got": [*state["got"], (hook.value, applied)]}

    graph = StateGraph(State).add_node("carry", carry).add_edge(START, "carry").add_edge("carry", "carry")
    app = graph.compile(checkpointer=saver, name="documents")
    api = Api(run, app.threads)
    run.invoke(app, {"got": []}, thread("1"))

    for number, revision in enumerate((12, 11, 12, 13)):
        api("send_event", "1", "changed", revision, id=f"hook-{number}")
    assert api("send_event", "1", "changed", 12, id="hook-0").repeated  # sent again by who does not know better
    while work(run, app):
        pass

    assert [(12, True), (11, False), (12, False), (13, True)] == run.state(app, thread("1")).values["got"]
    assert (13, [12, 13]) == (destination.revision, destination.applied)


def both(run: Runner, app: Any, calls: list[tuple[Any, Any]]) -> list[Any]:
    """The results of runs that go on at once."""
    if run.name == "sync":
        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(lambda call: app.invoke(*call), calls))

    async def awaited() -> list[Any]:
        return list(await asyncio.gather(*(app.ainvoke(*call) for call in calls)))

    return asyncio.run(awaited())


@pytest.mark.acceptance("S2-26")
def test_a_slow_write_that_comes_after_a_newer_one_is_refused(
    run: Runner, saver: Saver, thread: Thread, destination: Destination
) -> None:
    """12 is on its way when 13 is written by another run; nothing but the destination can tell."""
    on_its_way, written, awaited_way, awaited_write = (
        threading.Event(),
        threading.Event(),
        asyncio.Event(),
        asyncio.Event(),
    )

    def put(state: State) -> State:
        if state["revision"] == 12:
            on_its_way.set()
            assert written.wait(60)
        else:
            assert on_its_way.wait(60)
        applied = destination.put(state["revision"])
        written.set()
        return {"applied": applied}

    async def aput(state: State) -> State:
        if state["revision"] == 12:
            awaited_way.set()
            await awaited_write.wait()
        else:
            await awaited_way.wait()
        applied = destination.put(state["revision"])
        awaited_write.set()
        return {"applied": applied}

    node: Any = put if run.name == "sync" else aput
    app = StateGraph(State).add_node("put", node).add_edge(START, "put").compile(checkpointer=saver)

    slow, fast = both(run, app, [({"revision": 12}, thread("slow")), ({"revision": 13}, thread("fast"))])

    assert (False, True) == (slow["applied"], fast["applied"])
    assert ([13, 12], [13], 13) == (destination.attempts, destination.applied, destination.revision)


@pytest.mark.acceptance("S2-28")
def test_two_controllers_both_attempt_a_revision_and_the_fence_makes_that_harmless(
    run: Runner, saver: Saver, thread: Thread, destination: Destination
) -> None:
    """The entity puts observations in a line. What its readers do outside is in no line."""

    def handle(last: dict[str, int], operation: Operation) -> dict[str, int]:
        return {**last, operation.name: max(last.get(operation.name, 0), operation.value)}

    entities = Entities[dict[str, int]](handle, name="documents", checkpointer=saver, initial={})
    api = Api(run, entities)
    for revision in (12, 11, 12, 13):
        api("signal", "a", "observed", revision)
    api.work()
    met, meeting = threading.Barrier(2, timeout=60), asyncio.Barrier(2)

    def carry(state: State) -> State:
        revision = entities.state("a")["observed"]
        met.wait()  # both have read it, and neither has written
        applied = destination.put(revision)
        entities.signal("a", "confirmed", revision, id=f"confirmed-{revision}")
        return {"applied": applied}

    async def acarry(state: State) -> State:
        revision = (await entities.astate("a"))["observed"]
        await meeting.wait()
        applied = destination.put(revision)
        await entities.asignal("a", "confirmed", revision, id=f"confirmed-{revision}")
        return {"applied": applied}

    node: Any = carry if run.name == "sync" else acarry
    controllers = StateGraph(State).add_node("carry", node).add_edge(START, "carry").compile(checkpointer=saver)

    done = both(run, controllers, [({}, thread("left")), ({}, thread("right"))])
    api.work()

    assert [False, True] == sorted(one["applied"] for one in done)
    assert ([13, 13], [13], 13) == (destination.attempts, destination.applied, destination.revision)
    assert {"observed": 13, "confirmed": 13} == api("state", "a")


# -- a controller that is alone ----------------------------------------------------------------------------------------


class Alone:
    """A controller that reads what it is told, and ends when it was told nothing for a minute."""

    def __init__(self, run: Runner, saver: Any) -> None:
        self.run = run
        self.late: list[Any] = []  # what it is told between its last read and its end

        def read(state: State) -> State:
            told = wait_for_event("changed", timeout=60)
            return {"got": [*state.get("got", []), None if told is None else told.value]}

        def end(state: State) -> State:
            while self.late:
                self.app.threads.send_event("one", "changed", self.late.pop())
            return {}

        async def aend(state: State) -> State:
            while self.late:
                await self.app.threads.asend_event("one", "changed", self.late.pop())
            return {}

        builder = StateGraph(State).add_node("read", read).add_node("end", end if run.name == "sync" else aend)
        builder.add_edge(START, "read")
        builder.add_conditional_edges("read", lambda state: "end" if state["got"][-1] is None else "read")
        self.app = builder.compile(checkpointer=saver, name="alone")
        self.clock = self.app.clock = FakeClock()
        self.threads = Api(run, self.app.threads)

    def work(self, **options: Any) -> None:
        """Until nothing is left to do; then a minute passes, and the same again."""
        for _ in range(2):
            while work(self.run, self.app, **options):
                pass
            self.clock.advance(60)
        while work(self.run, self.app, **options):
            pass

    @property
    def got(self) -> list[Any]:
        values = self.run.state(self.app, {"configurable": {"thread_id": "one"}}).values
        return [one for one in values["got"] if one is not None]


@pytest.mark.acceptance("S2-29")
def test_what_came_between_the_last_read_and_the_end_is_read_by_one_more_run(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    alone = Alone(run, saver)
    start(run, alone.app, {}, key="one")
    alone.threads("send_event", "one", "changed", "early")
    alone.late = ["late"]
    alone.work()

    assert (["early"], ["one"]) == (alone.got, list(alone.threads("unread", "changed")))
    assert [] == list(alone.threads("unread", "other"))

    alone.work(unread={"changed": {}})

    assert (["early", "late"], []) == (alone.got, list(alone.threads("unread", "changed")))
    assert start(run, alone.app, {}, key="one").existing  # who starts it learns which it is, also now
    alone.work(unread={"changed": {}})
    assert ["early", "late"] == alone.got


@pytest.mark.acceptance("S2-29")
def test_of_many_who_start_it_once_more_one_does(run: Runner, saver: Saver) -> None:
    alone = Alone(run, saver)
    start(run, alone.app, {}, key="one")
    alone.late = ["late"]
    alone.work()

    started = [list(alone.threads("start_unread", "changed", {})) for _ in range(2)]
    assert [["one"], []] == started
    assert "pending" == alone.threads("status", "one").status
    alone.work()
    assert ([], ["late"]) == (list(alone.threads("start_unread", "changed", {})), alone.got)


def test_a_thread_that_failed_is_not_started_once_more(run: Runner, saver: Saver) -> None:
    alone = Alone(run, saver)

    def broken(state: State) -> State:
        raise ValueError("broken")

    app = StateGraph(State).add_node("read", broken).add_edge(START, "read").compile(checkpointer=saver, name="alone")
    start(run, app, {}, key="one")
    work(run, app)
    alone.threads("send_event", "one", "changed", 1)

    assert [] == list(alone.threads("unread", "changed"))
    assert 0 == work(run, app, unread={"changed": {}})


class Told:
    """A saver that tells the controller something before or after one of its appends."""

    def __init__(self, saver: Any, number: int, *, after: bool) -> None:
        self.left, self.after = number, after
        self.saver = WatchedSaver(saver, self.watch)
        self.send: Any = None

    def watch(self, append: Append, send: Any) -> Receipt:
        is_it = self.left == 0
        self.left -= 1
        if is_it and not self.after:
            self.send()
        receipt: Receipt = send(append)
        if is_it and self.after:
            self.send()
        return receipt


@pytest.mark.acceptance("S2-29")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_signal_is_read_once_whenever_it_comes(run: Runner, saver: Saver, after: bool) -> None:
    """Around each append of the controller, from the one that admits it to its last."""
    if isinstance(saver, AsyncPostgresSaver):
        pytest.skip("nothing comes between awaited appends")
    number, more = 0, True
    while more:
        told = Told(saver, number, after=after)
        alone = Alone(run, told.saver)
        sent: list[Any] = []

        def send(alone: Alone = alone, sent: list[Any] = sent) -> None:
            sent.append(alone.app.threads.send_event("one", "changed", "told", id="the signal"))

        told.send = send
        if number or after:  # before the first append there is no thread to tell
            start(run, alone.app, {}, key="one")
            alone.work(unread={"changed": {}})
            more = bool(sent)
            assert (["told"] if sent else []) == alone.got, number
            alone.threads("delete", "one")
        number += 1

    assert number > 6
