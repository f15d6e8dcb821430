"""What a run computes: updates, routes, supersteps, reducers, conflicts, limits."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from typing import Annotated, Any, Literal, TypedDict

import pytest

from pregel.channels import EphemeralValue, LastValue, Topic, UntrackedValue
from pregel.checkpoint.base import BaseCheckpointSaver
from pregel.engine.node import NodeBuilder
from pregel.engine.pregel import Pregel
from pregel.errors import GraphRecursionError, InvalidUpdateError
from pregel.graph import END, START, StateGraph
from pregel.types import Command, Send

from .conftest import Runner

Saver = BaseCheckpointSaver[Any]
Thread = Callable[[str], Any]


class Totals(TypedDict):
    total: int
    visited: Annotated[list[str], operator.add]


class Outs(TypedDict):
    items: list[int]
    out: Annotated[list[Any], operator.add]


def double(state: Totals) -> dict[str, Any]:
    return {"total": state["total"] * 2, "visited": ["a"]}


def add_one(state: Totals) -> dict[str, Any]:
    return {"total": state["total"] + 1, "visited": ["b"]}


def two_nodes() -> StateGraph[Any]:
    graph = StateGraph(Totals)
    graph.add_node("a", double)
    graph.add_node("b", add_one)
    return graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", END)


@pytest.mark.acceptance("S1-3")
def test_two_nodes_run_one_after_the_other(run: Runner) -> None:
    assert run.invoke(two_nodes().compile(), {"total": 10, "visited": []}) == {"total": 21, "visited": ["a", "b"]}


@pytest.mark.acceptance("S1-4")
def test_building_and_compiling_run_nothing_and_a_builder_compiles_again(run: Runner) -> None:
    ran: list[str] = []
    graph = StateGraph(Totals)
    graph.add_node("a", lambda state: ran.append("a"))
    graph.add_edge(START, "a")

    first, second = graph.compile(), graph.compile()

    assert ran == []
    run.invoke(first, {"total": 1, "visited": []})
    run.invoke(second, {"total": 1, "visited": []})
    assert ran == ["a", "a"]


@pytest.mark.acceptance("S1-8")
def test_keys_that_an_update_does_not_mention_stay(run: Runner) -> None:
    graph = StateGraph(Totals)
    graph.add_node("a", lambda state: {"visited": ["a"]})
    graph.add_edge(START, "a")

    assert run.invoke(graph.compile(), {"total": 7, "visited": []}) == {"total": 7, "visited": ["a"]}


@pytest.mark.acceptance("S1-9")
@pytest.mark.parametrize(
    ("total", "expected"), [(10, {"total": 21, "visited": ["a", "b"]}), (1, {"total": 0, "visited": ["a", "c"]})]
)
def test_a_conditional_edge_runs_only_what_it_chose(run: Runner, total: int, expected: dict[str, Any]) -> None:
    graph = StateGraph(Totals)
    graph.add_node("a", double)
    graph.add_node("b", add_one)
    graph.add_node("c", lambda state: {"total": 0, "visited": ["c"]})
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: "b" if state["total"] > 10 else "c", ["b", "c"])

    assert run.invoke(graph.compile(), {"total": total, "visited": []}) == expected


@pytest.mark.acceptance("S1-10")
def test_every_node_of_a_step_reads_the_state_from_before_it(run: Runner) -> None:
    seen: dict[str, list[str]] = {}
    graph = StateGraph(Totals)
    for name in "pqr":

        def node(state: Totals, name: str = name) -> dict[str, Any]:
            seen[name] = state["visited"]
            return {"visited": [name]}

        graph.add_node(name, node)
        graph.add_edge(START, name)

    result = run.invoke(graph.compile(), {"total": 0, "visited": ["i"]})

    assert seen == {"p": ["i"], "q": ["i"], "r": ["i"]}
    assert result["visited"] == ["i", "p", "q", "r"]


@pytest.mark.acceptance("S1-11")
def test_a_step_applies_its_writes_before_the_next_one_is_planned(run: Runner) -> None:
    chunks = run.stream(two_nodes().compile(), {"total": 10, "visited": []}, stream_mode=["updates", "values"])

    assert chunks == [
        ("values", {"total": 10, "visited": []}),
        ("updates", {"a": {"total": 20, "visited": ["a"]}}),
        ("values", {"total": 20, "visited": ["a"]}),
        ("updates", {"b": {"total": 21, "visited": ["b"]}}),
        ("values", {"total": 21, "visited": ["a", "b"]}),
    ]


def looping(n: int) -> StateGraph[Any]:
    graph = StateGraph(Totals)
    graph.add_node("a", lambda state: {"total": state["total"] + 1})
    graph.add_edge(START, "a")
    graph.add_conditional_edges("a", lambda state: "a" if state["total"] < n else END, ["a", END])
    return graph


@pytest.mark.acceptance("S1-12")
def test_a_cycle_goes_on_until_nothing_is_triggered(run: Runner) -> None:
    assert run.invoke(looping(50).compile(), {"total": 0, "visited": []})["total"] == 50


@pytest.mark.acceptance("S1-12")
@pytest.mark.parametrize(("limit", "fits"), [(2, False), (3, True)])
def test_the_recursion_limit_is_an_error_with_the_limit_in_it(run: Runner, limit: int, fits: bool) -> None:
    app = two_nodes().compile()
    if fits:
        assert run.invoke(app, {"total": 1, "visited": []}, {"recursion_limit": limit})["total"] == 3
    else:
        with pytest.raises(GraphRecursionError, match=f"limit of {limit} "):
            run.invoke(app, {"total": 1, "visited": []}, {"recursion_limit": limit})


@pytest.mark.acceptance("S1-12")
def test_the_default_limit_is_10007_and_zero_is_refused(run: Runner) -> None:
    with pytest.raises(GraphRecursionError, match="10007"):
        run.invoke(looping(20_000).compile(), {"total": 0, "visited": []})
    with pytest.raises(ValueError, match="at least 1"):
        run.invoke(two_nodes().compile(), {"total": 0, "visited": []}, {"recursion_limit": 0})


@pytest.mark.acceptance("S1-13")
def test_updates_are_one_entry_for_each_node_and_step(run: Runner) -> None:
    assert run.stream(two_nodes().compile(), {"total": 10, "visited": []}, stream_mode="updates") == [
        {"a": {"total": 20, "visited": ["a"]}},
        {"b": {"total": 21, "visited": ["b"]}},
    ]


def fan(work: Callable[[Any], Any]) -> StateGraph[Any]:
    graph = StateGraph(Outs)
    graph.add_node("router", lambda state: None)
    graph.add_node("work", work)
    graph.add_edge(START, "router")
    graph.add_conditional_edges("router", lambda state: [Send("work", item) for item in state["items"]], ["work"])
    return graph


@pytest.mark.acceptance("S1-14", "S1-16")
def test_sends_run_in_one_step_each_with_its_own_input_and_reduce_in_send_order(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = fan(lambda item: {"out": [item * 10]}).compile(checkpointer=saver)

    result = run.invoke(app, {"items": [1, 2, 3], "out": []}, thread("1"))

    assert result["out"] == [10, 20, 30]
    routed = next(entry for entry in run.history(app, thread("1")) if entry.metadata["step"] == 1)
    assert routed.next == ("work", "work", "work")
    assert [task.result for task in routed.tasks] == [{"out": [10]}, {"out": [20]}, {"out": [30]}]
    assert len({task.id for task in routed.tasks}) == 3


@pytest.mark.acceptance("S1-15")
def test_a_send_argument_is_the_whole_input(run: Runner) -> None:
    seen: list[Any] = []

    def work(arg: Any) -> dict[str, Any]:
        seen.append(arg)
        return {"out": [1]}

    graph = StateGraph(Outs)
    graph.add_node("work", work)
    graph.add_conditional_edges(START, lambda state: [Send("work", {"only": "this"})], ["work"])

    run.invoke(graph.compile(), {"items": [1], "out": []})

    assert seen == [{"only": "this"}]


@pytest.mark.acceptance("S1-17", "S1-31")
def test_sends_to_a_key_without_reducer_are_refused(run: Runner) -> None:
    app = fan(lambda item: {"items": [item]}).compile()

    with pytest.raises(InvalidUpdateError, match="At key 'items': Can receive only one value per step"):
        run.invoke(app, {"items": [1, 2], "out": []})


@pytest.mark.acceptance("S1-31")
def test_two_writers_of_a_plain_key_are_refused_even_with_equal_values(run: Runner) -> None:
    graph = StateGraph(Totals)
    for name in "ab":
        graph.add_node(name, lambda state: {"total": 1})
        graph.add_edge(START, name)

    with pytest.raises(InvalidUpdateError) as caught:
        run.invoke(graph.compile(), {"total": 0, "visited": []})

    assert caught.value.message == (
        "At key 'total': Can receive only one value per step. Use an Annotated key to handle multiple values."
    )


@pytest.mark.acceptance("S1-32")
def test_reduced_order_does_not_depend_on_who_finished_first(run: Runner) -> None:
    b_is_done = threading.Event()

    def a(state: Totals) -> dict[str, Any]:
        assert b_is_done.wait(60)
        return {"visited": ["a"]}

    def b(state: Totals) -> dict[str, Any]:
        b_is_done.set()
        return {"visited": ["b"]}

    graph = StateGraph(Totals)
    graph.add_node("a", a).add_node("b", b)
    graph.add_edge(START, "a").add_edge(START, "b")

    assert run.invoke(graph.compile(), {"total": 0, "visited": []})["visited"] == ["a", "b"]


@pytest.mark.acceptance("S1-33")
def test_a_failed_step_applies_nothing(run: Runner, saver: Saver, thread: Thread) -> None:
    ok_runs = threading.Event()

    def ok(state: Totals) -> dict[str, Any]:
        ok_runs.set()
        return {"visited": ["ok"]}

    def bad(state: Totals) -> None:
        assert ok_runs.wait(60)
        raise RuntimeError("no")

    graph = StateGraph(Totals)
    graph.add_node("a", double)
    graph.add_node("ok", ok)
    graph.add_node("bad", bad)
    graph.add_edge(START, "a").add_edge("a", "ok").add_edge("a", "bad")
    app = graph.compile(checkpointer=saver)

    with pytest.raises(RuntimeError, match="no"):
        run.invoke(app, {"total": 5, "visited": []}, thread("1"))

    live = run.state(app, thread("1"))
    addressed = run.state(app, live.config)
    assert addressed.values == {"total": 10, "visited": ["a"]}
    assert addressed.next == ("bad", "ok")
    assert (live.values["visited"], live.next) == (["a", "ok"], ("bad",))


@pytest.mark.acceptance("S1-26")
def test_a_command_updates_and_routes_without_an_edge(run: Runner) -> None:
    def router(state: Outs) -> Command[Literal["t"]]:
        return Command(update={"out": ["r"]}, goto="t")

    graph = StateGraph(Outs)
    graph.add_node("router", router)
    graph.add_node("t", lambda state: {"out": ["t"]})
    graph.add_edge(START, "router")

    assert run.invoke(graph.compile(), {"out": []})["out"] == ["r", "t"]


@pytest.mark.acceptance("S1-26")
def test_a_command_goes_to_several_names_and_sends(run: Runner) -> None:
    graph = StateGraph(Outs)
    graph.add_node("router", lambda state: Command(goto=["t", Send("w", 5)]), destinations=("t", "w"))
    graph.add_node("t", lambda state: {"out": ["t"]})
    graph.add_node("w", lambda arg: {"out": [arg]})
    graph.add_edge(START, "router")

    assert run.invoke(graph.compile(), {"out": []})["out"] == ["t", 5]


@pytest.mark.acceptance("S1-64")
def test_a_join_runs_once_after_both_even_from_different_steps(run: Runner) -> None:
    graph = StateGraph(Totals)
    for name in ("a", "b1", "b2", "c"):
        graph.add_node(name, lambda state, name=name: {"visited": [name]})
    graph.add_edge(START, "a").add_edge(START, "b1").add_edge("b1", "b2").add_edge(["a", "b2"], "c")

    assert run.invoke(graph.compile(), {"total": 0, "visited": []})["visited"] == ["a", "b1", "b2", "c"]


@pytest.mark.acceptance("S1-65")
@pytest.mark.parametrize(("defer", "expected"), [(False, ["a", "b", "d", "c", "d"]), (True, ["a", "b", "c", "d"])])
def test_a_deferred_node_runs_only_when_nothing_else_is_left(run: Runner, defer: bool, expected: list[str]) -> None:
    graph = StateGraph(Totals)
    for name in "abc":
        graph.add_node(name, lambda state, name=name: {"visited": [name]})
    graph.add_node("d", lambda state: {"visited": ["d"]}, defer=defer)
    graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").add_edge("a", "d" if defer else "b")
    graph.add_edge("c", "d")
    if not defer:
        graph.add_edge("b", "d")

    result = run.invoke(graph.compile(), {"total": 0, "visited": []})["visited"]

    assert sorted(result) == sorted(expected)
    assert result[-1] == "d"


@pytest.mark.acceptance("S1-66")
def test_an_ephemeral_value_is_gone_after_one_step_and_an_untracked_one_is_never_stored(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    class State(TypedDict, total=False):
        brief: Annotated[str, EphemeralValue]
        secret: Annotated[str, UntrackedValue]
        seen: Annotated[list[tuple[str, ...]], operator.add]

    def look(state: State) -> dict[str, Any]:
        return {"seen": [tuple(sorted(state.keys() - {"seen"}))]}

    graph = StateGraph(State)
    graph.add_node("write", lambda state: {"brief": "b", "secret": "s"})
    graph.add_node("first", look).add_node("second", look)
    graph.add_edge(START, "write").add_edge("write", "first").add_edge("first", "second")
    app = graph.compile(checkpointer=saver)

    result = run.invoke(app, {"seen": []}, thread("1"))

    assert result["seen"] == [("brief", "secret"), ("secret",)]
    stored = [set(saved.checkpoint["channel_values"]) for saved in saver.list(thread("1"))]
    assert not any("secret" in values for values in stored)
    assert sum("brief" in values for values in stored) == 1


@pytest.mark.acceptance("S1-66")
def test_a_state_that_is_sent_whole_is_stored_without_its_untracked_values(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    class State(TypedDict, total=False):
        lock: Annotated[Any, UntrackedValue]
        seen: Annotated[list[str], operator.add]

    def use(state: State) -> Any:
        if state["seen"] == ["made"]:
            return Command(update={"seen": ["lock" in state]}, goto=Send("use", state | {"seen": ["again"]}))
        return {"seen": [type(state["lock"]).__name__]}

    graph = StateGraph(State).add_node("use", use, destinations=("use",))
    graph.add_node("make", lambda state: {"lock": threading.Lock(), "seen": ["made"]}).add_edge(START, "make")
    graph.add_conditional_edges("make", lambda state: [Send("use", state)], ["use"])
    app = graph.compile(checkpointer=saver)

    result = run.invoke(app, {}, thread("1"))

    assert result["seen"] == ["made", True, "lock"]
    packets = [saved.checkpoint["channel_values"].get("__pregel_tasks", []) for saved in saver.list(thread("1"))]
    assert [send.arg for sent in packets for send in sent] == [{"seen": ["again"]}, {"seen": ["made"]}]


@pytest.mark.acceptance("S1-66")
@pytest.mark.parametrize(("accumulate", "expected"), [(False, ["b"]), (True, ["a", "b"])])
def test_a_topic_accumulates_only_when_declared_so(run: Runner, accumulate: bool, expected: list[str]) -> None:
    app = Pregel(
        nodes={
            "a": NodeBuilder().subscribe_only("in").do(lambda value: "a").write_to("topic", "go").build(),
            "b": NodeBuilder().subscribe_only("go").do(lambda value: "b").write_to("topic").build(),
        },
        channels={
            "in": EphemeralValue(int),
            "go": LastValue(str),
            "topic": Topic(str, accumulate=accumulate),
        },
        input_channels="in",
        output_channels="topic",
    )

    assert run.invoke(app, 1) == expected
