"""One owner per thread: who may take it over, when, and what becomes of the one that lost it."""

from __future__ import annotations

import asyncio
import gc
import os
from typing import Any

import pytest

from pregel.checkpoint import lease
from pregel.checkpoint.heartbeat import Heartbeat
from pregel.checkpoint.heartbeat import heartbeat as of_this_process
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Owner, ThreadRow
from pregel.config import running_task
from pregel.engine.authority import Authority
from pregel.engine.running import Running
from pregel.errors import AuthorityLost, InvalidInputError, ThreadBusy, ThreadDeleted

from .conftest import Runner
from .journals import Run
from .marks import Saver, Thread, chain, mark

FAR = Owner("another boot", 1, 1, 1, "far")


def row_of(saver: Any, thread: str = "1") -> ThreadRow:
    row: ThreadRow = saver.load(thread, []).thread
    return row


def take(saver: Any, *, dead: bool = False, ttl: float = 30.0, thread: str = "1") -> Run:
    """Another host claims the thread."""
    run = Run(saver, thread, owner=FAR)
    assert run.send(run.blank(claim=True, dead=dead, ttl=ttl)).landed
    return run


def journal_here() -> Authority:
    """The authority of the run that a node runs in."""
    task = running_task()
    assert isinstance(task, Running)
    journal = task.frame.run.journal
    assert journal is not None
    return journal


def has_authority(saver: Saver) -> bool:
    return hasattr(saver, "renew")


@pytest.mark.acceptance("S0-12", "S4-3")
def test_a_thread_whose_lease_has_lapsed_is_taken_over(run: Runner, saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no leases there")
    app = chain("a", "b").compile(checkpointer=saver, interrupt_before=["b"])
    run.invoke(app, {"a": []}, thread("1"))
    lost = take(saver, ttl=-1.0)

    result = run.invoke(app, None, thread("1"))

    assert result["a"] == ["a", "b"]
    assert not lost.send(lost.blank()).landed
    assert row_of(saver).epoch > lost.epoch


def test_a_thread_that_another_host_holds_is_busy_until_its_lease_lapses(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    if not has_authority(saver):
        pytest.skip("no leases there")
    app = chain("a").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    take(saver)

    with pytest.raises(ThreadBusy, match="on far"):
        run.invoke(app, {"a": []}, thread("1"))


@pytest.mark.acceptance("S0-11")
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_lost_its_thread_writes_nothing_and_starts_nothing(
    run: Runner, saver: Saver, thread: Thread, durability: str
) -> None:
    if not has_authority(saver):
        pytest.skip("no authority there")
    calls: list[str] = []

    def freeze(state: Any) -> dict[str, Any]:
        journal = journal_here()
        take(saver, dead=True)
        journal.lapse()  # what the clock says when the process goes on
        return {"a": ["frozen"]}

    app = chain("freeze", "after", freeze=freeze, after=mark("after", calls)).compile(checkpointer=saver)

    with pytest.raises(AuthorityLost, match="taken over"):
        run.invoke(app, {"a": []}, thread("1"), durability=durability)

    assert calls == []
    assert run.state(app, thread("1")).values.get("a", []) == []
    assert row_of(saver).owner == FAR


def test_a_run_whose_thread_was_deleted_says_so(run: Runner, saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no authority there")

    def delete(state: Any) -> dict[str, Any]:
        saver.delete_thread("1")
        return {"a": ["late"]}

    app = chain("delete", delete=delete).compile(checkpointer=saver)

    with pytest.raises(ThreadDeleted):
        run.invoke(app, {"a": []}, thread("1"))

    assert run.state(app, thread("1")).values == {}


def test_the_heartbeat_renews_what_has_not_moved_since_it_looked(saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no leases there")
    gc.collect()  # runs of other tests with short leases: the real heartbeat would look often, and renew this one's
    saver.lease = 1000.0  # type: ignore[attr-defined]
    heartbeat = Heartbeat()
    seen: list[float] = []

    def node(state: Any) -> dict[str, Any]:
        journal = journal_here()
        assert journal.hold is not None
        saver.renew([journal.hold], keep=False)  # type: ignore[attr-defined]
        before = row_of(saver).lapsed
        heartbeat.look(lease.uptime())  # an append has come through since the last look
        between = row_of(saver).lapsed
        pause = heartbeat.look(lease.uptime())
        seen.extend([before, between, row_of(saver).lapsed, pause])
        return {"a": ["n"]}

    app = chain("n", n=node).compile(checkpointer=saver)

    assert app.invoke({"a": []}, thread("1"))["a"] == ["n"]
    assert seen == [True, True, False, 10.0]


def test_the_heartbeat_of_this_process_keeps_a_short_lease_alive(saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no leases there")
    saver.lease = 0.15  # type: ignore[attr-defined]
    renewed: list[bool] = []

    def node(state: Any) -> dict[str, Any]:
        first = row_of(saver).expires
        while len(renewed) < 3:  # ends only when the heartbeat comes
            now = row_of(saver)
            if now.expires > first:
                renewed.append(now.lapsed)
                first = now.expires
        return {"a": ["n"]}

    app = chain("n", n=node).compile(checkpointer=saver)

    assert app.invoke({"a": []}, thread("1"))["a"] == ["n"]
    assert len(renewed) == 3


def test_a_lost_lease_is_found_out_by_the_heartbeat(saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no leases there")
    late: list[bool] = []

    def node(state: Any) -> dict[str, Any]:
        journal = journal_here()
        take(saver, dead=True)
        heartbeat = Heartbeat()
        heartbeat.look(lease.uptime())
        heartbeat.look(lease.uptime())
        late.append(journal.is_late)
        return {"a": ["n"]}

    app = chain("n", n=node).compile(checkpointer=saver)

    with pytest.raises(AuthorityLost):
        app.invoke({"a": []}, thread("1"))
    assert late == [True]


# -- streams that nobody pulls -----------------------------------------------------------------------------------------


def test_a_stream_that_is_left_standing_gives_way_to_a_new_run_of_its_caller(saver: Saver, thread: Thread) -> None:
    app = chain("a", "b").compile(checkpointer=saver)
    stream = app.stream({"a": []}, thread("1"))
    next(stream)

    result = app.invoke({"a": ["new"]}, thread("1"))

    assert result["a"][-2:] == ["a", "b"]
    with pytest.raises(AuthorityLost, match="nobody pulled"):
        list(stream)
    assert app.get_state(thread("1")).values == result


def test_a_stream_that_gave_way_is_closed_without_a_word(saver: Saver, thread: Thread) -> None:
    app = chain("a", "b").compile(checkpointer=saver)
    stream = app.stream({"a": []}, thread("1"))
    next(stream)
    result = app.invoke({"a": ["new"]}, thread("1"))

    stream.close()  # type: ignore[attr-defined]  # it is a generator

    assert app.get_state(thread("1")).values == result


def test_an_awaited_stream_that_is_left_standing_gives_way(thread: Thread) -> None:
    app = chain("a", "b").compile(checkpointer=InMemorySaver())

    async def main() -> Any:
        stream = app.astream({"a": []}, thread("1"))
        await anext(stream)
        result = await app.ainvoke({"a": ["new"]}, thread("1"))
        with pytest.raises(AuthorityLost, match="nobody pulled"):
            [chunk async for chunk in stream]
        return result

    assert asyncio.run(main())["a"][-2:] == ["a", "b"]


def test_a_stream_that_another_task_pulls_is_busy(thread: Thread) -> None:
    app = chain("a", "b").compile(checkpointer=InMemorySaver())

    async def main() -> list[Any]:
        stream = app.astream({"a": []}, thread("1"))
        await anext(stream)
        with pytest.raises(ThreadBusy, match="this process"):
            await asyncio.create_task(app.ainvoke({"a": ["new"]}, thread("1")))
        return [chunk async for chunk in stream]

    assert asyncio.run(main()) == [{"b": {"a": ["b"]}}]


def test_a_run_that_was_given_up_lets_go_of_its_thread_in_the_store(saver: Saver, thread: Thread) -> None:
    if not has_authority(saver):
        pytest.skip("no leases there")
    holder = Authority(saver, "1", os.urandom(16), None)  # type: ignore[arg-type]
    take_over = Run(saver, "1")  # type: ignore[arg-type]
    append = take_over.blank(claim=True)
    append.run = holder.token
    holder.row = saver.append(append).row  # type: ignore[attr-defined]
    holder.epoch, holder.claimed = holder.row.epoch, True
    holder.keep()
    of_this_process.watch(holder.lease)
    assert not row_of(saver).lapsed

    del holder
    gc.collect()

    while not row_of(saver).lapsed:  # the heartbeat's thread does it
        pass


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan")])
def test_a_lease_that_is_none_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="lease"):
        InMemorySaver(lease=seconds)
