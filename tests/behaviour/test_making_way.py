"""A run that makes way for another one: what runs is cancelled, what had ended is kept, nothing new starts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pregel.checkpoint.keys import id_bytes
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Hold
from pregel.errors import CallWithdrawn, RunDisplaced, ThreadBusy
from pregel.func import task
from pregel.runtime import Runtime
from pregel.types import DURABILITIES, interrupt

from .conftest import Awaiting, Runner
from .journals import Run
from .marks import Saver, Thread, chain, mark, parallel
from .test_authority import FAR, has_authority, journal_here, row_of
from .test_concurrency import beside


class Waiting:
    """An async node that waits for ever the first time, and what became of it."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.calls: list[str] = []

    async def node(self, state: Any) -> dict[str, Any]:
        self.calls.append("started")
        if len(self.calls) == 1:
            self.reached.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.calls.append("unwound")
        return {"a": ["waited"]}


def ends(app: Any, config: Any, given: Any, **options: Any) -> Callable[[], Any]:
    """What becomes of a run that is awaited, and whether its asyncio task is left as it was."""

    async def run() -> Any:
        try:
            return await app.ainvoke(given, config, **options)
        except RunDisplaced as error:
            own = asyncio.current_task()
            assert own is not None
            assert own.cancelling() == 0
            await asyncio.sleep(0)  # nobody cancels it any more
            return error

    return lambda: asyncio.run(run())


def test_an_async_node_is_cancelled_and_the_newcomer_goes_on(run: Runner, saver: Saver, thread: Thread) -> None:
    waiting = Waiting()
    app = chain("first", "wait", wait=waiting.node).compile(checkpointer=saver)
    first, outcome = beside(ends(app, thread("1"), {"a": ["old"]}))
    assert waiting.reached.wait(30)

    newcomer = chain("new").compile(checkpointer=saver)
    result = run.invoke(newcomer, {"a": ["in"]}, thread("1"), concurrency="interrupt", wait=60.0)
    first.join(30)

    assert ["started", "unwound"] == waiting.calls
    assert ("interrupt", "a newer run asked for the thread (interrupt)") == (outcome[0].asked, outcome[0].reason)
    assert ["old", "first", "in", "new"] == result["a"]


def test_what_had_ended_is_kept_and_what_was_cancelled_runs_again(saver: Saver, thread: Thread) -> None:
    waiting, calls = Waiting(), list[str]()
    app = parallel("beside", "wait", beside=mark("beside", calls), wait=waiting.node).compile(checkpointer=saver)
    first, outcome = beside(ends(app, thread("1"), {"a": []}))
    assert waiting.reached.wait(30)
    while not any(found.result for found in app.get_state(thread("1")).tasks):
        pass

    result = Awaiting().invoke(app, None, thread("1"), concurrency="interrupt", wait=60.0)
    first.join(30)

    assert isinstance(outcome[0], RunDisplaced)
    assert (["beside"], ["started", "unwound", "started"]) == (calls, waiting.calls)
    assert ["beside", "waited"] == result["a"]


def test_rollback_goes_on_from_before_the_run_that_it_cancelled(run: Runner, saver: Saver, thread: Thread) -> None:
    waiting = Waiting()
    app = chain("first", "wait", wait=waiting.node).compile(checkpointer=saver)
    newcomer = chain("new").compile(checkpointer=saver)
    run.invoke(newcomer, {"a": ["old"]}, thread("1"))
    first, outcome = beside(ends(app, thread("1"), {"a": ["gone"]}))
    assert waiting.reached.wait(30)

    result = run.invoke(newcomer, {"a": ["in"]}, thread("1"), concurrency="rollback", wait=60.0)
    first.join(30)

    assert (["started", "unwound"], "rollback") == (waiting.calls, outcome[0].asked)
    assert ["old", "new", "in", "new"] == result["a"]
    assert ["old", "new", "gone", "first"] in [entry.values.get("a") for entry in run.history(newcomer, thread("1"))]


def test_who_rolls_back_a_run_that_had_rolled_one_back_goes_on_from_before_both(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    newcomer = chain("new").compile(checkpointer=saver)
    run.invoke(newcomer, {"a": ["old"]}, thread("1"))
    runs = []
    for number in range(2):
        waiting = Waiting()
        app = chain("wait", wait=waiting.node).compile(checkpointer=saver)
        runs.append(beside(ends(app, thread("1"), {"a": [f"gone {number}"]}, concurrency="rollback")))
        assert waiting.reached.wait(30)

    result = run.invoke(newcomer, {"a": ["in"]}, thread("1"), concurrency="rollback", wait=60.0)
    for one, _ in runs:
        one.join(30)

    assert ["rollback", "rollback"] == [outcome[0].asked for _, outcome in runs]
    assert ["old", "new", "in", "new"] == result["a"]


def test_rollback_goes_back_to_a_checkpoint_of_the_root_graph(run: Runner, saver: Saver, thread: Thread) -> None:
    asks = chain("before", "ask", ask=lambda state: {"a": [interrupt("go on?")]}).compile()
    app = chain("sub", sub=asks).compile(checkpointer=saver)
    run.invoke(app, {"a": ["old"]}, thread("1"))  # the thread's newest checkpoint is the subgraph's
    waiting = Waiting()
    gone = chain("wait", wait=waiting.node).compile(checkpointer=saver)
    first, _ = beside(ends(gone, thread("1"), {"a": ["gone"]}))
    assert waiting.reached.wait(30)

    newcomer = chain("new").compile(checkpointer=saver)
    result = run.invoke(newcomer, {"a": ["in"]}, thread("1"), concurrency="rollback", wait=60.0)
    first.join(30)

    assert ["old", "in", "new"] == result["a"]


def test_an_async_task_that_is_cancelled_before_it_begins_has_ended(thread: Thread) -> None:
    calls: list[str] = []
    journals: list[Any] = []

    def first(state: Any) -> dict[str, Any]:
        journals.append(journal_here())
        return {"a": ["first"]}

    def asking(loop: Any, work: Any, **options: Any) -> asyncio.Task[Any]:
        if journals and work.__qualname__ == "AwaitingDriver._body":  # asked just when the first of them is made
            journals[0].heed("interrupt")
        return asyncio.Task(work, loop=loop, **options)

    async def never(state: Any) -> None:
        calls.append("never")

    graph = chain("first", first=first).add_node("one", never).add_node("two", never)
    app = graph.add_edge("first", "one").add_edge("first", "two").compile(checkpointer=InMemorySaver())

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asking)
        with pytest.raises(RunDisplaced):
            async for _ in app.astream({"a": []}, thread("1"), stream_mode="custom"):
                pass

    asyncio.run(main())

    assert [] == calls


def asks_for_itself(saver: Any) -> None:
    """Ask the run of this node to make way through the store alone, as another process would."""
    hold = journal_here().hold
    assert hold is not None
    assert saver.ask(hold, "interrupt")


@pytest.mark.parametrize("durability", DURABILITIES)
def test_a_run_that_hears_of_it_with_its_append_starts_nothing_more(
    run: Runner, saver: Saver, thread: Thread, durability: str
) -> None:
    if not has_authority(saver):
        pytest.skip("no word can be left there")
    calls: list[str] = []

    def first(state: Any) -> dict[str, Any]:
        asks_for_itself(saver)
        return {"a": ["first"]}

    nodes = {name: mark(name, calls) for name in ("second", "third", "fourth")}
    app = chain("first", "second", "third", "fourth", first=first, **nodes).compile(checkpointer=saver)

    if durability == "exit":  # the heartbeat brings it, and no append before the end
        assert "fourth" in run.invoke(app, {"a": []}, thread("1"), durability=durability)["a"]
        return
    with pytest.raises(RunDisplaced):
        run.invoke(app, {"a": []}, thread("1"), durability=durability)

    assert len(calls) <= (0 if durability == "sync" else 2)
    assert ["first", *calls] == run.state(app, thread("1")).values["a"]
    info = app.threads.status("1")
    assert ("idle", True) == (info.status, info.can_resume)
    assert "asked for the thread" in info.reason
    assert ["first", "second", "third", "fourth"] == run.invoke(app, None, thread("1"))["a"]


def test_a_blocking_node_is_met_at_its_next_step(run: Runner, saver: Saver, thread: Thread) -> None:
    made: list[str] = []
    left = ["x"]

    def make(name: str) -> str:
        made.append(name)
        return name

    def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        one = runtime.step("one", lambda: make("one"))
        if left:
            left.clear()
            journal_here().heed("interrupt")  # another run of this process asks
        two = runtime.step("two", lambda: make("two"))
        return {"a": [one, two]}

    app = chain("node", node=node).compile(checkpointer=saver)

    with pytest.raises(RunDisplaced):
        run.invoke(app, {"a": []}, thread("1"))
    assert ["one"] == made
    assert app.threads.can_resume("1")

    assert ["one", "two"] == run.invoke(app, None, thread("1"))["a"]
    assert ["one", "two"] == made


def calls_a_task(runtime: Runtime[Any], calls: list[str]) -> None:
    task(lambda: calls.append("task"))().result()


def calls_a_graph(runtime: Runtime[Any], calls: list[str]) -> None:
    chain("inner", inner=mark("inner", calls)).compile().invoke({"a": []})


def says_that_it_is_alive(runtime: Runtime[Any], calls: list[str]) -> None:
    runtime.heartbeat()


@pytest.mark.parametrize("effect", [calls_a_task, calls_a_graph, says_that_it_is_alive])
def test_so_it_is_at_its_next_call_or_heartbeat(run: Runner, thread: Thread, effect: Any) -> None:
    calls: list[str] = []
    left = ["x"]

    def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        if left:
            left.clear()
            journal_here().heed("interrupt")
            with pytest.raises(CallWithdrawn) as withdrawn:
                effect(runtime, calls)
            raise withdrawn.value
        return {"a": ["node"]}

    app = chain("node", node=node).compile(checkpointer=InMemorySaver())

    with pytest.raises(RunDisplaced):
        run.invoke(app, {"a": []}, thread("1"))

    assert [] == calls
    assert ["node"] == run.invoke(app, None, thread("1"))["a"]


def test_a_node_that_swallows_its_cancellation_has_ended_well(thread: Thread) -> None:
    async def swallows(state: Any) -> dict[str, Any]:
        journal_here().heed("interrupt")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return {"a": ["swallowed"]}
        return {}

    app = chain("swallows", "next", swallows=swallows).compile(checkpointer=InMemorySaver())

    assert isinstance(ends(app, thread("1"), {"a": []})(), RunDisplaced)  # it looks at its asyncio task, too
    assert ["swallowed"] == app.get_state(thread("1")).values["a"]
    assert ["swallowed", "next"] == app.invoke(None, thread("1"))["a"]


def test_who_is_cancelled_meanwhile_hears_of_that(thread: Thread) -> None:
    async def main() -> None:
        async def waits(state: Any) -> None:
            journal_here().heed("interrupt")
            try:
                await asyncio.Event().wait()
            finally:
                call.cancel()

        app = chain("waits", waits=waits).compile(checkpointer=InMemorySaver())
        call = asyncio.ensure_future(app.ainvoke({"a": []}, thread("1")))
        with pytest.raises(asyncio.CancelledError):
            await call
        assert app.threads.can_resume("1")

    asyncio.run(main())


def test_a_subgraph_makes_way_with_its_run(saver: Saver, thread: Thread) -> None:
    waiting, calls = Waiting(), list[str]()
    inner = chain("before", "wait", before=mark("before", calls), wait=waiting.node).compile()
    app = parallel("sub", "beside", sub=inner).compile(checkpointer=saver)
    first, outcome = beside(ends(app, thread("1"), {"a": []}))
    assert waiting.reached.wait(30)

    result = Awaiting().invoke(app, None, thread("1"), concurrency="interrupt", wait=60.0)
    first.join(30)

    assert isinstance(outcome[0], RunDisplaced)
    assert (["before"], ["started", "unwound", "started"]) == (calls, waiting.calls)
    assert ["beside", "before", "waited"] == result["a"]


def test_a_stream_that_goes_from_task_to_task_cancels_none_but_its_node(thread: Thread) -> None:
    waiting = Waiting()
    app = chain("first", "wait", wait=waiting.node).compile(checkpointer=InMemorySaver())

    async def main() -> None:
        stream: Any = app.astream({"a": []}, thread("1"))

        pulled = asyncio.Event()

        async def first() -> Any:
            await anext(stream)
            pulled.set()
            await asyncio.Event().wait()

        one = asyncio.create_task(first())
        await pulled.wait()
        two = asyncio.create_task(anext(stream))
        while not waiting.reached.is_set():
            await asyncio.sleep(0)
        await app.ainvoke({"a": []}, thread("1"), concurrency="interrupt", wait=60.0)
        with pytest.raises(RunDisplaced):
            await two
        assert not one.done()
        one.cancel()

    asyncio.run(main())


@pytest.mark.parametrize("mode", ["interrupt", "rollback"])
def test_who_gave_up_waiting_is_told_that_the_other_run_stops_all_the_same(
    run: Runner, saver: Saver, thread: Thread, mode: str
) -> None:
    reached, go = threading.Event(), threading.Event()

    def blocks(state: Any) -> dict[str, Any]:
        reached.set()
        assert go.wait(30)
        return {"a": ["blocked"]}

    app = chain("blocks", "next", blocks=blocks).compile(checkpointer=saver)
    first, outcome = beside(ends(app, thread("1"), {"a": []}))
    assert reached.wait(30)

    with pytest.raises(ThreadBusy, match=rf"{mode}.*stops for it") as busy:
        run.invoke(app, {"a": []}, thread("1"), concurrency=mode, wait=0.01)
    with pytest.raises(ThreadBusy) as enqueued:
        run.invoke(app, {"a": []}, thread("1"), concurrency="enqueue", wait=0.01)
    if has_authority(saver):
        assert mode == row_of(saver).asked
    go.set()
    first.join(30)

    assert (mode, "") == (busy.value.asked, enqueued.value.asked)
    assert mode == outcome[0].asked
    assert ["blocked"] == app.get_state(thread("1")).values["a"]


# -- who comes after a run that is rolled back -------------------------------------------------------------------------


def gone_at(saver: Saver, config: Any, given: Any = None, *, mode: str = "rollback") -> None:
    """A run that stops since another one asks, through the store, which is then never seen again."""

    def first(state: Any) -> dict[str, Any]:
        hold = journal_here().hold
        assert hold is not None
        assert saver.ask(hold, mode)  # type: ignore[attr-defined]
        return {"a": ["first"]}

    app = chain("first", "second", first=first).compile(checkpointer=saver)
    with pytest.raises(RunDisplaced, match=mode):
        app.invoke(given or {"a": ["gone"]}, config)


@pytest.fixture
def leased(saver: Saver) -> Saver:
    """A saver in which word can be left."""
    if not has_authority(saver):
        pytest.skip("no word can be left there")
    return saver


@pytest.mark.parametrize("mode", ["reject", "enqueue", "interrupt", "rollback"])
@pytest.mark.parametrize("before", [False, True], ids=["new thread", "old thread"])
def test_whoever_comes_after_a_run_that_was_rolled_back_goes_on_from_before_it(
    run: Runner, leased: Saver, thread: Thread, mode: str, before: bool
) -> None:
    newcomer = chain("new").compile(checkpointer=leased)
    if before:
        run.invoke(newcomer, {"a": ["old"]}, thread("1"))
    gone_at(leased, thread("1"))

    result = run.invoke(newcomer, {"a": ["in"]}, thread("1"), concurrency=mode)

    old = ["old", "new"] if before else []
    assert [*old, "in", "new"] == result["a"]
    assert result == run.state(newcomer, thread("1")).values
    assert [*old, "in", "new", "then", "new"] == run.invoke(newcomer, {"a": ["then"]}, thread("1"))["a"]
    assert [*old, "gone", "first"] in [entry.values.get("a") for entry in run.history(newcomer, thread("1"))]


@pytest.mark.parametrize("durability", DURABILITIES)
@pytest.mark.parametrize("before", [False, True], ids=["new thread", "old thread"])
def test_nothing_of_it_is_left_in_what_the_newcomer_does_not_write(
    run: Runner, leased: Saver, thread: Thread, durability: str, before: bool
) -> None:
    newcomer = chain("new", new=lambda state: {"b": "new"}).compile(checkpointer=leased)
    if before:
        run.invoke(newcomer, {"b": "old"}, thread("1"))
    gone_at(leased, thread("1"))

    result = run.invoke(newcomer, {"b": "in"}, thread("1"), durability=durability)

    assert {"a": [], "b": "new"} == result
    assert result == run.state(newcomer, thread("1")).values
    shown = [entry.values for entry in run.history(newcomer, thread("1"))]
    assert not any(values.get("a") for values in shown if values.get("b") == "in")


@pytest.mark.parametrize("mode", ["enqueue", "interrupt"])
def test_so_does_one_that_waits_beside_who_rolls_back(run: Runner, saver: Saver, thread: Thread, mode: str) -> None:
    reached, go = threading.Event(), threading.Event()

    def blocks(state: Any) -> dict[str, Any]:
        reached.set()
        assert go.wait(30)
        return {"a": ["blocked"]}

    newcomer = chain("new").compile(checkpointer=saver)
    run.invoke(newcomer, {"a": ["old"]}, thread("1"))
    app = chain("blocks", "next", blocks=blocks).compile(checkpointer=saver)
    first, outcome = beside(ends(app, thread("1"), {"a": ["gone"]}))
    assert reached.wait(30)
    for asks in ("rollback", mode):  # and does not wait for it
        with pytest.raises(ThreadBusy):
            run.invoke(newcomer, {"a": []}, thread("1"), concurrency=asks, wait=0.0)
    waiting, came = beside(lambda: run.invoke(newcomer, {"a": ["in"]}, thread("1"), concurrency=mode, wait=60.0))
    go.set()
    for one in (first, waiting):
        one.join(30)

    assert "rollback" == outcome[0].asked
    assert [["old", "new", "in", "new"]] == [result["a"] for result in came]


def test_who_rolls_back_one_that_was_to_be_interrupted_has_it_rolled_back(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    reached, go = threading.Event(), threading.Event()

    def blocks(state: Any) -> dict[str, Any]:
        reached.set()
        assert go.wait(30)
        return {"a": ["blocked"]}

    newcomer = chain("new").compile(checkpointer=saver)
    first, outcome = beside(ends(chain("b", b=blocks).compile(checkpointer=saver), thread("1"), {"a": ["gone"]}))
    assert reached.wait(30)
    for asks in ("interrupt", "rollback"):
        with pytest.raises(ThreadBusy):
            run.invoke(newcomer, {"a": []}, thread("1"), concurrency=asks, wait=0.0)
    waiting, came = beside(lambda: run.invoke(newcomer, {"a": ["in"]}, thread("1"), concurrency="enqueue", wait=60.0))
    go.set()
    for one in (first, waiting):
        one.join(30)

    assert "rollback" == outcome[0].asked
    assert [["in", "new"]] == [result["a"] for result in came]


def test_a_run_that_died_asked_to_be_rolled_back_is_left_out(run: Runner, leased: Saver, thread: Thread) -> None:
    newcomer = chain("new").compile(checkpointer=leased)
    run.invoke(newcomer, {"a": ["old"]}, thread("1"))
    dies = Run(leased, "1", owner=FAR)  # type: ignore[arg-type]  # it is a journal
    claim = dies.blank(claim=True, ttl=-1.0)
    assert claim.claim is not None
    claim.claim.pin = id_bytes(dies.checkpoint or "")
    assert dies.send(claim).landed
    dies.save({"a": ["gone"]})
    assert leased.ask(Hold(dies.tno, dies.epoch, dies.run), "rollback")  # type: ignore[attr-defined]

    assert ["old", "new", "in", "new"] == run.invoke(newcomer, {"a": ["in"]}, thread("1"))["a"]


def test_it_can_be_gone_on_with_and_whoever_rolls_that_back_goes_back_before_both(
    run: Runner, leased: Saver, thread: Thread
) -> None:
    newcomer = chain("new").compile(checkpointer=leased)
    run.invoke(newcomer, {"a": ["old"]}, thread("1"))
    gone_at(leased, thread("1"))
    waiting = Waiting()
    app = chain("first", "second", second=waiting.node).compile(checkpointer=leased)
    assert app.threads.can_resume("1")
    second, outcome = beside(ends(app, thread("1"), None))
    assert waiting.reached.wait(30)
    seen = run.state(app, thread("1")).values["a"]

    result = run.invoke(newcomer, {"a": ["in"]}, thread("1"), concurrency="rollback", wait=60.0)
    second.join(30)

    assert (["old", "new", "gone", "first"], "rollback") == (seen, outcome[0].asked)
    assert ["old", "new", "in", "new"] == result["a"]


def test_where_it_had_started_may_have_been_removed(run: Runner, leased: Saver, thread: Thread) -> None:
    newcomer = chain("new").compile(checkpointer=leased)
    run.invoke(newcomer, {"a": ["old"]}, thread("1"))
    gone_at(leased, thread("1"))
    newcomer.threads.prune(["1"])
    newcomer.threads.copy("1", "2")

    for name in ("1", "2"):
        assert ["old", "new", "gone", "first", "in", "new"] == run.invoke(newcomer, {"a": ["in"]}, thread(name))["a"]
