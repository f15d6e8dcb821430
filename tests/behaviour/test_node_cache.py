"""Cached nodes: a result that is known is not computed again, and no two different questions share one."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import pytest

from pregel.cache.memory import InMemoryCache
from pregel.channels import EphemeralValue, LastValue
from pregel.engine.node import NodeBuilder
from pregel.engine.pregel import Pregel
from pregel.errors import InvalidInputError
from pregel.graph import START, StateGraph
from pregel.types import CachePolicy, Command, Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, mark

FOR_EVER = CachePolicy()


def counted(calls: list[Any], node: Callable[[Any], Any] | None = None) -> Callable[[Any], Any]:
    def cached(state: Any) -> Any:
        calls.append(state)
        return node(state) if node is not None else {"a": ["computed"]}

    return cached


def one(node: Any, **options: Any) -> StateGraph[Any]:
    return StateGraph(State).add_node("x", node, **options).add_edge(START, "x")


def values(result: Any) -> Any:
    return result["a"]


@pytest.mark.acceptance("S1-42")
def test_a_known_input_does_not_run_the_node_again_and_the_stream_says_so(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls: list[Any] = []
    app = one(counted(calls), cache_policy=FOR_EVER).compile(checkpointer=saver, cache=InMemoryCache())

    first = run.stream(app, {"b": "1"}, thread("1"), stream_mode="updates")
    second = run.stream(app, {"b": "1"}, thread("2"), stream_mode="updates")

    assert [{"x": {"a": ["computed"]}}] == first
    assert [{"x": {"a": ["computed"]}, "__metadata__": {"cached": True}}] == second
    assert 1 == len(calls)
    assert run.state(app, thread("1")).values == run.state(app, thread("2")).values
    run.invoke(app, {"b": "2"}, thread("3"))
    assert 2 == len(calls)


@pytest.mark.acceptance("S1-42")
def test_a_result_lapses_after_its_ttl(run: Runner) -> None:
    now = [0.0]
    calls: list[Any] = []
    policy = CachePolicy(ttl=60)
    app = one(counted(calls), cache_policy=policy).compile(cache=InMemoryCache(clock=lambda: now[0]))

    for now[0] in (0.0, 59.0, 61.0):
        run.invoke(app, {"b": "1"})

    assert 2 == len(calls)


@pytest.mark.acceptance("S1-42")
def test_the_results_of_one_node_are_cleared_and_those_of_another_stay(run: Runner) -> None:
    calls: dict[str, list[Any]] = {"x": [], "y": []}
    graph = one(counted(calls["x"]), cache_policy=FOR_EVER)
    graph.add_node("y", counted(calls["y"]), cache_policy=FOR_EVER).add_edge(START, "y")
    app = graph.compile(cache=InMemoryCache())

    run.invoke(app, {"b": "1"})
    app.clear_cache(["x"])
    run.invoke(app, {"b": "1"})
    assert (2, 1) == (len(calls["x"]), len(calls["y"]))
    app.clear_cache()
    run.invoke(app, {"b": "1"})
    assert (3, 2) == (len(calls["x"]), len(calls["y"]))


def test_clearing_without_a_cache_or_by_a_wrong_name_is_a_named_error() -> None:
    with pytest.raises(ValueError, match="No cache is set"):
        one(mark("x")).compile().clear_cache()
    with pytest.raises(InvalidInputError, match="No node is called 'typo'"):
        one(mark("x")).compile(cache=InMemoryCache()).clear_cache(["typo"])


def test_inputs_of_other_types_never_share_a_result(run: Runner) -> None:
    inputs = [1, True, 1.0, "1", b"1", (1,), [1], array.array("b", [1, 0]), array.array("h", [1])]
    calls: list[Any] = []
    app = Pregel(
        nodes={"x": NodeBuilder().subscribe_only("in").do(counted(calls, repr)).write_to("out")},
        channels={"in": EphemeralValue(object), "out": LastValue(str)},
        input_channels="in",
        output_channels="out",
        cache=InMemoryCache(),
        cache_policy=FOR_EVER,
    )

    for _ in range(2):
        assert [repr(value) for value in inputs] == [run.invoke(app, value) for value in inputs]
    assert len(inputs) == len(calls)


def test_closures_and_graphs_never_share_a_result(run: Runner) -> None:
    def factor(number: int) -> Callable[[Any], Any]:
        return lambda state: {"a": [str(number)]}

    cache = InMemoryCache[Any]()
    apps = [one(factor(number), cache_policy=FOR_EVER).compile(cache=cache) for number in (1, 2)]

    for _ in range(2):
        assert [["1"], ["2"]] == [run.invoke(app, {"b": "same"})["a"] for app in apps]


def test_a_key_function_says_what_counts_and_text_is_not_bytes(run: Runner) -> None:
    calls: list[Any] = []
    keys: dict[str, str | bytes] = {"one": "k", "two": "k", "three": b"k"}
    policy = CachePolicy(key_func=lambda state: keys[state["b"]])
    app = one(counted(calls), cache_policy=policy).compile(cache=InMemoryCache())

    for name in keys:
        run.invoke(app, {"b": name})
    assert ["one", "three"] == [state["b"] for state in calls]

    wrong = one(mark("x"), cache_policy=CachePolicy(key_func=len)).compile(cache=InMemoryCache())  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="key_func of node 'x' returned int"):
        run.invoke(wrong, {"b": ""})


def test_where_a_cached_result_leads_is_decided_on_the_state_as_it_is(run: Runner) -> None:
    calls: list[Any] = []
    policy = CachePolicy(key_func=lambda state: "same")
    graph = one(counted(calls), cache_policy=policy).add_node("left", mark("left")).add_node("right", mark("right"))
    graph.add_conditional_edges("x", lambda state: state["b"], ["left", "right"])
    app = graph.compile(cache=InMemoryCache())

    assert ["computed", "left"] == values(run.invoke(app, {"b": "left"}))
    assert ["computed", "right"] == values(run.invoke(app, {"b": "right"}))
    assert 1 == len(calls)


def test_commands_are_cached_as_they_are(run: Runner) -> None:
    calls: list[Any] = []
    node = counted(calls, lambda state: Command(update={"a": ["x"]}, goto=Send("y", {"b": "sent"})))
    graph = one(node, cache_policy=FOR_EVER, destinations=["y"]).add_node("y", lambda state: {"a": [state["b"]]})
    app = graph.compile(cache=InMemoryCache())

    assert [["x", "sent"]] * 2 == [values(run.invoke(app, {"b": "1"})) for _ in range(2)]
    assert 1 == len(calls)


def test_failures_and_questions_are_not_cached(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[Any] = []
    app = one(counted(calls, lambda state: {"a": [interrupt("ok?")]}), cache_policy=FOR_EVER).compile(
        checkpointer=saver, cache=InMemoryCache()
    )
    run.invoke(app, {"b": "1"}, thread("1"))
    assert {"a": ["yes"], "b": "1"} == run.invoke(app, Command(resume="yes"), thread("1"))
    assert 2 == len(calls)

    def broken(state: Any) -> None:
        calls.append(state)
        raise KeyError("x")

    failing = one(broken, cache_policy=FOR_EVER).compile(cache=InMemoryCache())
    for _ in range(2):
        with pytest.raises(KeyError):
            run.invoke(failing, {"b": "1"})
    assert 4 == len(calls)


def test_a_subgraph_is_cached_as_a_node_and_shares_its_parents_cache(run: Runner) -> None:
    calls: list[Any] = []
    cached_inside = one(counted(calls), cache_policy=FOR_EVER).compile()
    app = one(cached_inside).compile(cache=InMemoryCache())
    for _ in range(2):
        run.invoke(app, {"b": "1"})
    assert 1 == len(calls)

    calls.clear()
    app = one(one(counted(calls)).compile(), cache_policy=FOR_EVER).compile(cache=InMemoryCache())
    updates = [run.stream(app, {"b": "1"}, stream_mode="updates") for _ in range(2)]
    assert (1, {"cached": True}) == (len(calls), updates[1][0]["__metadata__"])


def test_equal_packets_of_one_step_are_all_known_the_next_time(run: Runner) -> None:
    calls: list[Any] = []
    graph = StateGraph(State).add_node("w", counted(calls), cache_policy=FOR_EVER)
    graph.add_conditional_edges(START, lambda state: [Send("w", n) for n in (1, 1, 2)], ["w"])
    app = graph.compile(cache=InMemoryCache())

    run.invoke(app, {"b": "1"})
    first = len(calls)
    run.invoke(app, {"b": "1"})

    assert first == len(calls)


def test_a_policy_without_a_cache_runs_the_node(run: Runner) -> None:
    calls: list[Any] = []
    app = one(counted(calls)).set_node_defaults(cache_policy=FOR_EVER).compile()

    for _ in range(2):
        run.invoke(app, {"b": "1"})

    assert 2 == len(calls)


@pytest.mark.parametrize("options", [{"ttl": 0}, {"ttl": -1}, {"key_func": "key"}])
def test_a_cache_policy_that_cannot_be_followed_is_refused(options: Any) -> None:
    with pytest.raises(InvalidInputError):
        CachePolicy(**options)
