"""`app.threads`: how each thread stands, what may be done with it, on every saver."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.lease import this_owner
from pregel.checkpoint.records import ThreadRow
from pregel.checkpoint.standing import info_of
from pregel.errors import (
    CannotResumeError,
    EmptyInputError,
    GraphDrained,
    InvalidInputError,
    MissingThreadError,
    ThreadBusy,
    ThreadDeleted,
    ThreadNotFoundError,
)
from pregel.runtime import RunControl, Runtime
from pregel.types import Command, interrupt

from .conftest import Runner
from .marks import Saver, Thread, chain, failing_once, parallel
from .test_authority import has_authority, row_of, take
from .test_concurrency import Held


class Api:
    """`app.threads` through the verbs of one driver."""

    def __init__(self, run: Runner, app: Any) -> None:
        self.run, self.app = run, app

    def __call__(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        if self.run.name == "sync":
            return getattr(self.app.threads, verb)(*args, **kwargs)
        return asyncio.run(getattr(self.app.threads, f"a{verb}")(*args, **kwargs))


def asks(state: Any) -> dict[str, Any]:
    return {"a": [interrupt("go on?")]}


@pytest.mark.acceptance("S6-13")
def test_the_status_of_a_thread_follows_its_run(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("ask", "fail", ask=asks, fail=failing_once("fail", ValueError("broken"))).compile(checkpointer=saver)
    api = Api(run, app)
    seen: list[Any] = []

    run.invoke(app, {"a": []}, thread("1"))
    seen.append(api("status", "1"))
    with pytest.raises(ValueError, match="broken"):
        api("resume", "1", "yes")
    seen.append(api("status", "1"))
    assert api("resume", "1")["a"] == ["yes", "fail"]
    seen.append(api("status", "1"))

    assert [(info.status, info.can_resume) for info in seen] == [
        ("interrupted", True),
        ("failed", True),
        ("idle", False),
    ]
    assert "answer" in seen[0].reason
    assert "broken" in seen[1].reason
    assert (api("can_resume", "1"), api("reason", "1")) == (False, "it is at rest")


def test_a_running_thread_says_who_runs_it_and_is_not_resumed(run: Runner, saver: Saver, thread: Thread) -> None:
    held = Held(Runner(), saver, thread("1"))
    api = Api(run, held.app)

    info = api("status", "1")
    with pytest.raises(ThreadBusy):
        api("resume", "1")
    held.end()

    assert (info.status, info.can_resume) == ("running", False)
    assert api("status", "1").status == "idle"


@pytest.mark.acceptance("S0-6", "S0-7", "S0-12")
def test_a_thread_whose_process_is_not_heard_of_is_abandoned_and_can_be_resumed(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    if not has_authority(saver):
        pytest.skip("no leases there")
    app = chain("a", "b").compile(checkpointer=saver, interrupt_before=["b"])
    api = Api(run, app)
    run.invoke(app, {"a": []}, thread("1"))
    take(saver, ttl=-1.0)

    info = api("status", "1")

    assert (info.status, info.can_resume) == ("abandoned", True)
    assert "lease" in info.reason
    assert row_of(saver).status == "running"  # nobody had to clean up
    assert api("list", status="running") == []
    assert [found.thread_id for found in api("list", status="abandoned")] == ["1"]
    assert api("resume", "1")["a"] == ["a", "b"]
    assert api("status", "1").status == "idle"


@pytest.mark.acceptance("S0-25")
def test_what_cannot_be_resumed_says_why_and_writes_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("a").compile(checkpointer=saver)
    api = Api(run, app)
    run.invoke(app, {"a": []}, thread("1"))
    before = run.history(app, thread("1"))

    with pytest.raises(CannotResumeError, match="come to its end") as finished:
        api("resume", "1")
    with pytest.raises(ThreadNotFoundError, match="no thread 'other'"):
        api("resume", "other")

    assert (finished.value.reason, bool(finished.value.fix)) == ("finished", True)
    assert run.history(app, thread("1")) == before
    assert len(api("list")) == 1


def test_a_join_that_can_never_be_full_cannot_be_resumed(run: Runner, saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    graph = parallel("x", "y")
    graph.add_node("never", lambda state: {"a": ["never"]})
    graph.add_node("join", lambda state: {"a": ["join"]}).add_edge(["x", "never"], "join")
    graph.add_conditional_edges("y", lambda state: "__end__", ["never", "__end__"])
    app = graph.compile(checkpointer=saver)
    api = Api(run, app)
    with pytest.raises(Exception, match="can no longer arrive"):
        run.invoke(app, {"a": []}, thread("1"))

    info = api("status", "1")
    with pytest.raises(CannotResumeError) as stuck:
        api("resume", "1")

    assert (info.status, info.can_resume, stuck.value.reason) == ("failed", False, "stuck")


@pytest.mark.acceptance("S0-13", "S6-14")
def test_a_parked_and_a_killed_run_are_both_resumable_and_tell_which_they_were(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    calls: list[str] = []

    def first(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        calls.append("first")
        assert runtime.control is not None
        runtime.control.request_drain("deploy")
        return {"a": ["first"]}

    def second(state: Any) -> dict[str, Any]:
        calls.append("second")
        return {"a": ["second"]}

    app = chain("first", "second", first=first, second=second).compile(checkpointer=saver)
    api = Api(run, app)
    for name in ("parked", "killed"):
        with pytest.raises(GraphDrained):
            run.invoke(app, {"a": []}, thread(name), control=RunControl())
    take(saver, ttl=-1.0, thread="killed")  # the process that went on with it is gone

    parked, killed = api("status", "parked"), api("status", "killed")

    assert (parked.status, parked.can_resume) == ("idle", True)
    assert "deploy" in parked.reason
    assert (killed.status, killed.can_resume) == ("abandoned", True)
    assert api("resume", "parked")["a"] == api("resume", "killed")["a"] == ["first", "second"]
    assert calls == ["first", "first", "second", "second"]
    assert [api("status", name).status for name in ("parked", "killed")] == ["idle", "idle"]


@pytest.mark.acceptance("S0-25")
def test_a_run_of_which_nothing_was_stored_is_lost_and_says_so(run: Runner, saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    app = chain("a").compile(checkpointer=saver)
    api = Api(run, app)
    take(saver, ttl=-1.0)  # durability "exit": the claim alone

    info = api("status", "1")
    with pytest.raises(CannotResumeError, match="no step of that run was stored") as lost:
        api("resume", "1")

    assert (info.status, info.can_resume, lost.value.reason) == ("abandoned", False, "lost")
    assert run.invoke(app, {"a": []}, thread("1"))["a"] == ["a"]


def test_a_run_of_this_process_that_broke_off_does_not_say_that_the_process_died() -> None:
    info = info_of(ThreadRow("1", 1, 1, b"gone", 1, status="running", owner=this_owner(), last_id="x"))
    assert (info.status, info.can_resume) == ("abandoned", True)
    assert info.reason == "a run of this process broke off, and how it ended could not be stored"


ROWS: Any = {
    ("idle", ""): (False, "at rest"),
    ("idle", "SIGTERM"): (True, "SIGTERM"),
    ("interrupted", ""): (True, "an answer"),
    ("interrupted", "it stopped at a breakpoint"): (True, "breakpoint"),
    ("waiting", ""): (True, "a time or an event"),
    ("failed", "ValueError: x"): (True, "ValueError: x"),
    ("failed", ""): (True, "failed"),
    ("failed", "JoinStarvedError: x"): (False, "JoinStarvedError: x"),
}


@pytest.mark.parametrize("stored", ROWS, ids=" ".join)
def test_every_status_says_whether_it_can_go_on_and_why(stored: tuple[Any, str]) -> None:
    can_resume, reason = ROWS[stored]
    info = info_of(ThreadRow("1", tno=1, status=stored[0], reason=stored[1]))

    assert (info.status, info.can_resume) == (stored[0], can_resume)
    assert reason in info.reason


def test_threads_are_listed_the_last_written_first(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("a").compile(checkpointer=saver)
    api = Api(run, app)
    for name in ("one", "two", "three"):
        run.invoke(app, {"a": []}, thread(name))

    found = api("list")

    assert sorted(info.thread_id for info in found) == ["one", "three", "two"]
    assert len(api("list", limit=2)) == 2
    assert api("list", status="failed") == []
    if has_authority(saver):
        assert [info.thread_id for info in found] == ["three", "two", "one"]
        assert all(info.updated_at is not None for info in found)


def test_a_deleted_thread_is_gone_and_its_id_can_be_used_again(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("a").compile(checkpointer=saver)
    api = Api(run, app)
    run.invoke(app, {"a": ["old"]}, thread("1"))
    epoch = row_of(saver).epoch if has_authority(saver) else 0

    api("delete", "1")
    with pytest.raises(ThreadNotFoundError):
        api("status", "1")

    assert run.invoke(app, {"a": []}, thread("1"))["a"] == ["a"]
    if has_authority(saver):
        assert row_of(saver).epoch > epoch


def test_a_live_run_of_a_deleted_thread_ends_with_a_named_error(run: Runner, saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no authority there")
    held = Held(Runner(), saver, thread("1"))
    Api(run, held.app)("delete", "1")

    assert isinstance(held.end(), ThreadDeleted)
    assert Api(run, held.app)("list") == []


def test_copies_and_pruned_threads_keep_their_state(run: Runner, saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no such verbs there")
    app = chain("a", "b").compile(checkpointer=saver)
    api = Api(run, app)
    run.invoke(app, {"a": []}, thread("1"))

    api("copy", "1", "2")
    api("prune", ["1"])

    assert len(run.history(app, thread("1"))) == 1
    assert len(run.history(app, thread("2"))) > 1
    assert run.state(app, thread("1")).values == run.state(app, thread("2")).values
    with pytest.raises(InvalidInputError):
        api("copy", "1", "2")
    with pytest.raises(ThreadNotFoundError, match="nobody"):
        api("copy", "nobody", "3")


def test_the_status_needs_no_saver_but_a_saver(thread: Thread) -> None:
    with pytest.raises(ValueError, match="checkpointer"):
        _ = chain("a").compile().threads


# -- what is given by a caller -----------------------------------------------------------------------------------------

IDS = [77777, 2.5, UUID("018f3f2e-0000-7000-8000-000000000001")]


def upkeep(run: Runner, saver: Saver, verb: str, *args: Any, **kwargs: Any) -> Any:
    """A verb of the saver's, by its twin of this driver."""
    if run.name == "sync":
        return getattr(saver, verb)(*args, **kwargs)
    return asyncio.run(getattr(saver, f"a{verb}")(*args, **kwargs))


@pytest.mark.parametrize("id", IDS, ids=lambda id: type(id).__name__)
def test_the_thread_verbs_take_an_id_that_a_run_takes(run: Runner, saver: Saver, thread: Thread, id: Any) -> None:
    app = chain("x", "ask", ask=asks).compile(checkpointer=saver)
    api = Api(run, app)
    run.invoke(app, {"a": []}, thread(id))

    assert (str(id), True) == (api("status", id).thread_id, api("can_resume", id))
    assert ["x", "yes"] == api("resume", id, "yes")["a"]
    if isinstance(saver, JournalSaver):
        api("copy", id, 88888)
        api("prune", [id])
        assert {str(id), "88888"} == {info.thread_id for info in api("list")}
        assert 1 == len(run.history(app, thread(id)))
    api("delete", id)
    assert () == tuple(run.history(app, thread(id)))


@pytest.mark.parametrize("id", IDS, ids=lambda id: type(id).__name__)
def test_the_upkeep_of_a_saver_takes_an_id_that_a_run_takes(run: Runner, saver: Saver, thread: Thread, id: Any) -> None:
    if not isinstance(saver, JournalSaver):
        pytest.skip("no such verbs there")
    app = chain("x", "y").compile(checkpointer=saver)
    run_id = UUID(int=7)
    run.invoke(app, {"a": []}, {**thread(id), "run_id": run_id})

    upkeep(run, saver, "copy_thread", id, 88888)
    upkeep(run, saver, "delete_for_runs", [run_id])
    assert ([], []) == (run.history(app, thread(id)), run.history(app, thread("88888")))
    run.invoke(app, {"a": []}, thread(id))
    upkeep(run, saver, "prune", [id])
    assert 1 == len(run.history(app, thread(id)))
    assert [] == list(upkeep(run, saver, "verify", id))
    upkeep(run, saver, "delete_thread", id)
    assert [] == run.history(app, thread(id))


@pytest.mark.parametrize("target", ["", None])
def test_a_thread_is_not_copied_to_an_empty_id(run: Runner, saver: Saver, thread: Thread, target: Any) -> None:
    if not isinstance(saver, JournalSaver):
        pytest.skip("no such verbs there")
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))

    with pytest.raises(MissingThreadError, match="free"):
        upkeep(run, saver, "copy_thread", "1", target)
    with pytest.raises(MissingThreadError, match="free"):
        Api(run, app)("copy", "1", target)
    with pytest.raises(MissingThreadError):
        upkeep(run, saver, "delete_thread", None)

    assert ["1"] == [info.thread_id for info in Api(run, app)("list")]


@pytest.mark.parametrize(
    "asked",
    [{"limit": 2.5}, {"limit": True}, {"limit": "3"}, {"limit": -1}, {"filter": "loop"}, {"before": "abc"}],
    ids=str,
)
def test_what_a_history_is_asked_for_is_checked(run: Runner, saver: Saver, thread: Thread, asked: Any) -> None:
    app = chain("x").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    (name,) = asked

    with pytest.raises(InvalidInputError, match=f"{name} is") as caught:
        run.history(app, thread("1"), **asked)
    assert "leave it out" in caught.value.fix
    if isinstance(saver, JournalSaver):
        with pytest.raises(InvalidInputError, match=f"{name} is"):
            run.listed(saver, thread("1"), **asked)
    if name == "limit":
        with pytest.raises(InvalidInputError, match="limit is"):
            Api(run, app)("list", **asked)


def test_the_error_of_an_answer_none_says_how_to_give_it(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("ask", ask=asks).compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    (question,) = run.state(app, thread("1")).interrupts

    with pytest.raises(EmptyInputError) as caught:
        run.invoke(app, Command(resume=None), thread("1"))

    assert f"Command(resume={{{question.id!r}: None}})" in caught.value.fix
    assert {"a": [None]} == run.invoke(app, Command(resume={question.id: None}), thread("1"))
