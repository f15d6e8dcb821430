"""Spans and metrics: the right parents on threads and in asyncio tasks, closed however a run ends, nothing when off."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pregel.agents import create_agent
from pregel.agents.middleware import AgentMiddleware
from pregel.agents.models.scripted import ScriptedModel, call_tool
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.checkpoint.records import Append, Receipt
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.func import task
from pregel.graph import START, StateGraph
from pregel.telemetry import active, instrument, uninstrument
from pregel.types import Command, RetryPolicy, TracePolicy, interrupt
from pregel.waits import wait_for_event

from .conftest import Runner
from .marks import Saver, State, Thread, chain, failing_once
from .test_authority import has_authority, take

EMPTY: dict[str, Any] = {"a": []}


class Traces:
    """What was exported."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.meters = MeterProvider([self.reader])
        self.tracer = self.provider.get_tracer("the program")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def status(self, name: str) -> tuple[str, bool]:
        """How what a span stands for ended, and whether that was an error."""
        span = self.one(name)
        return str((span.attributes or {})["pregel.status"]), span.status.status_code is trace.StatusCode.ERROR

    def paths(self) -> list[str]:
        """Each span as the way to it; KeyError when a span lies in one that never ended."""
        by_id = {span.context.span_id: span for span in self.spans if span.context}

        def path(span: ReadableSpan) -> str:
            return f"{path(by_id[span.parent.span_id])} > {span.name}" if span.parent else span.name

        return sorted(path(span) for span in self.spans)

    def metrics(self) -> dict[str, Any]:
        """The first point of each metric."""
        return {name: points[0] for name, points in self.points().items()}

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def traces() -> Iterator[Traces]:
    kept = Traces()
    instrument(tracer_provider=kept.provider, meter_provider=kept.meters)
    yield kept
    uninstrument()
    kept.provider.shutdown()
    kept.meters.shutdown()


def test_spans_of_a_run_lie_in_each_other(run: Runner, traces: Traces) -> None:
    def work(state: State) -> None:
        with traces.tracer.start_as_current_span("mine"):
            pass

    app = (
        StateGraph(State)
        .add_node("left", work)
        .add_node("right", work)
        .add_node("last", work)
        .add_edge(START, "left")
        .add_edge(START, "right")
        .add_edge(["left", "right"], "last")
        .compile(name="trip")
    )

    with traces.tracer.start_as_current_span("caller"):
        run.invoke(app, EMPTY)

    assert traces.paths() == [
        "caller",
        "caller > invoke_workflow trip",
        "caller > invoke_workflow trip > step 1",
        "caller > invoke_workflow trip > step 1 > node left",
        "caller > invoke_workflow trip > step 1 > node left > mine",
        "caller > invoke_workflow trip > step 1 > node right",
        "caller > invoke_workflow trip > step 1 > node right > mine",
        "caller > invoke_workflow trip > step 2",
        "caller > invoke_workflow trip > step 2 > node last",
        "caller > invoke_workflow trip > step 2 > node last > mine",
    ]
    assert traces.status("invoke_workflow trip") == ("done", False)


def test_async_nodes_have_their_own_context(traces: Traces) -> None:
    async def work(state: State) -> None:
        await asyncio.sleep(0)
        with traces.tracer.start_as_current_span("mine"):
            await asyncio.sleep(0)

    async def follow() -> None:
        app = StateGraph(State).add_node("a", work).add_node("b", work).add_node("c", work)
        app.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
        async for _ in app.compile().astream({"a": []}, stream_mode="updates"):
            assert not trace.get_current_span().get_span_context().is_valid
        assert not trace.get_current_span().get_span_context().is_valid

    asyncio.run(follow())

    mine = [path.split(" > ")[-2] for path in traces.paths() if path.endswith("mine")]
    assert mine == ["node a", "node b", "node c"]


def test_graphs_and_tasks_inside_lie_in_what_runs_them(run: Runner, traces: Traces) -> None:
    inner = chain("deep", deep=lambda state: None).compile(name="inner")
    called = chain("deeper", deeper=lambda state: None).compile(name="called", checkpointer=False)

    @task
    def add() -> int:
        return 1

    def calls(state: State) -> None:
        add().result()
        called.invoke(EMPTY)

    app = StateGraph(State).add_node("child", inner).add_node("calls", calls)
    app.add_edge(START, "child").add_edge("child", "calls")

    run.invoke(app.compile(checkpointer=InMemorySaver()), EMPTY, {"configurable": {"thread_id": "t"}})

    top = "invoke_workflow LangGraph"
    assert [path for path in traces.paths() if path.count(" > ") > 1] == [
        f"{top} > step 1 > invoke_workflow inner",
        f"{top} > step 1 > invoke_workflow inner > step 1",
        f"{top} > step 1 > invoke_workflow inner > step 1 > node deep",
        f"{top} > step 2 > node calls",
        f"{top} > step 2 > node calls > invoke_workflow called",
        f"{top} > step 2 > node calls > invoke_workflow called > step 1",
        f"{top} > step 2 > node calls > invoke_workflow called > step 1 > node deeper",
        f"{top} > step 2 > node calls > task add",
    ]
    assert {str((span.attributes or {}).get("pregel.status", "done")) for span in traces.spans} == {"done"}
    assert (traces.one(top).attributes or {})["gen_ai.conversation.id"] == "t"


def test_an_agent_says_what_it_asked_and_ran(run: Runner, traces: Traces) -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        with traces.tracer.start_as_current_span("mine"):
            return a + b

    model = ScriptedModel([call_tool("add", {"a": 1, "b": 2}, id="c1"), "three"], model="m")
    app = create_agent(model, [add], name="adder")

    run.invoke(app, {"messages": "1 + 2?"})

    top = "invoke_agent adder"
    assert [path for path in traces.paths() if path.count(" > ") > 2] == [
        f"{top} > step 1 > node model > chat m",
        f"{top} > step 2 > node tools > execute_tool add",
        f"{top} > step 2 > node tools > execute_tool add > mine",
        f"{top} > step 3 > node model > chat m",
    ]
    tool = traces.one("execute_tool add").attributes or {}
    assert (tool["gen_ai.operation.name"], tool["gen_ai.tool.call.id"]) == ("execute_tool", "c1")
    assert (traces.one(top).attributes or {})["gen_ai.agent.name"] == "adder"
    assert traces.metrics()["gen_ai.client.operation.duration"].count == 2


def test_a_model_that_is_streamed_has_a_span_too(run: Runner, traces: Traces) -> None:
    model = ScriptedModel(["one two"], model="m")

    def talk(state: State) -> dict[str, Any]:
        return {"b": "".join(str(chunk.content) for chunk in model.stream("hi"))}

    run.stream(chain("talk", talk=talk).compile(), EMPTY, stream_mode="messages")

    top = "invoke_workflow LangGraph > step 1 > node talk"
    assert [path for path in traces.paths() if "chat" in path] == [f"{top} > chat m"]


def test_a_failure_is_an_error_all_the_way_up_and_each_attempt_a_span(run: Runner, traces: Traces) -> None:
    def fails(state: State) -> None:
        raise ConnectionError("no")

    policy = RetryPolicy(initial_interval=0, jitter=False, max_attempts=2)
    app = StateGraph(State).add_node("n", fails, retry_policy=policy).add_edge(START, "n").compile()

    with pytest.raises(ConnectionError, match="no"):
        run.invoke(app, EMPTY)

    attempts = [span for span in traces.spans if span.name == "node n"]
    assert [(span.attributes or {})["pregel.task.attempt"] for span in attempts] == [1, 2]
    assert [(span.attributes or {})["error.type"] for span in attempts] == ["ConnectionError", "ConnectionError"]
    assert traces.status("invoke_workflow LangGraph") == ("failed", True)
    assert traces.metrics()["pregel.task.retries"].value == 1


def test_a_question_is_no_error(run: Runner, traces: Traces) -> None:
    inner = chain("asks", asks=lambda state: {"b": interrupt("ok?")}).compile()
    app = StateGraph(State).add_node("child", inner).add_edge(START, "child").compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "t"}}

    run.invoke(app, EMPTY, config)

    assert traces.status("node asks") == ("interrupted", False)
    assert len(traces.paths()) == 5
    assert not any(span.status.status_code is trace.StatusCode.ERROR for span in traces.spans)
    traces.exporter.clear()
    run.invoke(app, Command(resume="yes"), config)
    assert traces.status("node asks") == ("done", False)


def test_closing_a_stream_early_ends_all_spans(run: Runner, traces: Traces) -> None:
    app = chain("one", "two").compile()

    chunks = app.stream(EMPTY, stream_mode="updates")
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]  # it is a generator

    assert traces.status("invoke_workflow LangGraph") == ("cancelled", False)
    assert len(traces.paths()) == 3


def test_cancelling_ends_all_spans(traces: Traces) -> None:
    begun = asyncio.Event()

    async def waits(state: State) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def cancel() -> None:
        running = asyncio.create_task(chain("waits", waits=waits).compile().ainvoke(EMPTY))
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancel())

    assert traces.status("node waits") == ("cancelled", False)
    assert traces.status("invoke_workflow LangGraph") == ("cancelled", False)


def test_steps_are_timed(run: Runner, traces: Traces) -> None:
    run.invoke(chain("one", "two").compile(), EMPTY)

    timed = traces.metrics()["pregel.step.duration"]
    assert timed.count == 2
    assert 0 < timed.min <= timed.max <= timed.sum < 60


class Slow(SqliteSaver):
    """A saver whose appends, once a run has begun, wait until they may go on."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.may_go_on = threading.Event()

    def append(self, append: Append) -> Receipt:
        assert append.claim is not None or self.may_go_on.wait(60)
        return super().append(append)


def test_what_waits_to_be_stored_is_counted(run: Runner, traces: Traces, tmp_path: Path) -> None:
    waiting: list[float] = []

    def look(state: State) -> None:
        waiting.append(traces.metrics()["pregel.saves.pending"].value)
        saver.may_go_on.set()

    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        saver = Slow(connection)
        app = chain("one", "two", two=look).compile(checkpointer=saver)
        run.invoke(app, EMPTY, {"configurable": {"thread_id": "1"}}, durability="async")

    assert [*waiting, traces.metrics()["pregel.saves.pending"].value] == [1, 0]


def test_a_run_that_goes_on_for_a_dead_process_is_counted(run: Runner, traces: Traces, thread: Thread) -> None:
    saver = InMemorySaver()
    app = chain("one", one=failing_once("one", ValueError("it died"))).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="it died"):
        run.invoke(app, EMPTY, thread("1"))
    assert "pregel.run.takeovers" not in traces.metrics()
    traces.exporter.clear()
    take(saver, ttl=-1.0)  # another process that went on with it, and was lost

    run.invoke(app, None, thread("1"))

    counted = traces.metrics()["pregel.run.takeovers"]
    assert (counted.value, dict(counted.attributes)) == (1, {"pregel.graph": "LangGraph"})
    assert (traces.one("invoke_workflow LangGraph").attributes or {})["pregel.run.takeover"] is True


def test_metrics_are_there_whichever_was_loaded_first() -> None:
    program = """
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from pregel.telemetry import instrument
reader = InMemoryMetricReader()
instrument(meter_provider=MeterProvider([reader]))
import pregel.engine.journal
print([metric.name for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == "['pregel.saves.pending']\n"


def test_nothing_is_traced_unless_asked(run: Runner) -> None:
    kept = Traces()
    instrument(tracer_provider=kept.provider, meter_provider=kept.meters)
    uninstrument()

    run.invoke(chain("one", one=lambda state: None).compile(), EMPTY)

    assert active() is None
    assert kept.spans == ()
    kept.provider.shutdown()
    kept.meters.shutdown()


def test_a_middleware_says_what_the_spans_of_its_hooks_record(run: Runner, traces: Traces) -> None:
    class Seen(AgentMiddleware):
        trace_policy = TracePolicy(process_inputs=lambda state: len(state["messages"]))

        def before_model(self, state: Any, runtime: Any) -> None:
            return None

    run.invoke(create_agent(ScriptedModel(["done"]), middleware=[Seen()]), {"messages": "hi"})

    seen = {(span.attributes or {}).get("pregel.node"): span.attributes or {} for span in traces.spans}
    assert "1" == seen["Seen.before_model"].get("pregel.node.input")


@pytest.mark.parametrize("subgraph", [False, True])
def test_a_node_records_what_its_policy_lets_through(run: Runner, traces: Traces, subgraph: bool) -> None:
    def node(state: State) -> dict[str, Any]:
        return {"a": ["card 4111"]}

    inner = chain("x", x=node).compile() if subgraph else node
    policy = TracePolicy(process_inputs=len, process_outputs=sorted)
    graph = StateGraph(State)
    graph.add_node("pay", inner, trace_policy=policy)
    graph.add_node("hide", node, trace_policy=TracePolicy(process_outputs=lambda output: output["nothing"]))
    graph.add_edge(START, "pay").add_edge("pay", "hide")

    run.invoke(graph.compile(), {"a": [], "b": ""})

    seen = {(span.attributes or {}).get("pregel.node"): span.attributes or {} for span in traces.spans}
    recorded = [(seen[name].get("pregel.node.input"), seen[name].get("pregel.node.output")) for name in ("pay", "hide")]
    assert [("2", '["a", "b"]' if subgraph else '["a"]'), (None, None)] == recorded


@pytest.mark.acceptance("S4-19")
def test_a_week_of_work_and_a_week_of_waiting_show_as_what_they_are(
    run: Runner, traces: Traces, saver: Saver, thread: Thread
) -> None:
    if not has_authority(saver):
        pytest.skip("no waits are kept there")
    if isinstance(saver, AsyncPostgresSaver):
        pytest.skip("who collects metrics cannot await")
    weeks = 0
    seen: list[tuple[float, float, float]] = []

    def look() -> None:
        found = traces.points()
        names = ("pregel.task.running", "pregel.thread.waiting", "pregel.thread.waiting.longest")
        seen.append(tuple(sum(point.value for point in found[name]) for name in names))

    def work(state: State) -> None:
        look()

    def wait(state: State) -> None:
        wait_for_event("done")

    working = chain("work", work=work).compile(checkpointer=saver, name="working")
    waiting = chain("wait", wait=wait).compile(checkpointer=saver, name="waiting")
    telemetry = active()
    assert telemetry is not None
    telemetry.watch(waiting, now=lambda: time.time() + weeks * 7 * 86400)

    run.invoke(working, EMPTY, thread("1"))
    run.invoke(waiting, EMPTY, thread("2"))
    weeks = 1
    look()
    weeks = 0
    waiting.threads.send_event("2", "done")
    run.invoke(waiting, None, thread("2"))
    look()

    assert [(1, 0), (0, 1), (0, 0)] == [(running, threads) for running, threads, _ in seen]
    assert [0, True, 0] == [seen[0][2], 7 * 86400 <= seen[1][2] < 8 * 86400, seen[2][2]]
    attempts = traces.points()["pregel.task.duration"]
    assert {("work", "done"): 1, ("wait", "interrupted"): 1, ("wait", "done"): 1} == {
        (point.attributes["pregel.node"], point.attributes["pregel.status"]): point.count for point in attempts
    }
    assert sum(point.sum for point in attempts) < 7 * 86400  # the week of waiting is in none of them
