"""What becomes of the waits of a thread that is given a new input, updated, forked, copied, pruned or deleted."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.checkpoint.first_tier import FirstTier
from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import (
    InvalidInputError,
    NoCheckpointerError,
    NotBuiltError,
    ThreadNotFoundError,
    UnknownInterruptError,
)
from pregel.graph import START, StateGraph
from pregel.types import Command
from pregel.waits import Wait, sleep, wait_for_event

from .conftest import Runner
from .marks import Saver, Thread
from .savers.third_party import FiveVerbs
from .test_thread_api import Api
from .test_waits import NOON, State, World, needs_waits  # noqa: F401  # a fixture of this module too


def paid() -> Any:
    found = wait_for_event("paid", timeout=60)
    return None if found is None else found.value


def waiting(run: Runner, saver: Saver, thread: Thread) -> World:
    world = World(run, saver, paid)
    world.start(thread)
    return world


def test_a_new_input_gives_up_the_wait_and_begins_another(run: Runner, saver: Saver, thread: Thread) -> None:
    world = waiting(run, saver, thread)
    world.clock.advance(50)

    world.start(thread)

    world.clock.advance(10)
    assert [] == list(world.api("due"))
    world.clock.advance(50)
    assert ["1"] == list(world.api("due"))


def test_an_update_ends_the_step_and_its_waits(run: Runner, saver: Saver, thread: Thread) -> None:
    world = waiting(run, saver, thread)

    run.update(world.app, thread("1"), {"told": "by hand"}, as_node="wait")

    world.clock.advance(100)
    assert ([], ()) == (list(world.api("due")), run.state(world.app, thread("1")).next)
    assert not world.api("send_event", "1", "paid", 1).awaited


@pytest.mark.parametrize("names", [("orders", "refunds"), ("refunds", "orders")])
def test_a_limit_counts_the_threads_of_this_graph_only(
    run: Runner, saver: Saver, thread: Thread, names: tuple[str, str]
) -> None:
    """Else one whose process is not there would keep the other's asleep for ever."""

    def node(state: State) -> State:
        return {"told": paid()}

    apis = []
    for name in names:
        builder = StateGraph(State).add_node("wait", node).add_edge(START, "wait")
        app = builder.compile(checkpointer=saver, name=name)
        run.invoke(app, {"log": []}, thread(name))
        apis.append(Api(run, app))
    for name in names:
        apis[0]("send_event", name, "paid", 1)

    assert [[name] for name in names] == [list(api("due", limit=1)) for api in apis]
    assert [[name] for name in names] == [[one.thread_id for one in api("wake_due", limit=1)] for api in apis]
    for name in names:
        apis[0]("send_event", name, "changed", 1)
    assert [[name] for name in names] == [list(api("unread", "changed", limit=1)) for api in apis]


def test_a_fork_waits_for_itself(run: Runner, saver: Saver, thread: Thread) -> None:
    world = waiting(run, saver, thread)
    first = run.state(world.app, thread("1"))
    world.clock.advance(30)

    (asked,) = run.invoke(world.app, None, first.config)["__interrupt__"]

    assert first.interrupts[0].id != asked.id
    assert NOON.timestamp() + 90 == asked.value.due_at
    world.clock.advance(30)
    assert [] == list(world.api("due"))
    world.clock.advance(30)
    assert ["1"] == list(world.api("due"))


def test_a_copy_waits_and_takes_no_events_and_nobody_wakes_it(run: Runner, saver: Saver, thread: Thread) -> None:
    world = waiting(run, saver, thread)
    world.api("send_event", "1", "paid", 1, id="e1")

    world.api("copy", "1", "2")

    assert "waiting" == world.api("status", "2").status
    assert isinstance(world.api("wake", "2")["__interrupt__"][0].value, Wait)
    world.clock.advance(60)
    assert ["1"] == list(world.api("due"))
    assert world.api("wake", "2")["told"] is None
    assert 1 == world.api("wake", "1")["told"]


def test_deleting_a_thread_deletes_its_waits_and_events(run: Runner, saver: Saver, thread: Thread) -> None:
    world = waiting(run, saver, thread)
    world.api("send_event", "1", "paid", 1, id="e1")

    world.api("delete", "1")

    assert [] == list(world.api("due"))
    with pytest.raises(ThreadNotFoundError):
        world.api("send_event", "1", "paid", 1, id="e1")
    world.start(thread)
    assert not world.api("send_event", "1", "paid", 2, id="e1").repeated


def test_pruning_a_thread_leaves_its_waits_and_events(run: Runner, saver: Saver, thread: Thread) -> None:
    world = waiting(run, saver, thread)
    world.api("send_event", "1", "paid", 1, id="e1")

    world.api("prune", ["1"])

    assert world.api("send_event", "1", "paid", 2, id="e1").repeated
    assert 1 == world.api("wake", "1")["told"]
    world.api("prune", ["1"])
    assert world.api("send_event", "1", "paid", 2, id="e1").repeated


def test_nobody_answers_a_wait(run: Runner, saver: Saver, thread: Thread) -> None:
    world = waiting(run, saver, thread)
    (asked,) = run.state(world.app, thread("1")).interrupts

    for answer in ("yes", {asked.id: "yes"}):
        with pytest.raises(UnknownInterruptError):
            run.invoke(world.app, Command(resume=answer), thread("1"))
    assert ("waiting", 1) == (world.api("status", "1").status, world.calls)


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_a_wait_is_stored_in_every_durability(run: Runner, saver: Saver, thread: Thread, durability: str) -> None:
    world = World(run, saver, paid)
    run.invoke(world.app, {"log": []}, thread("1"), durability=durability)
    world.api("send_event", "1", "paid", {"a": 1})

    assert {"log": [], "told": {"a": 1}} == world.api("wake", "1", durability=durability)
    assert world.api("send_event", "1", "paid", 1).awaited is False


def test_a_stream_shows_what_is_waited_for(run: Runner, saver: Saver, thread: Thread) -> None:
    world = World(run, saver, paid)

    shown = run.stream(world.app, {"log": []}, thread("1"), stream_mode="updates")
    again = run.stream(world.app, None, thread("1"), stream_mode="updates")

    assert "paid" == shown[-1]["__interrupt__"][0].value.name
    assert shown == again
    (task,) = run.state(world.app, thread("1")).tasks
    assert "paid" == task.interrupts[0].value.name


def test_an_error_of_a_woken_thread_is_told_and_the_others_go_on(run: Runner, saver: Saver, thread: Thread) -> None:
    def node() -> Any:
        sleep(1)
        raise ValueError("broken")

    world = World(run, saver, node)
    world.start(thread, "1")
    world.start(thread, "2")
    world.clock.advance(1)

    assert ["broken"] * 2 == [str(woken.error) for woken in world.api("wake_due")]
    assert ("failed", []) == (world.api("status", "2").status, list(world.api("due")))
    assert [] == list(world.api("wake_due", limit=1))


@pytest.mark.parametrize("what", [lambda: sleep(1), paid])
def test_without_a_saver_that_keeps_waits_it_is_a_named_error(what: Any) -> None:
    def node(state: State) -> State:
        what()
        return {}

    graph = StateGraph(State).add_node("n", node).add_edge(START, "n")
    with pytest.raises(NoCheckpointerError, match="no checkpointer could keep what it waits for"):
        graph.compile().invoke({})
    third_party = FiveVerbs()
    with pytest.warns(UserWarning, match="no guarded append"):
        FirstTier(third_party, {})
    app = graph.compile(checkpointer=third_party)
    with pytest.raises(NotBuiltError, match="keeps no waits"):
        app.invoke({}, {"configurable": {"thread_id": "1"}})
    with pytest.raises(NotBuiltError, match="keeps no waits"):
        app.threads.send_event("1", "paid")


@pytest.mark.parametrize(
    "what",
    [
        lambda: sleep(-1),
        lambda: sleep(float("nan")),
        lambda: sleep(1e18),
        lambda: wait_for_event(""),
        lambda: wait_for_event("a", timeout=-1),
        lambda: wait_for_event("a", timeout=1, deadline=NOON),  # type: ignore[call-overload]
        lambda: wait_for_event("a", deadline=NOON.replace(tzinfo=None)),
    ],
)
def test_waits_that_cannot_be_are_refused(what: Any) -> None:
    def node(state: State) -> State:
        what()
        return {}

    app = StateGraph(State).add_node("n", node).add_edge(START, "n").compile(checkpointer=InMemorySaver())
    with pytest.raises(InvalidInputError):
        app.invoke({}, {"configurable": {"thread_id": "1"}})
