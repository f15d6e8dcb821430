"""Two runs that want one thread: each mode, what is kept, and that nobody waits for himself."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Append, Hold, Receipt
from pregel.errors import GraphDrained, InvalidInputError, ThreadBusy
from pregel.types import Command, interrupt

from .conftest import Runner
from .marks import Saver, Thread, chain, mark, parallel
from .test_authority import FAR, has_authority, row_of, take


class Held:
    """A run on a thread of its own that stands inside its first node until it is let go."""

    def __init__(self, run: Runner, saver: Saver, config: Any, *, durability: str = "sync") -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        self.outcome: list[Any] = []
        self.app = chain("first", "second", first=self._first).compile(checkpointer=saver)
        self._thread = threading.Thread(target=self._run, args=(run, config, durability))
        self._thread.start()
        assert self.reached.wait(30)

    def _first(self, state: Any) -> dict[str, Any]:
        self.reached.set()
        assert self.go.wait(30)
        return {"a": ["first"]}

    def _run(self, run: Runner, config: Any, durability: str) -> None:
        try:
            self.outcome.append(run.invoke(self.app, {"a": ["held"]}, config, durability=durability))
        except Exception as error:
            self.outcome.append(error)

    def end(self) -> Any:
        """What became of it."""
        self.go.set()
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.outcome[0]


def beside(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """Do something on another thread; its result comes into the list."""
    outcome: list[Any] = []
    thread = threading.Thread(target=lambda: outcome.append(work()))
    thread.start()
    return thread, outcome


@pytest.fixture
def plain(run: Runner, saver: Saver) -> Any:
    """The graph that the newcomer runs."""
    return chain("x").compile(checkpointer=saver)


def test_by_default_a_busy_thread_is_refused(run: Runner, saver: Saver, thread: Thread, plain: Any) -> None:
    held = Held(Runner(), saver, thread("1"))

    with pytest.raises(ThreadBusy, match="this process") as busy:
        run.invoke(plain, {"a": []}, thread("1"))

    assert (busy.value.reason, busy.value.thread) == ("held", "1")
    assert held.end()["a"] == ["held", "first", "second"]


def test_enqueue_waits_for_the_other_run(run: Runner, saver: Saver, thread: Thread, plain: Any) -> None:
    held = Held(Runner(), saver, thread("1"))
    waiting, outcome = beside(lambda: run.invoke(plain, {"a": ["new"]}, thread("1"), concurrency="enqueue"))

    ended = held.end()
    waiting.join(30)

    assert ended["a"] == ["held", "first", "second"]
    assert outcome[0]["a"] == ["held", "first", "second", "new", "x"]


def test_an_answer_is_judged_when_its_turn_has_come(run: Runner, saver: Saver, thread: Thread) -> None:
    reached, go = threading.Event(), threading.Event()

    def asks(state: Any) -> dict[str, Any]:
        reached.set()
        assert go.wait(30)
        return {"a": [interrupt("who?")]}

    app = chain("x", x=asks).compile(checkpointer=saver)
    first, _ = beside(lambda: Runner().invoke(app, {"a": ["held"]}, thread("1")))
    assert reached.wait(30)
    with pytest.raises(ThreadBusy):  # nobody can say yet whether there will be a question
        run.invoke(app, Command(resume="me"), thread("1"))
    waiting, outcome = beside(lambda: run.invoke(app, Command(resume="me"), thread("1"), concurrency="enqueue"))

    go.set()
    first.join(30)
    waiting.join(30)

    assert [["held", "me"]] == [one["a"] for one in outcome]


def test_to_go_on_is_judged_then_as_well(run: Runner, saver: Saver, thread: Thread, plain: Any) -> None:
    held = Held(Runner(), saver, thread("1"))
    waiting, outcome = beside(lambda: run.invoke(plain, None, thread("1"), concurrency="enqueue"))

    ended = held.end()
    waiting.join(30)

    assert [ended["a"]] == [one["a"] for one in outcome]


def test_enqueue_gives_up_after_its_wait(run: Runner, saver: Saver, thread: Thread, plain: Any) -> None:
    held = Held(Runner(), saver, thread("1"))

    with pytest.raises(ThreadBusy):
        run.invoke(plain, {"a": []}, thread("1"), concurrency="enqueue", wait=0.05)

    assert held.end()["a"] == ["held", "first", "second"]


def test_interrupt_stops_the_other_run_after_its_step_and_keeps_what_it_did(
    run: Runner, saver: Saver, thread: Thread, plain: Any
) -> None:
    if not has_authority(saver):
        pytest.skip("nobody to ask there")
    held = Held(Runner(), saver, thread("1"))
    waiting, outcome = beside(lambda: run.invoke(plain, {"a": ["new"]}, thread("1"), concurrency="interrupt"))
    while row_of(saver).asked != "interrupt":
        pass

    ended = held.end()
    waiting.join(30)

    assert isinstance(ended, GraphDrained)
    assert "interrupt" in ended.reason
    assert outcome[0]["a"] == ["held", "first", "new", "x"]


@pytest.mark.parametrize("before", [False, True], ids=["new thread", "old thread"])
def test_rollback_goes_on_from_where_the_other_run_had_started(
    run: Runner, saver: Saver, thread: Thread, plain: Any, before: bool
) -> None:
    if not has_authority(saver):
        pytest.skip("nobody to ask there")
    if before:
        run.invoke(plain, {"a": ["old"]}, thread("1"))
    held = Held(Runner(), saver, thread("1"))
    waiting, outcome = beside(lambda: run.invoke(plain, {"a": ["new"]}, thread("1"), concurrency="rollback"))
    while row_of(saver).asked != "rollback":
        pass

    ended = held.end()
    waiting.join(30)

    kept = ["old", "x"] if before else []
    assert isinstance(ended, GraphDrained)
    assert outcome[0]["a"] == [*kept, "new", "x"]
    assert run.state(plain, thread("1")).values["a"] == [*kept, "new", "x"]
    assert [*kept, "held", "first"] in [entry.values.get("a") for entry in run.history(plain, thread("1"))]


class LateInMemory(InMemorySaver):
    """Holds up the first append that gives a thread back."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.go = threading.Event(), threading.Event()

    def append(self, append: Append) -> Receipt:
        if append.release is not None and not self.reached.is_set():
            self.reached.set()
            assert self.go.wait(30)
        return super().append(append)


@pytest.mark.parametrize("fails", [False, True], ids=["came to its end", "failed"])
def test_rollback_keeps_what_a_run_did_that_had_come_to_its_end(thread: Thread, fails: bool) -> None:
    """It was asked to make way when it was about to be told as done: its caller has the result."""
    saver = LateInMemory()

    def last(state: Any) -> dict[str, Any]:
        if fails:
            raise ValueError
        return {"a": ["last"]}

    app, plain = chain("last", last=last).compile(checkpointer=saver), chain("x").compile(checkpointer=saver)

    def play() -> None:
        with suppress(ValueError):
            app.invoke({"a": ["first"]}, thread("1"))

    first, _ = beside(play)
    assert saver.reached.wait(30)
    waiting, outcome = beside(lambda: plain.invoke({"a": ["new"]}, thread("1"), concurrency="rollback", wait=30.0))
    while row_of(saver).asked != "rollback":
        pass
    saver.go.set()
    first.join(30)
    waiting.join(30)

    assert outcome[0]["a"] == ([] if fails else ["first", "last"]) + ["new", "x"]


def test_the_mode_of_the_graph_counts_when_a_call_says_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x").compile(checkpointer=saver, concurrency="enqueue", wait=0.01)
    held = Held(Runner(), saver, thread("1"))

    with pytest.raises(ThreadBusy):
        run.invoke(app, {"a": []}, thread("1"))
    waiting, outcome = beside(lambda: run.stream(app, {"a": ["new"]}, thread("1"), wait=30.0, stream_mode="values"))
    held.end()
    waiting.join(30)

    assert outcome[0][-1]["a"] == ["held", "first", "second", "new", "x"]


def test_a_batch_takes_the_mode_as_well(run: Runner, saver: Saver, thread: Thread, plain: Any) -> None:
    config = thread("1")
    results = run.batch(plain, [{"a": [str(i)]} for i in range(3)], [config] * 3, concurrency="enqueue", wait=60.0)

    final = run.state(plain, config).values["a"]
    assert sorted(final) == ["0", "1", "2", "x", "x", "x"]
    assert len(results) == 3


def test_another_process_is_asked_through_the_store(run: Runner, saver: Saver, thread: Thread, plain: Any) -> None:
    if not has_authority(saver):
        pytest.skip("nobody to ask there")
    run.invoke(plain, {"a": ["old"]}, thread("1"))
    far = take(saver)

    with pytest.raises(ThreadBusy):
        run.invoke(plain, {"a": ["new"]}, thread("1"), concurrency="interrupt", wait=0.01)

    receipt = far.send(far.blank())
    assert row_of(saver).asked == "interrupt"
    assert receipt.row is not None
    assert receipt.row.asked == "interrupt"
    assert saver.renew([Hold(far.tno, far.epoch, far.run)]) == {far.run: "interrupt"}  # type: ignore[attr-defined]
    assert row_of(saver).owner == FAR


@pytest.mark.parametrize("mode", ["reject", "interrupt", "rollback"])
def test_a_run_that_meets_its_own_thread_is_told_so_in_any_mode(
    run: Runner, saver: Saver, thread: Thread, plain: Any, mode: str
) -> None:
    def nest(state: Any) -> dict[str, Any]:
        with pytest.raises(ThreadBusy) as busy:
            plain.invoke({"a": []}, thread("1"), concurrency=mode)
        return {"a": [busy.value.reason]}

    app = chain("nest", nest=nest).compile(checkpointer=saver)

    assert run.invoke(app, {"a": []}, thread("1"))["a"] == ["held by this run"]


def test_so_is_a_run_inside_a_run_inside_it(run: Runner, saver: Saver, thread: Thread, plain: Any) -> None:
    def innermost(state: Any) -> dict[str, Any]:
        with pytest.raises(ThreadBusy) as busy:
            plain.invoke({"a": []}, thread("1"), concurrency="interrupt")
        return {"a": [busy.value.reason]}

    inner = chain("innermost", innermost=innermost).compile(checkpointer=saver)

    def outer(state: Any) -> dict[str, Any]:
        return {"a": inner.invoke({"a": []}, thread("2"))["a"]}

    app = chain("outer", outer=outer).compile(checkpointer=saver)

    assert run.invoke(app, {"a": []}, thread("1"))["a"] == ["held by this run"]


def test_enqueue_inside_a_run_is_refused(run: Runner, saver: Saver, thread: Thread, plain: Any) -> None:
    def nest(state: Any) -> dict[str, Any]:
        with pytest.raises(InvalidInputError, match="wait for each other"):
            plain.invoke({"a": []}, thread("2"), concurrency="enqueue")
        return {"a": ["refused"]}

    app = chain("nest", nest=nest).compile(checkpointer=saver)

    assert run.invoke(app, {"a": []}, thread("1"))["a"] == ["refused"]
    assert run.state(app, thread("2")).values == {}


@pytest.mark.parametrize("options", [{"concurrency": "queue"}, {"wait": -1.0}, {"wait": "1"}, {"wait": True}])
def test_a_mode_or_wait_that_is_none_is_refused(run: Runner, thread: Thread, options: Any) -> None:
    app = chain("x").compile(checkpointer=InMemorySaver())

    with pytest.raises(InvalidInputError):
        run.invoke(app, {"a": []}, thread("1"), **options)
    with pytest.raises(InvalidInputError):
        chain("x").compile(checkpointer=InMemorySaver(), **options)


def test_a_waiting_call_can_be_cancelled(thread: Thread) -> None:
    saver = InMemorySaver()
    app = parallel("x", "y", y=mark("y")).compile(checkpointer=saver)

    async def main() -> None:
        app.invoke({"a": []}, thread("1"))
        take(saver)
        waiting = asyncio.create_task(app.ainvoke({"a": []}, thread("1"), concurrency="enqueue"))
        while not app.get_state(thread("1")).values:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["enqueue", "interrupt"])
def test_who_waits_takes_the_thread_of_a_stream_that_nobody_pulls(mode: Any, thread: Thread) -> None:
    app = chain("a", "b").compile(checkpointer=InMemorySaver())
    standing: Any = app.stream({"a": []}, thread("1"))
    next(standing)

    with ThreadPoolExecutor(1) as pool:
        later = pool.submit(lambda: app.invoke({"a": ["new"]}, thread("1"), concurrency=mode, wait=60))

    assert later.result()["a"][-2:] == ["a", "b"]
    standing.close()
