"""`app.start`: a run is admitted durably and at once, once a key, and nothing of it runs here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from pregel.config import RunnableConfig
from pregel.durable import RunHandle, StatusPage, Worker
from pregel.errors import (
    IdempotencyConflictError,
    InvalidInputError,
    NotBuiltError,
    SerializationError,
    ThreadBusy,
)
from pregel.runtime import Runtime, get_runtime
from pregel.types import Command
from pregel.waits import wait_for_event

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark
from .test_authority import has_authority, row_of
from .test_thread_api import Api

INPUT: Any = {"a": ["in"]}


def start(run: Runner, app: Any, *args: Any, **kwargs: Any) -> RunHandle:
    made: RunHandle
    if run.name == "sync":
        made = app.start(*args, **kwargs)
    else:
        made = asyncio.run(app.astart(*args, **kwargs))
    return made


def work(run: Runner, *apps: Any, **options: Any) -> int:
    """How many runs a worker took up that looked once."""
    worker = Worker(apps, **options)
    return worker.run_once() if run.name == "sync" else asyncio.run(worker.arun_once())


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def app(saver: Saver, calls: list[str]) -> Any:
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    return chain("x", "y", x=mark("x", calls), y=mark("y", calls)).compile(checkpointer=saver, name="orders")


@pytest.mark.acceptance("S4-1")
def test_a_start_gives_an_id_once_it_is_stored_and_runs_no_node(run: Runner, app: Any, calls: list[str]) -> None:
    handle = start(run, app, INPUT)

    assert [] == calls
    assert ("pending", False) == (
        handle.status().status if run.name == "sync" else status(app, handle),
        handle.existing,
    )
    assert ("__start__",) == run.state(app, {"configurable": {"thread_id": handle.thread_id}}).next
    assert 1 == work(run, app)
    assert ["x", "y"] == calls
    assert {"a": ["in", "x", "y"]} == run.state(app, {"configurable": {"thread_id": handle.thread_id}}).values


def status(app: Any, handle: RunHandle) -> str:
    return asyncio.run(handle.astatus()).status


@pytest.mark.acceptance("S2-11")
@pytest.mark.parametrize("other", ["input", "config", "graph"])
def test_a_key_stands_for_one_run_and_another_spec_is_refused(
    run: Runner, app: Any, saver: Saver, calls: list[str], other: str
) -> None:
    first = start(run, app, INPUT, {"tags": ["t"]}, key="7")
    again = start(run, app, INPUT, {"tags": ["t"]}, key="7")
    before = row_of(saver, "7")
    another = chain("x", "y").compile(checkpointer=saver, name="returns") if other == "graph" else app
    with pytest.raises(IdempotencyConflictError):
        start(
            run,
            another,
            {"a": ["other"]} if other == "input" else INPUT,
            {"tags": ["u" if other == "config" else "t"]},
            key="7",
        )

    assert (False, True) == (first.existing, again.existing)
    assert ("7", "7", first.run_id) == (first.thread_id, again.thread_id, again.run_id)
    after = row_of(saver, "7")
    assert ([], before.seq, before.epoch) == (calls, after.seq, after.epoch)
    assert (1, 0) == (work(run, app), work(run, app))
    late = start(run, app, INPUT, {"tags": ["t"]}, key="7")  # also once it has ended, and the thread went on
    run.invoke(app, {"a": ["more"]}, {"configurable": {"thread_id": "7"}})
    later = start(run, app, INPUT, {"tags": ["t"]}, key="7")
    assert (True, True, first.run_id, first.run_id) == (late.existing, later.existing, late.run_id, later.run_id)
    assert ["x", "y"] * 2 == calls


def test_a_key_does_not_name_a_thread_that_came_by_another_way(run: Runner, app: Any, thread: Thread) -> None:
    run.invoke(app, INPUT, thread("7"))
    with pytest.raises(IdempotencyConflictError, match="not started with"):
        start(run, app, INPUT, key="7")


def test_of_many_starts_with_one_key_one_makes_the_run_and_each_learns_which(
    run: Runner, app: Any, saver: Saver, calls: list[str]
) -> None:
    if run.name == "async":

        async def together() -> list[RunHandle]:
            return list(await asyncio.gather(*[app.astart(INPUT, key="7") for _ in range(8)]))

        handles = asyncio.run(together())
    else:
        with ThreadPoolExecutor(8) as pool:
            handles = list(pool.map(lambda _: app.start(INPUT, key="7"), range(8)))

    assert 1 == sum(not handle.existing for handle in handles)
    assert 1 == len({handle.run_id for handle in handles})
    assert (1, ["x", "y"]) == (work(run, app), calls)


def test_a_start_without_a_key_is_the_next_input_of_its_thread(run: Runner, app: Any, thread: Thread) -> None:
    run.invoke(app, INPUT, thread("1"))
    handle = start(run, app, {"a": ["more"]}, thread("1"))

    with pytest.raises(ThreadBusy) as error:
        start(run, app, {"a": ["lost"]}, thread("1"))

    assert ("pending", "1") == (error.value.reason, handle.thread_id)
    assert 1 == work(run, app)
    assert ["in", "x", "y", "more", "x", "y"] == run.state(app, thread("1")).values["a"]


def test_what_was_started_is_not_given_up_for_a_new_input(run: Runner, app: Any, thread: Thread) -> None:
    start(run, app, INPUT, thread("1"))
    for more in ({}, {"concurrency": "enqueue"}, {"concurrency": "rollback"}):
        with pytest.raises(ThreadBusy, match="waits for a worker"):
            run.invoke(app, {"a": ["other"]}, thread("1"), **more)
    at = run.state(app, thread("1")).config
    with pytest.raises(ThreadBusy, match="waits for a worker"):
        run.invoke(app, None, at)

    assert ["in", "x", "y"] == Api(run, app)("resume", "1")["a"]
    assert 0 == work(run, app)


def test_an_update_leaves_a_start_pending_and_a_copy_is_nobodys_to_run(run: Runner, app: Any, thread: Thread) -> None:
    api = Api(run, app)
    start(run, app, INPUT, thread("1"))
    api("copy", "1", "2")
    run.update(app, thread("1"), {"a": ["put in"]}, as_node="x")

    assert ("pending", "idle") == (api("status", "1").status, api("status", "2").status)
    assert ["1"] == [info.thread_id for info in api("list", status="pending")]
    assert 1 == work(run, app)
    assert ["put in", "y"] == run.state(app, thread("1")).values["a"][-2:]


def test_a_worker_runs_with_the_config_of_the_start(run: Runner, saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    seen: list[Any] = []

    def look(state: State, config: RunnableConfig) -> dict[str, Any]:
        runtime: Runtime[Any] = get_runtime()
        assert runtime.execution_info is not None
        place = config["configurable"]
        told = config["metadata"]["shop"], config["tags"], config["recursion_limit"]
        seen.append((place["user"], place["levels"], *told, runtime.execution_info.run_id, runtime.context))
        return {}

    app = chain("look", look=look).compile(checkpointer=saver, name="orders")
    config = {
        "configurable": {"thread_id": "1", "user": "ann", "levels": [1, 2]},
        "metadata": {"shop": "north"},
        "tags": ["t"],
        "recursion_limit": 9,
        "run_id": "r1",
    }
    handle = start(run, app, INPUT, config)
    work(run, app, context="given")

    assert ("1", "r1") == (handle.thread_id, handle.run_id)
    assert [("ann", [1, 2], "north", ["t"], 9, "r1", "given")] == seen


def test_the_config_of_a_start_stays_with_the_thread(run: Runner, saver: Saver, thread: Thread) -> None:
    """Also when it was updated before a worker took it up, and when it is resumed or woken by hand."""
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    seen: list[Any] = []

    def look(state: State, config: RunnableConfig) -> dict[str, Any]:
        seen.append((config["configurable"].get("user"), config["metadata"].get("shop"), config["recursion_limit"]))
        if len(seen) == 1:
            raise ValueError("broken")
        wait_for_event("paid")
        wait_for_event("sent")
        return {}

    app = chain("look", look=look).compile(checkpointer=saver, name="orders")
    api = Api(run, app)
    config: RunnableConfig = {"configurable": {"user": "ann"}, "metadata": {"shop": "north"}, "recursion_limit": 9}
    handle = start(run, app, INPUT, config, key="1")
    run.update(app, thread("1"), {"a": ["put in"]}, as_node="__start__")

    assert 1 == work(run, app)
    assert handle.run_id == run.state(app, thread("1")).metadata["run_id"]
    api("resume", "1")
    api("send_event", "1", "paid")
    api("wake", "1")
    api("send_event", "1", "sent")
    assert 1 == work(run, app)
    assert [("ann", "north", 9)] * 4 == seen
    again = start(run, app, INPUT, config, key="1")
    assert (True, handle.run_id) == (again.existing, again.run_id)


def test_a_thread_that_is_started_once_more_for_an_event_keeps_the_config_of_its_start(
    run: Runner, saver: Saver
) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    seen: list[Any] = []

    def look(state: State, config: RunnableConfig) -> dict[str, Any]:
        seen.append((config["configurable"].get("user"), wait_for_event("changed", timeout=0) is not None))
        return {}

    app = chain("look", look=look).compile(checkpointer=saver, name="orders")
    start(run, app, INPUT, {"configurable": {"user": "ann"}}, key="1")
    while work(run, app):
        pass
    Api(run, app)("send_event", "1", "changed")
    while work(run, app, unread={"changed": INPUT}):
        pass

    assert [("ann", False), ("ann", True)] == seen


REFUSED: Any = {
    "nothing": (InvalidInputError, None, {}, {}),
    "an answer": (InvalidInputError, Command(resume=1), {}, {}),
    "a value that is not stored": (SerializationError, {"a": [open]}, {}, {}),
    "callbacks": (InvalidInputError, INPUT, {"callbacks": [print]}, {}),
    "no JSON": (InvalidInputError, INPUT, {"configurable": {"user": object()}}, {}),
    "a checkpoint": (InvalidInputError, INPUT, {"configurable": {"thread_id": "1", "checkpoint_id": "x"}}, {}),
    "two threads": (InvalidInputError, INPUT, {"configurable": {"thread_id": "1"}}, {"key": "2"}),
    "an empty key": (InvalidInputError, INPUT, {}, {"key": ""}),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_started_is_refused_before_anything_is_written(run: Runner, app: Any, what: str) -> None:
    error, given, config, options = REFUSED[what]
    with pytest.raises(error):
        start(run, app, given, config, **options)
    assert [] == Api(run, app)("list")


def test_a_graph_without_a_name_starts_nothing(run: Runner, saver: Saver) -> None:
    app = chain("x").compile(checkpointer=saver)
    if not has_authority(saver):
        with pytest.raises(NotBuiltError, match="no status of threads"):
            start(run, app, INPUT)
        return
    with pytest.raises(InvalidInputError, match="no name"):
        start(run, app, INPUT)


@pytest.fixture
def page(app: Any) -> Iterator[StatusPage]:
    with StatusPage(app) as served:
        yield served


def told(url: str) -> Any:
    with urlopen(url) as answer:
        return json.load(answer)


@pytest.mark.acceptance("S2-13")
def test_a_start_has_a_url_that_says_that_accepted_is_not_done(
    run: Runner, app: Any, page: StatusPage, calls: list[str]
) -> None:
    handle = start(run, app, INPUT, key="a/b ü", base_url=page.url)
    assert handle.url is not None
    accepted = told(handle.url)
    assert [] == calls
    work(run, app)
    done = told(handle.url)

    assert ("a/b ü", "pending") == (accepted["thread_id"], accepted["status"])
    assert ("idle", False) == (done["status"], done["can_resume"])
    with pytest.raises(HTTPError, match="404"):
        told(f"{page.url}/threads/none")
