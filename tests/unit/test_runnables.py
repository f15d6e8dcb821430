"""Runnables: chains, batches, retries, fallbacks; blocking and awaited alike."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypedDict
from unittest.mock import AsyncMock, MagicMock, Mock

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.config import RunnableConfig
from pregel.errors import AsyncOnlyError, GraphDrained, InvalidInputError
from pregel.graph import START, StateGraph
from pregel.runnable import (
    Runnable,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnablePick,
    RunnableSequence,
)

Invoke = Callable[..., Any]


class State(TypedDict, total=False):
    x: int


NO_WAIT = {"initial": 0.0, "jitter": 0.0}


@pytest.fixture(params=["sync", "async"])
def invoke(request: pytest.FixtureRequest) -> Invoke:
    """Calls a runnable, blocking or awaiting."""
    if request.param == "sync":
        return lambda runnable, *args, **kwargs: runnable.invoke(*args, **kwargs)
    return lambda runnable, *args, **kwargs: asyncio.run(runnable.ainvoke(*args, **kwargs))


def add(x: int) -> int:
    return x + 1


def times(x: int) -> int:
    return x * 10


async def aadd(x: int) -> int:
    return x + 1


def doubling() -> Any:
    """A graph that doubles ``x``."""
    return StateGraph(State).add_node("double", lambda state: {"x": state["x"] * 2}).add_edge(START, "double").compile()


# -- chains ------------------------------------------------------------------------------------------------------------


@pytest.mark.acceptance("S1-1")
def test_runnables_compose(invoke: Invoke) -> None:
    assert 20 == invoke(RunnableLambda(add) | RunnableLambda(times), 1)
    assert 20 == invoke(add | RunnableLambda(times), 1)
    assert 20 == invoke(RunnableLambda(add).pipe(times), 1)


@pytest.mark.acceptance("S1-1")
def test_anything_with_the_verbs_composes_on_either_side(invoke: Invoke) -> None:
    class Theirs:
        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            return input + 1

        async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            return input + 1

    assert 20 == invoke(Theirs() | RunnableLambda(times), 1)
    assert 11 == invoke(RunnableLambda(times) | Theirs(), 1)


def test_what_is_no_step_is_refused() -> None:
    with pytest.raises(TypeError):
        RunnableLambda(add) | 5


def test_chains_of_chains_are_one_chain() -> None:
    chain = RunnableLambda(add) | (RunnableLambda(times) | add)

    assert 3 == len(chain.steps)


@pytest.mark.acceptance("S1-2")
def test_a_graph_is_a_step_of_a_chain_and_a_node_of_a_graph(invoke: Invoke) -> None:
    chain = RunnableLambda(lambda x: {"x": x}) | doubling() | RunnablePick("x") | add
    assert 7 == invoke(chain, 3)

    graph = StateGraph(State).add_node("chain", RunnableLambda(lambda state: state["x"]) | chain | (lambda x: {"x": x}))
    assert {"x": 7} == invoke(graph.add_edge(START, "chain").compile(), {"x": 3})


def test_a_dict_is_a_parallel_and_runs_at_once(invoke: Invoke) -> None:
    both = threading.Barrier(2, timeout=60)

    def meet(x: int) -> int:
        both.wait()
        return x

    assert {"a": 1, "b": 1} == invoke(RunnableParallel(a=meet, b=meet), 1)
    assert {"a": 2, "b": 10} == invoke(RunnableLambda(lambda x: x) | {"a": add, "b": times}, 1)


def test_a_lambda_that_returns_a_runnable_goes_on_with_it(invoke: Invoke) -> None:
    assert 11 == invoke(RunnableLambda(lambda x: RunnableLambda(lambda y: RunnableLambda(lambda z: z + 10))), 1)

    def forever(x: int) -> Any:
        return RunnableLambda(forever)

    with pytest.raises(RecursionError, match="forever"):
        invoke(RunnableLambda(forever), 1)


def test_a_function_may_have_an_async_twin_and_an_async_one_alone_blocks_not() -> None:
    both = RunnableLambda(add, aadd)

    assert (2, 2) == (both.invoke(1), asyncio.run(both.ainvoke(1)))
    with pytest.raises(AsyncOnlyError):
        RunnableLambda(aadd).invoke(1)


def test_pieces(invoke: Invoke) -> None:
    seen: list[Any] = []
    assert {"x": 1} == invoke(RunnablePassthrough(seen.append), {"x": 1})
    assert [{"x": 1}] == seen
    assert {"x": 1, "y": 2} == invoke(RunnablePassthrough().assign(y=lambda d: d["x"] + 1), {"x": 1})
    assert 2 == invoke(RunnableLambda(lambda x: {"x": x}).assign(y=lambda d: d["x"] + 1).pick("y"), 1)
    assert {"x": 1} == invoke(RunnablePick(["x", "z"]), {"x": 1, "y": 2})
    assert [2, 3] == invoke(RunnableLambda(add).map(), [1, 2])
    branch = RunnableBranch((lambda x: x > 5, times), add)
    assert (60, 2) == (invoke(branch, 6), invoke(branch, 1))
    with pytest.raises(ValueError, match="needs a dict"):
        invoke(RunnablePassthrough().assign(y=add), 1)


def test_bound_arguments_and_configs(invoke: Invoke) -> None:
    def scaled(x: int, config: RunnableConfig, *, by: int = 1) -> tuple[int, Any]:
        return x * by, config.get("tags")

    bound = RunnableLambda(scaled).bind(by=3)
    assert (6, None) == invoke(bound, 2)
    assert (10, None) == invoke(bound, 2, by=5)
    assert (2, ["a", "b"]) == invoke(RunnableLambda(scaled).with_config(tags=["a"]), 2, {"tags": ["b"]})
    with pytest.raises(TypeError, match="takes no keyword arguments, got by"):
        invoke(RunnablePick("x"), {"x": 1}, by=2)


def test_a_stream_of_a_chain_is_the_stream_of_its_last_step() -> None:
    chain = RunnableLambda(lambda x: {"x": x}) | doubling()

    assert [{"double": {"x": 6}}] == list(chain.stream(3))
    assert [{"double": {"x": 6}}] == asyncio.run(collect(chain.astream(3)))
    assert [20] == list((RunnableLambda(add) | times).stream(1))


async def collect(chunks: AsyncIterator[Any]) -> list[Any]:
    return [chunk async for chunk in chunks]


# -- batches -----------------------------------------------------------------------------------------------------------


def test_a_batch_keeps_its_order_and_its_errors_in_their_places() -> None:
    def work(x: int) -> int:
        if x == 1:
            raise KeyError(x)
        return x * 10

    runnable = RunnableLambda(work)
    for outputs in (
        runnable.batch([0, 1, 2], return_exceptions=True),
        asyncio.run(runnable.abatch([0, 1, 2], return_exceptions=True)),
    ):
        assert (0, 20, KeyError) == (outputs[0], outputs[2], type(outputs[1]))
    with pytest.raises(KeyError):
        runnable.batch([0, 1, 2])
    with pytest.raises(KeyError):
        asyncio.run(runnable.abatch([0, 1, 2]))
    assert [] == runnable.batch([])


def test_a_batch_runs_no_more_at_once_than_the_config_allows() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    def work(x: int) -> int:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.002)
        with lock:
            now[0] -= 1
        return x

    assert list(range(8)) == RunnableLambda(work).batch(list(range(8)), {"max_concurrency": 2})
    assert list(range(8)) == asyncio.run(RunnableLambda(work).abatch(list(range(8)), {"max_concurrency": 2}))
    assert most[0] <= 2


def test_outputs_come_as_they_are_ready() -> None:
    gate = threading.Event()

    def work(x: int) -> int:
        if x == 0:
            assert gate.wait(60)
        return x * 10

    found = []
    for place, output in RunnableLambda(work).batch_as_completed([0, 1]):
        found.append((place, output))
        gate.set()

    assert [(1, 10), (0, 0)] == found
    gate.set()
    assert {(0, 0), (1, 10)} == set(asyncio.run(collect(RunnableLambda(work).abatch_as_completed([0, 1]))))


def test_a_batch_needs_one_config_or_one_each() -> None:
    with pytest.raises(InvalidInputError, match="2 inputs but 1 configs"):
        RunnableLambda(add).batch([1, 2], [{}])


# -- retries and fallbacks ---------------------------------------------------------------------------------------------


def failing(times: int, error: Exception) -> tuple[Runnable, list[Any]]:
    calls: list[Any] = []

    def work(x: Any) -> Any:
        calls.append(x)
        if len(calls) <= times:
            raise error
        return x

    return RunnableLambda(work), calls


def test_a_runnable_is_tried_again(invoke: Invoke) -> None:
    runnable, calls = failing(2, KeyError("x"))
    assert 1 == invoke(runnable.with_retry(exponential_jitter_params=NO_WAIT), 1)
    assert 3 == len(calls)

    runnable, calls = failing(9, KeyError("x"))
    with pytest.raises(KeyError):
        invoke(runnable.with_retry(wait_exponential_jitter=False, stop_after_attempt=2), 1)
    assert 2 == len(calls)

    runnable, calls = failing(9, KeyError("x"))
    with pytest.raises(KeyError):
        invoke(runnable.with_retry(retry_if_exception_type=(ValueError,)), 1)
    assert 1 == len(calls)


@pytest.mark.acceptance("S1-23")
def test_signals_are_neither_retried_nor_handled(invoke: Invoke) -> None:
    runnable, calls = failing(9, GraphDrained("stop"))

    with pytest.raises(GraphDrained):
        invoke(runnable.with_retry(exponential_jitter_params=NO_WAIT).with_fallbacks([RunnableLambda(add)]), 1)

    assert 1 == len(calls)


def test_waits_grow_up_to_the_maximum() -> None:
    params = {"initial": 1.0, "exp_base": 3.0, "max": 5.0, "jitter": 0.0}
    retry: Any = RunnableLambda(add).with_retry(exponential_jitter_params=params)

    assert [1.0, 3.0, 5.0, 5.0] == [retry.wait(attempt) for attempt in (1, 2, 3, 5000)]


def test_others_stand_in_and_the_first_error_is_raised_when_all_fail(invoke: Invoke) -> None:
    first, _ = failing(9, KeyError("first"))
    second, _ = failing(9, KeyError("second"))
    assert 2 == invoke(first.with_fallbacks([second, RunnableLambda(add)]), 1)
    with pytest.raises(KeyError, match="first"):
        invoke(first.with_fallbacks([second]), 1)
    with pytest.raises(KeyError, match="first"):
        invoke(first.with_fallbacks([RunnableLambda(add)], exceptions_to_handle=(ValueError,)), 1)


def test_a_fallback_hears_of_the_error(invoke: Invoke) -> None:
    broken, _ = failing(9, KeyError("first"))
    fallback = RunnableLambda(lambda given: str(given["error"]))

    assert "'first'" == invoke(broken.with_fallbacks([fallback], exception_key="error"), {"x": 1})
    with pytest.raises(InvalidInputError, match="need a dict"):
        invoke(broken.with_fallbacks([fallback], exception_key="error"), 1)


def test_a_stream_falls_back_only_before_its_first_chunk() -> None:
    class Streaming(Runnable):
        def __init__(self, chunks: int) -> None:
            self.chunks = chunks

        def stream(self, input: Any, config: Any = None, **kwargs: Any) -> Iterator[Any]:
            yield from range(self.chunks)
            raise KeyError("broken")

    assert [2] == list(Streaming(0).with_fallbacks([RunnableLambda(add)]).stream(1))
    with pytest.raises(KeyError):
        list(Streaming(1).with_fallbacks([RunnableLambda(add)]).stream(1))


def test_a_sequence_has_a_name() -> None:
    assert "mine" == RunnableSequence(add, times, name="mine").get_name()


# -- mocks of a test ---------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind", [Mock, MagicMock])
def test_a_mock_is_a_node_that_is_called(invoke: Invoke, kind: type[Mock]) -> None:
    node = kind(side_effect=lambda state: {"x": state["x"] + 1})
    app = StateGraph(State).add_node("node", node).add_edge(START, "node").compile(checkpointer=InMemorySaver())

    assert invoke(app, {"x": 1}, {"configurable": {"thread_id": "1"}}) == {"x": 2}
    node.assert_called_once_with({"x": 1})
    assert list(app.get_subgraphs()) == []


def test_an_async_mock_is_a_node_that_is_awaited() -> None:
    node = AsyncMock(return_value={"x": 2})
    app = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()

    assert asyncio.run(app.ainvoke({"x": 1})) == {"x": 2}
    node.assert_awaited_once_with({"x": 1})


def test_a_mock_that_a_node_refers_to_is_no_graph() -> None:
    model = Mock()
    model.invoke.return_value = 2
    app = StateGraph(State).add_node("node", lambda state: {"x": model.invoke(state)}).add_edge(START, "node")
    compiled = app.compile(checkpointer=InMemorySaver())

    assert compiled.invoke({"x": 1}, {"configurable": {"thread_id": "1"}}) == {"x": 2}
    assert list(compiled.get_subgraphs()) == []


def test_what_is_no_function_and_passes_invoke_on_is_a_runnable(invoke: Invoke) -> None:
    class Passing:
        def __init__(self, runnable: Any) -> None:
            self.runnable = runnable

        def __getattr__(self, name: str) -> Any:
            return getattr(self.runnable, name)

    assert invoke(RunnableLambda(add) | Passing(RunnableLambda(times)), 1) == 20
