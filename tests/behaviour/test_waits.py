"""Durable waits: timers and events, over drivers and savers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typing_extensions import TypedDict

from pregel.errors import EventMismatchError
from pregel.graph import START, StateGraph
from pregel.testing import FakeClock
from pregel.types import Command, interrupt
from pregel.waits import Wait, sleep, wait_for_event

from .conftest import Runner
from .marks import Saver, Thread
from .test_authority import has_authority
from .test_thread_api import Api

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


class State(TypedDict, total=False):
    log: list[Any]
    told: Any


@pytest.fixture(autouse=True)
def needs_waits(saver: Saver) -> None:
    if not has_authority(saver):
        pytest.skip("no waits are kept there")


def minute() -> str:
    sleep(60)
    return "slept"


class World:
    """A graph of one node with a clock of its own."""

    def __init__(self, run: Runner, saver: Any, node: Any) -> None:
        self.run, self.saver, self.node = run, saver, node
        self.calls = 0
        self.clock = FakeClock(NOON.timestamp())
        self.restart()

    def restart(self) -> None:
        """The same graph in a process that has just begun."""

        def called(state: State) -> State:
            self.calls += 1
            return {"told": self.node()}

        builder = StateGraph(State).add_node("wait", called).add_edge(START, "wait")
        self.app = builder.compile(checkpointer=self.saver)
        self.app.clock = self.clock
        self.api = Api(self.run, self.app)

    def start(self, thread: Thread, name: str = "1") -> Any:
        return self.run.invoke(self.app, {"log": []}, thread(name))


def test_a_timer_ends_when_it_is_due_and_the_node_runs_again_then(run: Runner, saver: Saver, thread: Thread) -> None:
    world = World(run, saver, minute)

    paused = world.start(thread)
    assert [Wait(due=NOON + timedelta(seconds=60))] == [asked.value for asked in paused["__interrupt__"]]
    assert ("waiting", True) == (world.api("status", "1").status, world.api("can_resume", "1"))
    assert [] == list(world.api("due"))
    world.clock.advance(60)
    assert ["1"] == list(world.api("due"))
    assert {"log": [], "told": "slept"} == world.api("wake", "1")
    assert (2, "idle", []) == (world.calls, world.api("status", "1").status, list(world.api("due")))


@pytest.mark.acceptance("S6-9")
def test_a_wait_is_in_the_state_of_its_run_and_a_restart_goes_on_with_the_same_time_at_no_cost(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    world = World(run, saver, minute)
    first = world.start(thread)["__interrupt__"][0]
    before = world.saver.load("1", []).thread.seq if run.name == "sync" else None

    world.clock.advance(40)
    world.restart()
    again = run.invoke(world.app, None, thread("1"))

    assert [first] == again["__interrupt__"]
    assert [first] == list(run.state(world.app, thread("1")).interrupts)
    assert NOON + timedelta(seconds=60) == first.value.due
    assert 1 == world.calls
    if before is not None:
        assert before == world.saver.load("1", []).thread.seq
    world.clock.advance(20)
    assert ["slept"] == [woken.output["told"] for woken in world.api("wake_due")]


@pytest.mark.acceptance("S2-5")
@pytest.mark.parametrize("ends", ["event", "timer"])
def test_a_wait_with_a_deadline_ends_with_what_comes_first_and_the_deadline_stays(
    run: Runner, saver: Saver, thread: Thread, ends: str
) -> None:
    def node() -> Any:
        found = wait_for_event("approved", timeout=100)
        return None if found is None else found.value

    world = World(run, saver, node)
    due = world.start(thread)["__interrupt__"][0].value.due
    world.clock.advance(99)
    world.restart()
    assert due == run.invoke(world.app, None, thread("1"))["__interrupt__"][0].value.due
    if ends == "event":
        assert world.api("send_event", "1", "approved", {"by": "ann"}).awaited
        assert ["1"] == list(world.api("due"))
    world.clock.advance(1)
    if ends == "timer":
        world.api("send_event", "1", "approved", "in the same moment")
        world.clock.advance(1)
        world.api("send_event", "1", "approved", "late")
    (woken,) = world.api("wake_due")
    assert {"event": {"by": "ann"}, "timer": "in the same moment"}[ends] == woken.output["told"]


def test_a_late_event_does_not_undo_a_timer(run: Runner, saver: Saver, thread: Thread) -> None:
    world = World(run, saver, lambda: wait_for_event("approved", timeout=100))
    world.start(thread)
    world.clock.advance(101)
    world.api("send_event", "1", "approved", "late")

    assert world.api("wake", "1")["told"] is None
    assert "idle" == world.api("status", "1").status


@pytest.mark.acceptance("S2-7")
def test_an_event_with_another_key_is_refused_and_takes_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    world = World(run, saver, lambda: wait_for_event("reviewed", key="review-7").value)
    world.start(thread)

    for key in ("review-8", None):
        with pytest.raises(EventMismatchError, match="'review-7'"):
            world.api("send_event", "1", "reviewed", "no", key=key, id="e1")
        assert [] == list(world.api("due"))
    assert "__interrupt__" in world.api("wake", "1")
    assert (False, True) == world.api("send_event", "1", "reviewed", "yes", key="review-7", id="e1")[1:]
    assert "yes" == world.api("wake", "1")["told"]


@pytest.mark.acceptance("S2-8")
def test_events_before_the_wait_are_kept_and_those_sent_again_dropped(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    def node() -> Any:
        sleep(10)
        return [wait_for_event("paid").value, wait_for_event("paid").value]

    world = World(run, saver, node)
    world.start(thread)

    sent = [world.api("send_event", "1", "paid", value, id=id) for value, id in (("a", "1"), ("b", "1"), ("c", "2"))]
    assert [(False, False), (True, False), (False, False)] == [one[1:] for one in sent]
    assert [] == list(world.api("due"))
    world.clock.advance(10)
    while due := list(world.api("due")):
        output = world.api("wake", due[0])
    assert ["a", "c"] == output["told"]
    assert world.api("send_event", "1", "paid", "d", id="2").repeated


def test_an_answer_and_a_wait_in_one_node_find_their_own(run: Runner, saver: Saver, thread: Thread) -> None:
    world = World(run, saver, lambda: [interrupt("name?"), wait_for_event("paid").value, interrupt("sure?")])
    world.start(thread)

    assert isinstance(run.invoke(world.app, Command(resume="ann"), thread("1"))["__interrupt__"][0].value, Wait)
    world.api("send_event", "1", "paid", 7)
    assert "sure?" == world.api("wake", "1")["__interrupt__"][0].value
    assert ["ann", 7, "yes"] == run.invoke(world.app, Command(resume="yes"), thread("1"))["told"]


def test_of_two_tasks_only_the_one_runs_whose_wait_is_over(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []

    def waiter(name: str) -> Any:
        def node(state: State) -> Any:
            calls.append(name)
            return {"told" if name == "a" else "log": [wait_for_event(name).value]}

        return node

    builder = StateGraph(State).add_node("a", waiter("a")).add_node("b", waiter("b"))
    app = builder.add_edge(START, "a").add_edge(START, "b").compile(checkpointer=saver)
    api = Api(run, app)
    run.invoke(app, {"log": []}, thread("1"))
    calls.clear()

    api("send_event", "1", "b", 2)
    left = api("wake", "1")
    assert (["b"], ["a"]) == (calls, [asked.value.name for asked in left["__interrupt__"]])
    assert [] == list(api("due"))
    api("send_event", "1", "a", 1)
    assert {"told": [1], "log": [2]} == api("wake", "1")
    assert ["b", "a"] == calls


def test_a_wait_inside_a_subgraph_ends_like_any_other(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []

    def inner(state: State) -> State:
        calls.append("inner")
        return {"told": wait_for_event("paid", key="7", timeout=5)}

    def other(state: State) -> State:
        return {"log": [wait_for_event("other").value]}

    below = StateGraph(State).add_node("inner", inner).add_node("other", other)
    below.add_edge(START, "inner").add_edge(START, "other")
    app = StateGraph(State).add_node("sub", below.compile()).add_edge(START, "sub").compile(checkpointer=saver)
    app.clock = clock = FakeClock(NOON.timestamp())
    api = Api(run, app)
    assert 2 == len(run.invoke(app, {"log": []}, thread("1"))["__interrupt__"])

    api("send_event", "1", "other", "o")
    (left,) = api("wake", "1")["__interrupt__"]
    assert (NOON + timedelta(seconds=5), ["inner"]) == (left.value.due, calls)
    clock.advance(5)
    assert {"log": ["o"], "told": None} == api("wake", "1")


def test_two_who_wake_at_once_take_an_event_once(run: Runner, saver: Saver, thread: Thread) -> None:
    world = World(run, saver, lambda: [wait_for_event("paid").value, wait_for_event("paid").value])
    world.start(thread)
    world.api("send_event", "1", "paid", 1)

    async def twice() -> None:
        await asyncio.gather(*(world.app.threads.awake_due() for _ in range(2)))

    if run.name == "async":
        asyncio.run(twice())
    else:
        world.api("wake_due")
        world.api("wake_due")
    assert [] == list(world.api("due"))
    assert isinstance(run.state(world.app, thread("1")).interrupts[0].value, Wait)
    world.api("send_event", "1", "paid", 2)
    assert [1, 2] == world.api("wake", "1")["told"]


def test_an_event_is_found_behind_a_hundred_that_are_for_nobody(run: Runner, saver: Saver, thread: Thread) -> None:
    """Also one that came in time, where the time is over by now."""

    def node() -> Any:
        found = wait_for_event("paid", timeout=60)
        return None if found is None else found.value

    world = World(run, saver, node)
    world.start(thread)
    for number in range(100):
        world.api("send_event", "1", "noise", number)
    world.api("send_event", "1", "paid", "in time")
    world.clock.advance(60)

    assert "in time" == world.api("wake", "1")["told"]


def test_a_hundred_events_are_taken_one_by_one_in_their_order(run: Runner, saver: Saver, thread: Thread) -> None:
    def node() -> Any:
        return [wait_for_event("said").value for _ in range(3)]

    world = World(run, saver, node)
    world.start(thread)
    for number in range(100):
        world.clock.advance(1)
        world.api("send_event", "1", "said", number)
    while list(world.api("due")):
        last = world.api("wake", "1")

    assert [0, 1, 2] == last["told"]
    store: Any = saver
    left = store.events("1") if run.name == "sync" else asyncio.run(store.aevents("1"))
    assert list(range(3, 100)) == [store.serde.loads_typed((row.type, row.blob)) for row in left]
