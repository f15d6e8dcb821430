"""`journal_stream` and `follow`: what a run shows can be had from its thread, by anybody, from any offset on."""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.config import get_stream_writer
from pregel.errors import (
    InvalidInputError,
    NoCheckpointerError,
    NotBuiltError,
    SerializationError,
    ThreadNotFoundError,
)
from pregel.graph import START, StateGraph
from pregel.types import Command, FollowedChunk, RetryPolicy, interrupt

from .conftest import Runner
from .marks import Node, Saver
from .marks import Thread as Config
from .savers.third_party import FiveVerbs

MODES = ["values", "updates", "custom", "tasks"]
Told = tuple[str, tuple[str, ...], Any]


class State(TypedDict, total=False):
    a: Annotated[list[str], operator.add]


def journal_of(saver: Saver) -> Saver:
    """The saver, if it keeps chunks."""
    if not isinstance(saver, JournalSaver):
        pytest.skip("it keeps no chunks")
    return saver


def teller(name: str, lines: int = 2) -> Callable[[State], State]:
    """A node that tells how far it has come."""

    def node(state: State) -> State:
        for number in range(lines):
            get_stream_writer()(f"{name}{number}")
        return {"a": [name]}

    return node


def chain(saver: Saver, *nodes: tuple[str, Node], **options: Any) -> Any:
    """The nodes one after the other."""
    graph = StateGraph(State)
    before = START
    for name, node in nodes:
        graph.add_node(name, node).add_edge(before, name)
        before = name
    return graph.compile(checkpointer=journal_of(saver), **options)


def followed(run: Runner, app: Any, config: Any, **options: Any) -> list[FollowedChunk]:
    """What a follower is given."""
    if run.name == "sync":
        return list(app.follow(config, **options))

    async def collect() -> list[FollowedChunk]:
        return [chunk async for chunk in app.afollow(config, **options)]

    return asyncio.run(collect())


def told(chunks: Sequence[FollowedChunk]) -> list[Told]:
    """What the run showed, without what only followers are told."""
    return [(one.mode, one.ns, one.data) for one in chunks if one.mode not in ("attempt", "status")]


def of_parts(parts: Sequence[Any]) -> list[Told]:
    """The same of what a stream gives in version 2."""
    found = []
    for part in parts:
        asked = part.get("interrupts")
        found.append((part["type"], part["ns"], {**part["data"], "__interrupt__": asked} if asked else part["data"]))
    return found


@pytest.mark.parametrize(
    "durability",
    ["sync", pytest.param("async", marks=pytest.mark.slow), pytest.param("exit", marks=pytest.mark.slow)],
)
def test_a_follower_is_given_what_the_stream_gave(run: Runner, saver: Saver, thread: Config, durability: str) -> None:
    app = chain(saver, ("x", teller("x")), ("y", teller("y")), journal_stream=MODES)

    streamed = run.stream(
        app, {"a": ["in"]}, thread("1"), stream_mode=MODES, version="v2", subgraphs=True, durability=durability
    )
    chunks = followed(run, app, thread("1"))

    assert of_parts(streamed) == told(chunks)
    assert list(range(len(chunks))) == [chunk.offset for chunk in chunks]
    assert {(True, False)} == {(chunk.landed, chunk.superseded) for chunk in chunks}
    assert {"status": "idle", "reason": "it is at rest", "interrupts": []} == chunks[-1].data


def test_a_follower_goes_on_from_any_offset(run: Runner, saver: Saver, thread: Config) -> None:
    app = chain(saver, ("x", teller("x")), ("y", teller("y")))
    run.invoke(app, {"a": []}, thread("1"), journal_stream=True)
    chunks = followed(run, app, thread("1"))

    for first in chunks[:-1]:  # also between chunks that are stored together
        assert chunks[first.next_offset : -1] == followed(run, app, thread("1"), offset=first.next_offset)[:-1]


def test_an_offset_behind_the_end_is_refused(run: Runner, saver: Saver, thread: Config) -> None:
    app = chain(saver, ("x", teller("x")), journal_stream=True)
    run.invoke(app, {"a": []}, thread("1"))
    end = followed(run, app, thread("1"))[-1].next_offset

    assert ["status"] == [chunk.mode for chunk in followed(run, app, thread("1"), offset=end)]
    with pytest.raises(InvalidInputError, match=f"offset is {end + 1}, but the chunks of thread '1' end before {end}"):
        followed(run, app, thread("1"), offset=end + 1)


@pytest.mark.acceptance("S0-23")
def test_progress_shows_while_its_node_still_runs(run: Runner, saver: Saver, thread: Config) -> None:
    seen = threading.Event()
    heard: list[FollowedChunk] = []

    def follower() -> None:
        for chunk in app.follow(thread("1")):
            heard.append(chunk)
            if chunk.data == 9:
                seen.set()

    watcher = threading.Thread(target=follower, daemon=True)

    def slow(state: State) -> State:
        for number in range(10):
            get_stream_writer()(number)
        watcher.start()
        assert seen.wait(60)
        return {"a": ["slow"]}

    app = chain(saver, ("slow", slow), journal_stream=True)
    run.invoke(app, {"a": []}, thread("1"))
    watcher.join(60)

    lines = [chunk for chunk in heard if chunk.mode == "custom"]
    assert list(range(10)) == [chunk.data for chunk in lines]
    assert {(False, False)} == {(chunk.landed, chunk.superseded) for chunk in lines}
    assert ["updates", "status"] == [chunk.mode for chunk in heard[-2:]]
    assert {True} == {chunk.landed for chunk in followed(run, app, thread("1"))}


def test_a_run_that_waits_for_an_answer_says_so_and_its_second_pass_supersedes_the_first(
    run: Runner, saver: Saver, thread: Config
) -> None:
    def ask(state: State) -> State:
        get_stream_writer()("thinking")
        return {"a": [interrupt("go on?")]}

    app = chain(saver, ("ask", ask), journal_stream=True)
    run.invoke(app, {"a": []}, thread("1"))
    paused = followed(run, app, thread("1"))
    run.invoke(app, Command(resume="yes"), thread("1"))
    ended = followed(run, app, thread("1"))

    assert ("interrupted", "go on?") == (paused[-1].data["status"], paused[-1].data["interrupts"][0].value)
    assert [(False, False)] == [(one.landed, one.superseded) for one in paused if one.mode == "custom"]
    assert [(False, True), (True, False)] == [(one.landed, one.superseded) for one in ended if one.mode == "custom"]
    first = next(one for one in ended if one.mode == "custom")
    begins = [one for one in ended if one.mode == "attempt"]
    assert [[], [[first.offset, first.offset]]] == [one.data["superseded"] for one in begins]
    assert "idle" == ended[-1].data["status"]


def test_a_run_that_journals_nothing_supersedes_all_the_same(run: Runner, saver: Saver, thread: Config) -> None:
    def ask(state: State) -> State:
        get_stream_writer()("thinking")
        return {"a": [interrupt("go on?")]}

    app = chain(saver, ("ask", ask), journal_stream="custom")
    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, Command(resume="yes"), thread("1"), journal_stream=False)

    assert [True] == [one.superseded for one in followed(run, app, thread("1")) if one.mode == "custom"]


@pytest.mark.parametrize("durability", ["sync", "exit"])
def test_what_a_failed_attempt_had_shown_is_superseded_by_its_retry(
    run: Runner, saver: Saver, thread: Config, durability: str
) -> None:
    tries: list[int] = []

    def flaky(state: State) -> State:
        tries.append(1)
        get_stream_writer()(f"try {len(tries)}")
        if len(tries) == 1:
            raise ConnectionError
        return {"a": ["flaky"]}

    graph = StateGraph(State).add_node("flaky", flaky, retry_policy=RetryPolicy(initial_interval=0, jitter=False))
    app = graph.add_edge(START, "flaky").compile(checkpointer=journal_of(saver), journal_stream=["custom", "tasks"])
    run.invoke(app, {"a": []}, thread("1"), durability=durability)

    chunks = followed(run, app, thread("1"))
    shown = [(one.data, one.landed, one.superseded) for one in chunks if one.mode == "custom"]
    assert [("try 1", False, True), ("try 2", True, False)] == shown
    first = next(one.offset for one in chunks if one.data == "try 1")
    assert [[], [[first, first]]] == [one.data["superseded"] for one in chunks if one.mode == "attempt"]
    assert {True} == {one.landed for one in chunks if one.mode == "tasks"}


def test_one_of_two_tasks_that_run_side_by_side_lands_alone(run: Runner, saver: Saver, thread: Config) -> None:
    def stuck(state: State) -> State:
        get_stream_writer()("stuck")
        while not any(one.name == "good" and one.result for one in app.get_state(thread("1")).tasks):
            pass  # it fails once the other one is stored
        raise ValueError("no")

    graph = StateGraph(State).add_node("good", teller("good")).add_node("stuck", stuck)
    graph.add_edge(START, "good").add_edge(START, "stuck")
    app = graph.compile(checkpointer=journal_of(saver), journal_stream="custom")
    with pytest.raises(ValueError, match="no"):
        run.invoke(app, {"a": []}, thread("1"))

    chunks = followed(run, app, thread("1"))
    landed = {one.data: one.landed for one in chunks if one.mode == "custom"}
    assert {"good0": True, "good1": True, "stuck": False} == landed
    assert "failed" == chunks[-1].data["status"]


def test_chunks_of_subgraphs_are_journaled_and_the_stream_stays_as_it_was(
    run: Runner, saver: Saver, thread: Config
) -> None:
    inner = StateGraph(State).add_node("deep", teller("deep", 1)).add_edge(START, "deep").compile()
    app = chain(saver, ("sub", inner))
    modes = ["updates", "custom"]

    plain = run.stream(app, {"a": []}, thread("1"), stream_mode=modes)
    journaled = run.stream(app, {"a": []}, thread("2"), stream_mode=modes, journal_stream=modes)

    assert plain == journaled
    chunks = told(followed(run, app, thread("2")))
    assert [("custom", 1), ("updates", 1), ("updates", 0)] == [(mode, len(ns)) for mode, ns, _ in chunks]


def test_a_graph_that_stores_nothing_itself_lands_with_the_node_that_runs_it(
    run: Runner, saver: Saver, thread: Config
) -> None:
    inner = StateGraph(State).add_node("deep", teller("deep")).add_edge(START, "deep").compile(checkpointer=False)
    app = chain(saver, ("sub", inner), journal_stream=["custom", "tasks"])
    run.invoke(app, {"a": []}, thread("1"))

    assert {True} == {one.landed for one in followed(run, app, thread("1"))}


def test_many_chunks_come_in_order_and_in_bounded_memory(run: Runner, saver: Saver, thread: Config) -> None:
    app = chain(saver, ("many", teller("many", 1500)), journal_stream="custom")
    run.invoke(app, {"a": []}, thread("1"))

    lines = [one.data for one in followed(run, app, thread("1")) if one.mode == "custom"]
    assert [f"many{number}" for number in range(1500)] == lines


def test_what_cannot_be_kept_is_refused_where_it_is_shown(run: Runner, saver: Saver, thread: Config) -> None:
    refused: list[BaseException] = []

    def shows(state: State) -> State:
        try:
            get_stream_writer()(threading.Lock())
        except SerializationError as error:
            refused.append(error)
        return {"a": ["went on"]}

    app = chain(saver, ("shows", shows), journal_stream=True)

    assert {"a": ["went on"]} == run.invoke(app, {"a": []}, thread("1"))
    assert "journal_stream" in refused[0].__notes__[0]
    assert ["attempt", "updates", "status"] == [one.mode for one in followed(run, app, thread("1"))]


def test_runs_journal_nothing_unless_they_are_told_to(run: Runner, saver: Saver, thread: Config) -> None:
    app = chain(saver, ("x", teller("x")))
    run.stream(app, {"a": []}, thread("1"), stream_mode="custom")

    assert ["status"] == [one.mode for one in followed(run, app, thread("1"))]


def test_patience_ends_the_wait_for_a_thread_that_is_held(run: Runner, saver: Saver, thread: Config) -> None:
    def looks(state: State) -> State:
        waited.extend(app.follow(thread("1"), wait=0.0))
        return {"a": ["looked"]}

    waited: list[FollowedChunk] = []
    app = chain(saver, ("looks", looks), journal_stream=True)
    run.invoke(app, {"a": []}, thread("1"), durability="sync", stream_mode="custom")

    assert "running" == waited[-1].data["status"]


def test_a_thread_that_is_deleted_ends_its_followers(saver: Saver, thread: Config) -> None:
    app = chain(saver, ("x", teller("x")), journal_stream=True)
    app.invoke({"a": []}, thread("1"))
    chunks = app.follow(thread("1"))
    next(chunks)
    saver.delete_thread("1")

    list_of_page = list(chunks)  # what it had read; it ended with the thread at rest
    assert "status" == list_of_page[-1].mode
    with pytest.raises(ThreadNotFoundError):
        next(app.follow(thread("1")))


def test_mistakes_are_named_before_anything_runs(thread: Config) -> None:
    graph = StateGraph(State).add_node("x", teller("x")).add_edge(START, "x")
    with pytest.raises(InvalidInputError, match="Unknown stream mode 'progress'"):
        graph.compile(checkpointer=InMemorySaver(), journal_stream="progress")
    with pytest.raises(NoCheckpointerError):
        graph.compile().invoke({"a": []}, journal_stream=True)
    with pytest.raises(InvalidInputError, match="journal_stream is 5"):
        graph.compile(checkpointer=InMemorySaver(), journal_stream=5)  # type: ignore[arg-type]
    app = graph.compile(checkpointer=InMemorySaver())
    mistakes: list[tuple[str, Any]] = [("offset", -1), ("offset", "2"), ("offset", 1.5), ("wait", -1), ("wait", "2")]
    for name, value in mistakes:
        with pytest.raises(InvalidInputError, match=f"{name} is {value!r}"):
            app.follow(thread("1"), **{name: value})
    no_thread: list[Any] = [None, "1"]
    for config in no_thread:
        with pytest.raises(InvalidInputError, match=f"config is {config!r}: it does not name a thread"):
            app.follow(config)
        with pytest.raises(InvalidInputError, match="does not name a thread"):
            app.afollow(config)


@pytest.mark.filterwarnings("ignore:.*no guarded append")
def test_a_saver_with_the_verbs_of_the_reference_only_keeps_no_chunks(thread: Config) -> None:
    app = StateGraph(State).add_node("x", teller("x")).add_edge(START, "x").compile(checkpointer=FiveVerbs())

    with pytest.raises(NotBuiltError, match="FiveVerbs keeps no chunks"):
        app.invoke({"a": []}, thread("1"), journal_stream=True)
    with pytest.raises(NotBuiltError, match="FiveVerbs keeps no chunks"):
        next(app.follow(thread("1")))
    assert {"a": ["x"]} == app.invoke({"a": []}, thread("1"))
