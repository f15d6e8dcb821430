"""Run objects under strain: transformers, slow and vanished consumers, runs that are aborted, wrong use."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from pregel.errors import InvalidInputError, StreamUseError, UnknownProjectionError
from pregel.graph import START, StateGraph
from pregel.stream import CustomTransformer, StreamChannel, StreamTransformer, UpdatesTransformer
from pregel.stream.reading import CROWD
from pregel.types import Send, StreamWriter

from .conftest import Awaiting, Runner
from .marks import Saver, State, Thread, chain, mark
from .run_objects import read


def opened(app: Any, *transformers: Any) -> Any:
    return app.stream_events({"a": []}, version="v3", transformers=transformers)


def numbers(count: int) -> Any:
    """A graph whose node writes that many numbers."""

    def write(state: State, writer: StreamWriter) -> None:
        for number in range(count):
            writer(number)

    return StateGraph(State).add_node("x", write).add_edge(START, "x").compile()


# -- transformers ------------------------------------------------------------------------------------------------------


class Seen(StreamTransformer):
    """What it sees, in a projection with a name and in one without; updates it keeps from the events."""

    required_stream_modes = ("updates",)

    def init(self) -> dict[str, Any]:
        self.told: StreamChannel[str] = StreamChannel("seen")
        self.quiet: StreamChannel[int] = StreamChannel()
        return {"seen": self.told, "quiet": self.quiet, "scope_of_it": self.scope}

    def process(self, event: Any) -> bool:
        self.told.push(event["method"])
        self.quiet.push(1)
        return bool(event["method"] != "updates")

    def finalize(self) -> None:
        self.told.push("end")


def test_a_transformer_makes_projections_and_keeps_events_back(run: Runner) -> None:
    app = chain("x").compile(transformers=[Seen])

    found = read(run, app, "seen quiet events", {"a": []}, transformers=[Seen])  # of the graph and the call: once

    assert found["seen"] == ["values", "tasks", "updates", "tasks", "values", "end"]
    assert len(found["quiet"]) == 5
    shown = [(one["method"], one["params"]["data"]) for one in found["events"]]
    assert [data for method, data in shown if method == "custom:seen"] == found["seen"]
    assert {method for method, _ in shown} == {"values", "custom:seen"}


def test_the_projections_of_a_transformer_are_extensions() -> None:
    run = opened(chain("x").compile(), Seen)

    assert run.extensions["scope_of_it"] == ()
    assert set(run.extensions) >= {"values", "messages", "lifecycle", "subgraphs", "seen", "quiet"}
    with pytest.raises(AttributeError, match="registered projections: lifecycle, messages, subgraphs, values"):
        _ = run.seen
    with pytest.raises(UnknownProjectionError, match="nope"):
        run.interleave("values", "nope")


def test_each_graph_inside_has_a_transformer_of_its_own(run: Runner) -> None:
    scopes: list[int] = []

    class Scoped(StreamTransformer):
        def init(self) -> dict[str, Any]:
            scopes.append(len(self.scope))
            return {}

    app = chain("child", child=chain("leaf", leaf=chain("x").compile()).compile()).compile()

    read(run, app, "output", {"a": []}, transformers=[Scoped])

    assert scopes == [0, 1, 2]


def test_one_that_comes_before_the_built_in_ones_can_change_events(run: Runner) -> None:
    class Redacting(StreamTransformer):
        before_builtins = True

        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: Any) -> bool:
            event["params"]["data"] = "redacted" if event["method"] == "values" else event["params"]["data"]
            return True

    assert read(run, chain("x").compile(), "values", {"a": []}, transformers=[Redacting]) == ["redacted"] * 2


@pytest.mark.parametrize("method", ["process", "finalize"])
def test_an_error_of_a_transformer_ends_the_run(run: Runner, method: str) -> None:
    error, told = ValueError("broken"), list[BaseException]()

    class Broken(UpdatesTransformer):
        def fail(self, err: BaseException) -> None:
            told.append(err)

    def broken(*_: Any) -> bool:
        raise error

    setattr(Broken, method, broken)
    calls: list[str] = []
    app = chain("x", "y", "z", x=mark("x", calls), y=mark("y", calls), z=mark("z", calls)).compile()

    found = read(run, app, "values output", {"a": []}, transformers=[Broken])

    assert (found["values"][1], found["output"]) == (error, error)
    if method == "process":
        assert (told, calls) == ([error], [])


def test_an_async_transformer_works_in_awaited_runs_only() -> None:
    class Late(StreamTransformer):
        def init(self) -> dict[str, Any]:
            self.late: StreamChannel[str] = StreamChannel("late")
            return {"late": self.late}

        async def aprocess(self, event: Any) -> bool:
            self.schedule(self.tell(event["method"]))
            return True

        async def tell(self, method: str) -> None:
            await asyncio.sleep(0)
            self.late.push(method)
            if method == "tasks":
                raise ValueError("logged, as it was asked for")

    app = chain("x").compile()

    with pytest.raises(StreamUseError, match="awaited runs only"):
        opened(app, Late)
    assert read(Awaiting(), app, "late", {"a": []}, transformers=[Late]) == ["values", "tasks", "tasks", "values"]


def test_what_was_scheduled_may_end_the_run() -> None:
    class Strict(StreamTransformer):
        requires_async = True

        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: Any) -> bool:
            self.schedule(self.fail_soon(), on_error="raise")
            return True

        async def fail_soon(self) -> None:
            raise ValueError("broken")

    found = read(Awaiting(), chain("x").compile(), "output", {"a": []}, transformers=[Strict])

    assert str(found) == "broken"


@pytest.mark.parametrize(
    ("transformer", "error", "said"),
    [
        (Seen(), TypeError, "holds an instance of Seen"),
        (lambda scope: 5, StreamUseError, "made int"),
        (type("Again", (Seen,), {"init": lambda self: {"values": StreamChannel()}}), ValueError, "'values' .of Values"),
        (type("Bad", (Seen,), {"init": lambda self: []}), TypeError, "returned list"),
    ],
)
def test_a_transformer_that_cannot_work_is_refused_at_once(transformer: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        opened(chain("x").compile(), transformer)


# -- reading -----------------------------------------------------------------------------------------------------------


def test_a_projection_has_one_subscriber_or_several_at_once() -> None:
    run = opened(chain("x").compile())
    first, second = run.values.tee(2)

    assert list(first) == list(second) == [{"a": []}, {"a": ["x"]}]
    with pytest.raises(RuntimeError, match="already has a subscriber"):
        iter(run.values)


def test_a_projection_is_read_the_way_its_run_was_started() -> None:
    app = chain("x").compile()

    with pytest.raises(TypeError, match="opened the other way"):
        aiter(opened(app).values)
    with pytest.raises(TypeError, match="opened the other way"):
        iter(app.astream_events({"a": []}, version="v3").values)
    with pytest.raises(TypeError, match="belongs to no run"):
        iter(StreamChannel[int]())
    with pytest.raises(InvalidInputError, match="positive"):
        StreamChannel(maxlen=0)


def test_nothing_is_kept_for_who_comes_when_the_run_is_over() -> None:
    run = opened(chain("x").compile())

    assert run.output == {"a": ["x"]}
    assert list(run.values) == []


def test_interleaved_projections_come_as_they_happen(run: Runner) -> None:
    app = chain("x", "y").compile()

    async def follow() -> list[Any]:
        events = app.astream_events({"a": []}, version="v3", transformers=[UpdatesTransformer])
        return [pair async for pair in events.interleave("updates", "values")]

    if isinstance(run, Awaiting):
        found = asyncio.run(follow())
    else:
        found = list(opened(app, UpdatesTransformer).interleave("updates", "values"))

    assert [name for name, _ in found] == ["values", "updates", "values", "updates", "values"]
    assert found[1] == ("updates", {"x": {"a": ["x"]}})


def test_graphs_side_by_side_are_read_one_after_the_other(run: Runner) -> None:
    graph = StateGraph(State).add_node("child", chain("x").compile())
    graph.add_conditional_edges(START, lambda state: [Send("child", {"a": [name]}) for name in "pqr"])

    found = read(run, graph.compile(), "subgraphs", {"a": []})

    assert [values for _, values, _, _ in found] == [[{"a": [name]}, {"a": [name, "x"]}] for name in "pqr"]


def test_more_than_is_held_for_a_graph_is_an_error_not_a_gap() -> None:
    app = chain("child", child=numbers(2 * CROWD)).compile()
    run = opened(app, CustomTransformer)

    (child,) = run.subgraphs

    assert list(child.values) == [{"a": []}]
    with pytest.raises(StreamUseError, match="more than is held"):
        list(child.custom)


# -- slow and vanished consumers ---------------------------------------------------------------------------------------


def test_a_run_waits_for_its_slowest_consumer(run: Runner) -> None:
    count, ahead = 5 * CROWD, [0]
    app = numbers(count)
    taken = [0]

    def behind(number: int) -> None:
        ahead[0] = max(ahead[0], number - taken[0])

    async def follow() -> None:
        events = app.astream_events({"a": []}, version="v3", transformers=[CustomTransformer])
        fast, slow = events.custom.atee(2)

        async def run_ahead() -> None:
            async for number in fast:
                behind(number)

        async def lag() -> None:
            async for number in slow:
                taken[0] = number
                if number % 64 == 0:
                    await asyncio.sleep(0)

        await asyncio.gather(run_ahead(), lag())

    def block() -> None:
        fast, slow = opened(app, CustomTransformer).custom.tee(2)

        def lag() -> None:
            for number in slow:
                taken[0] = number

        lagging = threading.Thread(target=lag)
        lagging.start()
        for number in fast:
            behind(number)
        lagging.join(60)

    if isinstance(run, Awaiting):
        asyncio.run(follow())
    else:
        block()

    assert taken[0] == count - 1
    assert ahead[0] <= CROWD + 2  # and one in each hand


def test_who_waits_for_itself_is_told(run: Runner) -> None:
    app = numbers(2 * CROWD)

    async def follow() -> None:
        first, second = app.astream_events({"a": []}, version="v3", transformers=[CustomTransformer]).custom.atee(2)
        await anext(second)
        async for _ in first:
            pass

    def block() -> None:
        first, second = opened(app, CustomTransformer).custom.tee(2)
        next(second)
        for _ in first:
            pass

    with pytest.raises(StreamUseError, match="holds as many items as it may"):
        asyncio.run(follow()) if isinstance(run, Awaiting) else block()


def test_an_iterator_that_nobody_ever_reads_is_not_waited_for_long() -> None:
    async def follow() -> None:
        first, _second = app.astream_events({"a": []}, version="v3", transformers=[CustomTransformer]).custom.atee(2)
        async for _ in first:
            pass

    app = numbers(CROWD + 1)

    with pytest.raises(StreamUseError, match="holds as many items as it may"):
        asyncio.run(follow())


def test_a_reader_that_is_dropped_holds_nobody_up() -> None:
    run = opened(numbers(2 * CROWD), CustomTransformer)

    for number in run.custom:
        assert number == 0
        break

    assert run.output == {"a": []}


def test_a_task_that_is_cancelled_leaves_the_run_to_the_others() -> None:
    async def work(state: State) -> State:
        started.set()
        await go_on.wait()
        return {"a": ["x"]}

    async def follow() -> tuple[Any, bool]:
        events = chain("x", "y", x=work).compile().astream_events({"a": []}, version="v3")

        async def watch() -> None:
            async for _ in events.values:
                pass

        watching, ending = asyncio.create_task(watch()), asyncio.create_task(events.output())
        await started.wait()
        watching.cancel()
        await asyncio.wait([watching])
        go_on.set()
        return await ending, watching.cancelled()

    async def main() -> tuple[Any, bool]:
        return await asyncio.wait_for(follow(), 60)

    started, go_on = asyncio.Event(), asyncio.Event()

    assert asyncio.run(main()) == ({"a": ["x", "y"]}, True)


def test_a_transformer_that_reads_its_own_run_is_told(run: Runner) -> None:
    class Greedy(StreamTransformer):
        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: Any) -> bool:
            return bool(next(iter(self.mux.projections["values"])))

    class AsyncGreedy(Greedy):
        async def aprocess(self, event: Any) -> bool:
            return bool(await anext(aiter(self.mux.projections["values"])))

    kind = AsyncGreedy if isinstance(run, Awaiting) else Greedy
    found = read(run, chain("x").compile(), "output", {"a": []}, transformers=[kind])

    assert "reads the run that it is a part of" in str(found)


# -- aborting ----------------------------------------------------------------------------------------------------------


def aborted(run: Runner, app: Any, *args: Any) -> tuple[list[Any], Any]:
    """The values that show before and after an abort behind the first of them, and the output."""

    def block() -> tuple[list[Any], Any]:
        with app.stream_events(*args, version="v3") as events:
            values = iter(events.values)
            shown = [next(values)]
        return [*shown, *values], events.output

    async def follow() -> tuple[list[Any], Any]:
        async with app.astream_events(*args, version="v3") as events:
            values = aiter(events.values)
            shown = [await anext(values)]
        return [*shown, *[value async for value in values]], await events.output()

    return asyncio.run(follow()) if isinstance(run, Awaiting) else block()


def test_a_run_that_is_aborted_keeps_what_has_finished(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    app = chain("x", "y", x=mark("x", calls), y=mark("y", calls)).compile(checkpointer=saver)

    assert aborted(run, app, {"a": []}, thread("1")) == ([{"a": []}], {"a": []})
    assert (run.state(app, thread("1")).next, calls) == (("x",), [])
    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y"]}


def test_a_graph_inside_of_a_run_is_not_aborted_alone() -> None:
    run = opened(chain("child", child=chain("x").compile()).compile())

    with pytest.raises(StreamUseError, match="alone"), next(iter(run.subgraphs)) as child:
        child.abort()


def test_a_transformer_may_abort_its_run() -> None:
    stop: list[Callable[[], None]] = []

    class Impatient(UpdatesTransformer):
        def process(self, event: Any) -> bool:
            if event["method"] == "updates":
                stop[0]()
            return super().process(event)

    calls: list[str] = []
    run = opened(chain("x", "y", x=mark("x", calls), y=mark("y", calls)).compile(), Impatient)
    stop.append(run.abort)

    assert list(run.updates) == [{"x": {"a": ["x"]}}]
    assert calls == ["x"]


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit])
def test_a_hard_stop_reaches_whoever_reads(
    run: Runner, fatal: type[BaseException], saver: Saver, thread: Thread
) -> None:
    def stop(state: State) -> State:
        raise fatal

    app = chain("x", "y", y=stop).compile(checkpointer=saver)

    async def follow() -> Any:
        return await app.astream_events({"a": []}, thread("1"), version="v3").output()

    def block() -> Any:
        return app.stream_events({"a": []}, thread("1"), version="v3").output

    with pytest.raises(fatal):
        asyncio.run(follow()) if isinstance(run, Awaiting) else block()
    assert run.state(app, thread("1")).next == ("y",)
