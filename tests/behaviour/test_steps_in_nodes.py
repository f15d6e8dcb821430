"""`runtime.step(key, producer)`: made once, written before it is used, read ever after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.errors import SerializationError
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, RetryPolicy, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, mark
from .test_authority import has_authority

Body = Callable[[Callable[[str, Callable[[], Any]], Any]], dict[str, Any]]


def graph(run: Runner, body: Body, retry: RetryPolicy | None = None) -> StateGraph[Any]:
    """One node whose body is given `step`; under the awaiting driver the body runs on a thread, and asks from there."""

    def node(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        return body(runtime.step)

    async def anode(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()

        def step(key: str, producer: Callable[[], Any]) -> Any:
            return asyncio.run_coroutine_threadsafe(runtime.astep(key, producer), loop).result()

        return await asyncio.to_thread(body, step)

    return (
        StateGraph(State).add_node("n", node if run.name == "sync" else anode, retry_policy=retry).add_edge(START, "n")
    )


@pytest.mark.acceptance("S0-10")
def test_what_was_made_once_is_read_after_a_failure_a_question_and_by_another_run(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    made, trouble = list[str](), [ValueError("once")]
    values = {"list": [1, ("a", b"b")], "none": None, "empty": ""}

    def make(key: str) -> Any:
        made.append(key)
        return values[key]

    def body(step: Any) -> dict[str, Any]:
        found = {key: step(key, lambda: make(key)) for key in values}  # noqa: B023
        assert values == found
        if trouble:
            raise trouble.pop()
        return {"a": [interrupt("go on?")]}

    app = graph(run, body).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="once"):
        run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, None, thread("1"))

    assert ["yes"] == run.invoke(app, Command(resume="yes"), thread("1"))["a"]
    assert ["list", "none", "empty"] == made  # a value that is false or None is one as well

    run.invoke(app, {"a": []}, thread("1"))
    assert 6 == len(made)  # new work makes its own


@pytest.mark.acceptance("S0-10")
def test_the_value_is_stored_before_step_returns(run: Runner, saver: Saver, thread: Thread) -> None:
    seen: list[Any] = []

    def node(state: State, runtime: Runtime[Any]) -> None:
        runtime.step("key", lambda: {"made": 1})
        seen.append(saver.get_tuple(thread("1")))

    async def anode(state: State, runtime: Runtime[Any]) -> None:
        await runtime.astep("key", lambda: {"made": 1})
        seen.append(
            await (
                saver.aget_tuple(thread("1"))
                if has_authority(saver)
                else asyncio.to_thread(saver.get_tuple, thread("1"))
            )
        )

    app = StateGraph(State).add_node("n", node if run.name == "sync" else anode).add_edge(START, "n")
    run.invoke(app.compile(checkpointer=saver), {"a": []}, thread("1"))

    assert {"made": 1} in [value for _, _, value in seen[0].pending_writes]


@pytest.mark.acceptance("S0-10")
def test_a_value_that_would_not_come_back_is_refused_before_anything_is_stored(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    left = ["x"]
    kept: list[Any] = []

    def body(step: Any) -> dict[str, Any]:
        if left:
            left.clear()
            with pytest.raises(SerializationError):
                step("key", lambda: object())
            raise ValueError("refused")
        kept.append(step("key", lambda: "another"))  # nothing stands in its place
        return {"a": []}

    app = graph(run, body).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="refused"):
        run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, None, thread("1"))

    assert ["another"] == kept


@pytest.mark.parametrize("stored", [True, False])
def test_what_a_node_does_to_its_value_does_not_reach_the_next_attempt(
    run: Runner, thread: Thread, stored: bool
) -> None:
    seen: list[list[Any]] = []

    def body(step: Any) -> dict[str, Any]:
        value = step("key", lambda: ["made"])
        seen.append(list(value))
        value.append("changed")
        if len(seen) < 3:
            raise ConnectionError
        return {"a": value}

    retry = RetryPolicy(initial_interval=0.0, jitter=False)
    app = graph(run, body, retry).compile(checkpointer=InMemorySaver() if stored else None)

    assert ["made", "changed"] == run.invoke(app, {"a": []}, thread("1"))["a"]
    assert [["made"]] * 3 == seen


def test_a_graph_inside_is_taken_up_beside_a_node_that_keeps_a_value(run: Runner, saver: Saver, thread: Thread) -> None:
    """What was loaded for the graph is heard by it before what the node says."""
    trouble: list[Exception] = [ValueError("once")]

    def body(step: Any) -> dict[str, Any]:
        if trouble:
            raise trouble.pop()
        return {"a": [step("key", lambda: "made")]}

    outer = graph(run, body)
    inner = StateGraph(State).add_node("inside", mark("inside")).add_edge(START, "inside")
    app = outer.add_node("inner", inner.compile()).add_edge(START, "inner").compile(checkpointer=saver)
    with pytest.raises(ValueError, match="once"):
        run.invoke(app, {"a": []}, {**thread("1"), "max_concurrency": 1})

    assert ["inside", "made"] == sorted(run.invoke(app, None, thread("1"))["a"])
