"""Listeners: who hears of a call, what they hear, and that they change nothing."""

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

import pytest

from pregel.config import RunnableConfig
from pregel.errors import AsyncOnlyError
from pregel.graph import START, StateGraph
from pregel.runnable import RunnableLambda
from pregel.runnable.listeners import Run


class State(TypedDict, total=False):
    x: int


class Heard:
    """Listeners that keep what they hear."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, Run]] = []

    def __call__(self, runnable: Any) -> Any:
        return runnable.with_listeners(
            on_start=lambda run: self.runs.append(("start", run)),
            on_end=lambda run: self.runs.append(("end", run)),
            on_error=lambda run: self.runs.append(("error", run)),
        )

    @property
    def told(self) -> list[tuple[str, dict[str, Any], dict[str, Any] | None, str | None]]:
        return [(what, run.inputs, run.outputs, run.error) for what, run in self.runs]


def fails(x: int) -> int:
    raise ValueError("no")


@pytest.mark.parametrize("awaited", [False, True])
def test_a_call_is_told_when_it_starts_and_ends(awaited: bool) -> None:
    heard = Heard()
    runnable = heard(RunnableLambda(lambda x: x + 1, name="add"))

    assert 2 == (asyncio.run(runnable.ainvoke(1)) if awaited else runnable.invoke(1))

    assert [("start", {"input": 1}, None, None), ("end", {"input": 1}, {"output": 2}, None)] == heard.told
    (_, start), (_, end) = heard.runs
    assert (start.id, "add", None) == (end.id, end.name, start.end_time)
    assert end.end_time is not None
    assert end.end_time >= end.start_time


@pytest.mark.parametrize("awaited", [False, True])
def test_a_failure_is_told_and_raised(awaited: bool) -> None:
    heard = Heard()
    runnable = heard(RunnableLambda(fails))

    with pytest.raises(ValueError, match="no"):
        asyncio.run(runnable.ainvoke(1)) if awaited else runnable.invoke(1)

    assert [("start", None), ("error", "ValueError('no')")] == [(what, error) for what, _, _, error in heard.told]


def test_a_listener_that_fails_changes_nothing_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def bad(run: Run) -> None:
        raise KeyError("lost")

    assert 2 == RunnableLambda(lambda x: x + 1).with_listeners(on_start=bad, on_end=bad).invoke(1)
    assert 2 == len(caplog.records)


def test_a_listener_may_have_the_config() -> None:
    tags = list[Any]()

    def start(run: Run, config: RunnableConfig) -> None:
        tags.append((run.tags, config["tags"]))

    RunnableLambda(lambda x: x).with_listeners(on_start=start).invoke(1, {"tags": ["t"]})

    assert [(["t"], ["t"])] == tags


def test_a_stream_ends_with_all_its_chunks_and_a_batch_tells_of_each_input() -> None:
    heard = Heard()
    graph = StateGraph(State).add_node("n", lambda state: {"x": state["x"] + 1}).add_edge(START, "n").compile(name="g")

    assert [{"n": {"x": 2}}] == list(heard(graph).stream({"x": 1}))
    assert [("start", {"x": 1}, None, None), ("end", {"x": 1}, {"n": {"x": 2}}, None)] == heard.told
    assert [{"n": {"x": 3}}] == heard(graph).invoke({"x": 2}, stream_mode="updates")
    heard.runs.clear()

    assert [{"x": 2}, {"x": 3}] == heard(graph).batch([{"x": 1}, {"x": 2}], {"max_concurrency": 1})
    assert ["start", "end", "start", "end"] == [what for what, *_ in heard.told]


def test_coroutine_listeners_are_awaited_and_a_blocking_call_is_refused() -> None:
    heard = list[str]()

    async def start(run: Run) -> None:
        await asyncio.sleep(0)
        heard.append(run.name)

    runnable = RunnableLambda(lambda x: x + 1, name="add").with_alisteners(on_start=start)

    assert 2 == asyncio.run(runnable.ainvoke(1))
    assert [2] == asyncio.run(collected(runnable))
    assert ["add", "add"] == heard
    with pytest.raises(AsyncOnlyError):
        runnable.invoke(1)


async def collected(runnable: Any) -> list[Any]:
    return [chunk async for chunk in runnable.astream(1)]


def test_a_node_with_listeners_runs_in_its_graph() -> None:
    heard = Heard()
    graph = StateGraph(State).add_node("n", heard(RunnableLambda(lambda state: {"x": state["x"] + 1})))

    assert {"x": 2} == graph.add_edge(START, "n").compile().invoke({"x": 1})
    assert [{"x": 1}, {"x": 1}] == [inputs for _, inputs, _, _ in heard.told]
    assert "langgraph_node" in heard.runs[0][1].metadata
