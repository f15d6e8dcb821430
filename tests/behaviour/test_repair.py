"""A run that failed or was stopped, and is taken up again: what had succeeded stays, what had not is done."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any, TypedDict

import pytest

from pregel.errors import GraphDrained
from pregel.graph import START, StateGraph
from pregel.runtime import RunControl, Runtime
from pregel.types import Send

from .conftest import Runner
from .marks import Saver, Thread, chain
from .test_authority import has_authority
from .test_thread_api import Api


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


class Load(Log, total=False):
    number: int


class Warehouse:
    """Steps that are counted, and a setting that is wrong at first."""

    def __init__(self) -> None:
        self.setting = "wrong"
        self.calls: list[str] = []
        self.keys: list[str] = []

    def extract(self, state: Load) -> Load:
        self.calls.append(f"extract {state.get('number', 0)}")
        return {"log": ["extracted"]}

    def transform(self, state: Load) -> Load:
        self.calls.append(f"transform {state.get('number', 0)}")
        return {"log": ["transformed"]}

    def load(self, state: Load, runtime: Runtime[Any]) -> Load:
        self.calls.append(f"load {state.get('number', 0)}")
        self.keys.append(runtime.idempotency_key)
        if self.setting == "wrong" and state.get("number", 0) == 0:
            raise ValueError("no such warehouse")
        return {"log": ["loaded"]}

    def graph(self) -> StateGraph[Any]:
        graph = StateGraph(Load, output_schema=Log)
        return graph.add_sequence([self.extract, self.transform, self.load]).add_edge(START, "extract")


@pytest.mark.acceptance("S3-16", "S3-23")
def test_a_failed_run_goes_on_at_the_step_that_failed_once_it_is_repaired(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    warehouse = Warehouse()
    app = warehouse.graph().compile(checkpointer=saver)
    api = Api(run, app)
    with pytest.raises(ValueError, match="no such warehouse"):
        run.invoke(app, {"log": []}, thread("1"))
    failed = api("status", "1")
    warehouse.setting = "right"

    rewound = api("rewind", "1", reason="the setting is right")
    result = api("resume", "1")

    assert ["load"] == [task.node for task in rewound.failed]
    assert ("failed", True) == (failed.status, failed.can_resume)
    assert ["extract 0", "transform 0", "load 0", "load 0"] == warehouse.calls
    assert ["extracted", "transformed", "loaded"] == result["log"]
    assert 1 == len(set(warehouse.keys))  # the name of the work outside is the same
    assert "idle" == api("status", "1").status


@pytest.mark.acceptance("S3-19")
def test_only_the_child_that_failed_is_repaired(run: Runner, saver: Saver, thread: Thread) -> None:
    warehouse = Warehouse()
    parent = StateGraph(Log).add_node("child", warehouse.graph().compile())
    parent.add_conditional_edges(START, lambda _: [Send("child", {"number": n, "log": []}) for n in (0, 1)], ["child"])
    app = parent.compile(checkpointer=saver)
    with pytest.raises(ValueError, match="no such warehouse"):
        run.invoke(app, {"log": []}, {**thread("1"), "max_concurrency": 1})
    before = list(warehouse.calls)
    warehouse.setting = "right"
    if has_authority(saver):
        rewound = Api(run, app)("rewind", "1", reason="the setting is right")
        inside = [(task.ns.split(":")[0], task.node) for task in rewound.failed if "Cancelled" not in task.error]
        assert [("", "child"), ("child", "load")] == inside

    result = run.invoke(app, None, thread("1"))

    again = warehouse.calls[len(before) :]
    done = [call for call in before if call.endswith("1")]
    assert ["extract 0", "transform 0", "load 0"] == [call for call in before if call.endswith("0")]
    assert ["load 0"] == [call for call in again if call.endswith("0")]
    assert ["extract 1", "transform 1", "load 1"] == [*done, *(call for call in again if call.endswith("1"))]
    assert ["extracted", "transformed", "loaded"] * 2 == result["log"]


@pytest.mark.acceptance("S6-6")
def test_a_run_that_was_stopped_goes_on_when_it_is_run_again(run: Runner, saver: Saver, thread: Thread) -> None:
    ran: list[str] = []
    stop = ["stop", "stop"]

    def step(name: str) -> Any:
        def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
            ran.append(name)
            if stop and runtime.control is not None:
                runtime.control.request_drain(stop.pop())
            return {"a": [name]}

        return node

    app = chain("x", "y", "z", **{name: step(name) for name in "xyz"}).compile(checkpointer=saver)
    inputs: list[Any] = [{"a": []}, None]
    for given in inputs:
        with pytest.raises(GraphDrained, match="stop"):
            run.invoke(app, given, thread("1"), control=RunControl())
    stopped = run.state(app, thread("1"))

    result = run.invoke(app, None, thread("1"), control=RunControl())

    assert ({"a": ["x", "y"]}, ("z",)) == (stopped.values, stopped.next)
    assert ["x", "y", "z"] == ran == result["a"]


@pytest.mark.acceptance("S6-6")
def test_a_run_that_was_cancelled_goes_on_when_it_is_run_again(saver: Saver, thread: Thread) -> None:
    ran: list[str] = []

    async def held(state: Any) -> dict[str, Any]:
        ran.append("held")
        if len(ran) == 2:
            await asyncio.Event().wait()
        return {"a": ["held"]}

    async def x(state: Any) -> dict[str, Any]:
        ran.append("x")
        return {"a": ["x"]}

    app = chain("x", "held", "z", x=x, held=held).compile(checkpointer=saver)

    async def stopped_and_again() -> Any:
        running = asyncio.create_task(app.ainvoke({"a": []}, thread("1")))
        while len(ran) < 2:
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return await app.ainvoke(None, thread("1"))

    result = asyncio.run(stopped_and_again())

    assert (["x", "held", "z"], ["x", "held", "held"]) == (result["a"], ran)
