"""A graph that a node's code calls: it keeps its own state under that node, and goes on where it stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.config import RunnableConfig
from pregel.errors import ReplayMismatchError
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import Command, interrupt
from pregel.warnings import PregelWarning

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark

THE_STORE: Any = "the store"


def asking(calls: list[str], name: str) -> Any:
    """A graph that does something, asks, and does something else."""

    def ask(state: State) -> dict[str, Any]:
        return {"a": [f"{name} {interrupt(name)}"]}

    return chain(
        f"{name}1",
        "ask",
        f"{name}2",
        **{"ask": ask, f"{name}1": mark(f"{name}1", calls), f"{name}2": mark(f"{name}2", calls)},
    ).compile()


@pytest.mark.acceptance("S1-2")
def test_finished_graphs_are_done_on_resume_and_the_asking_one_goes_on(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    calls = list[str]()
    one, two = asking(calls, "x"), asking(calls, "y")

    def sync(state: State) -> dict[str, Any]:
        return {"a": [*one.invoke({"a": []})["a"], *two.invoke({"a": []})["a"]]}

    async def awaited(state: State) -> dict[str, Any]:
        first = await one.ainvoke({"a": []})
        return {"a": [*first["a"], *(await two.ainvoke({"a": []}))["a"]]}

    app = chain("node", node=sync if run.name == "sync" else awaited).compile(checkpointer=saver)

    (first,) = run.invoke(app, {"a": ["in"]}, thread("1"))["__interrupt__"]
    (second,) = run.invoke(app, Command(resume="yes"), thread("1"))["__interrupt__"]
    end = run.invoke(app, Command(resume={second.id: "no"}), thread("1"))

    assert ("x", "y") == (first.value, second.value)
    assert ["in", "x1", "x yes", "x2", "y1", "y no", "y2"] == end["a"]
    assert ["x1", "x2", "y1", "y2"] == calls


@pytest.fixture
def memory() -> Saver:
    """A saver, for what is the same on each."""
    return InMemorySaver()


def test_called_graphs_side_by_side_are_answered_one_by_one(memory: Saver, thread: Thread) -> None:
    calls = list[str]()
    one, two = asking(calls, "x"), asking(calls, "y")

    @task
    def call(first: bool) -> Any:
        return (one if first else two).invoke({"a": []})["a"]

    @entrypoint(checkpointer=memory)
    def flow(_: Any) -> Any:
        return [future.result() for future in [call(True), call(False)]]

    (one_asks,) = flow.invoke(1, thread("1"))["__interrupt__"]
    (two_asks,) = flow.invoke(Command(resume={one_asks.id: "X"}), thread("1"))["__interrupt__"]
    found = flow.invoke(Command(resume={two_asks.id: "Y"}), thread("1"))

    assert [["x1", "x X", "x2"], ["y1", "y Y", "y2"]] == found
    assert ["x1", "x2", "y1", "y2"] == sorted(calls)


def test_a_crash_inside_a_called_graph_repeats_nothing_that_it_finished(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    calls, trouble = list[str](), [ValueError("once")]

    def fragile(state: State) -> dict[str, Any]:
        if trouble:
            raise trouble.pop()
        return {"a": ["end"]}

    inner = chain("x", "end", x=mark("x", calls), end=fragile).compile()
    app = chain("node", node=_calls(run, inner)).compile(checkpointer=memory)

    with pytest.raises(ValueError, match="once"):
        run.invoke(app, {"a": ["in"]}, thread("1"))

    assert ["in", "x", "end"] == run.invoke(app, None, thread("1"))["a"]
    assert ["x"] == calls


def _calls(run: Runner, inner: Any, value: Any = None) -> Any:
    def sync(state: State) -> dict[str, Any]:
        return {"a": inner.invoke(value or {"a": []})["a"]}

    async def awaited(state: State) -> dict[str, Any]:
        return {"a": (await inner.ainvoke(value or {"a": []}))["a"]}

    return sync if run.name == "sync" else awaited


@pytest.mark.parametrize("asks", [True, False], ids=["unfinished", "finished"])
def test_a_replay_with_another_input_is_an_error(run: Runner, saver: Saver, thread: Thread, asks: bool) -> None:
    inputs = iter("abcdef")
    inner = asking([], "x") if asks else chain("x").compile()

    def sync(state: State) -> dict[str, Any]:
        inner.invoke({"a": [next(inputs)]})
        return {"a": [interrupt("and?")]}

    async def awaited(state: State) -> dict[str, Any]:
        await inner.ainvoke({"a": [next(inputs)]})
        return {"a": [interrupt("and?")]}

    app = chain("node", node=sync if run.name == "sync" else awaited).compile(checkpointer=saver)
    (question,) = run.invoke(app, {"a": ["in"]}, thread("1"))["__interrupt__"]

    with pytest.raises(ReplayMismatchError, match=r"another input[\s\S]*runtime.step"):
        run.invoke(app, Command(resume={question.id: "yes"}), thread("1"))


def test_what_changes_is_kept_by_a_step(run: Runner, memory: Saver, thread: Thread) -> None:
    made = list[str]()
    inner = asking([], "x")

    def name() -> str:
        made.append(f"name {len(made)}")
        return made[-1]

    def sync(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"a": inner.invoke({"a": [runtime.step("name", name)]})["a"]}

    async def awaited(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"a": (await inner.ainvoke({"a": [await runtime.astep("name", name)]}))["a"]}

    app = chain("node", node=sync if run.name == "sync" else awaited).compile(checkpointer=memory)
    run.invoke(app, {"a": ["in"]}, thread("1"))

    assert ["in", "name 0", "x1", "x yes", "x2"] == run.invoke(app, Command(resume="yes"), thread("1"))["a"]
    assert ["name 0"] == made


def test_the_nodes_own_config_may_be_passed_on(run: Runner, memory: Saver, thread: Thread) -> None:
    calls = list[str]()
    inner = asking(calls, "x")

    def sync(state: State, config: RunnableConfig) -> dict[str, Any]:
        return {"a": inner.invoke({"a": []}, config)["a"]}

    async def awaited(state: State, config: RunnableConfig) -> dict[str, Any]:
        return {"a": (await inner.ainvoke({"a": []}, config))["a"]}

    app = chain("node", node=sync if run.name == "sync" else awaited).compile(checkpointer=memory)
    run.invoke(app, {"a": []}, thread("1"))

    assert ["x1", "x yes", "x2"] == run.invoke(app, Command(resume="yes"), thread("1"))["a"]
    assert ["x1", "x2"] == calls


def test_a_graph_with_a_saver_and_a_thread_of_its_own_stays_apart(thread: Thread) -> None:
    other = InMemorySaver()
    inner = chain("x").compile(checkpointer=other)
    app = chain("node", node=lambda state: {"a": inner.invoke({"a": []}, thread("its own"))["a"]}).compile(
        checkpointer=InMemorySaver()
    )

    app.invoke({"a": ["in"]}, thread("1"))

    assert ["x"] == inner.get_state(thread("its own")).values["a"]


def test_a_graph_that_persists_goes_on_from_its_last_call(run: Runner, memory: Saver, thread: Thread) -> None:
    inner = chain("x").compile(checkpointer=True)
    app = chain("node", node=_calls(run, inner, {"a": ["+"]})).compile(checkpointer=memory)

    found = [run.invoke(app, {"a": []}, thread("1"))["a"] for _ in range(2)]

    assert [["+", "x"], ["+", "x", "+", "x", "+", "x"]] == found
    place = {"configurable": {"thread_id": "1", "checkpoint_ns": "node"}}
    assert ["+", "x", "+", "x"] == run.state(inner.copy({"checkpointer": memory}), place).values["a"]


def test_two_calls_of_a_graph_that_persists_keep_states_of_their_own(memory: Saver, thread: Thread) -> None:
    inner = chain("x").compile(checkpointer=True)

    def node(state: State) -> dict[str, Any]:
        return {"a": [str(len(inner.invoke({"a": ["+"]})["a"])), str(len(inner.invoke({"a": []})["a"]))]}

    app = chain("node", node=node).compile(checkpointer=memory)

    assert ["2", "1", "4", "2"] == [app.invoke({"a": []}, thread("1"))["a"] for _ in range(2)][1]


def test_a_graph_that_keeps_nothing_runs_again_and_gets_its_answer(run: Runner, memory: Saver, thread: Thread) -> None:
    calls = list[str]()
    inner = asking(calls, "x").copy({"checkpointer": False})
    app = chain("node", node=_calls(run, inner)).compile(checkpointer=memory)

    run.invoke(app, {"a": []}, thread("1"))

    assert ["x1", "x yes", "x2"] == run.invoke(app, Command(resume="yes"), thread("1"))["a"]
    assert ["x1", "x1", "x2"] == calls


def test_graphs_call_graphs_at_any_depth_with_few_threads(monkeypatch: pytest.MonkeyPatch, thread: Thread) -> None:
    from pregel.engine import pool

    calls = list[str]()

    def level(depth: int, inner: Any) -> Any:
        def node(state: State) -> dict[str, Any]:
            if inner is None:
                return {"a": [f"bottom {interrupt('go on?')}"]}
            return {"a": [*inner.invoke({"a": []})["a"], str(depth)]}

        graph = chain("before", "node", before=mark(f"b{depth}", calls), node=node)
        graph.add_node("beside", lambda state: {"a": []})
        graph.add_edge("before", "beside")
        return graph

    inner = None
    for depth in range(20):
        inner = level(depth, inner).compile()
    app = level(20, inner).compile(checkpointer=InMemorySaver())
    monkeypatch.setattr(pool, "_shared", pool.Pool(2))

    app.invoke({"a": []}, thread("1"))
    end = app.invoke(Command(resume="yes"), thread("1"))

    assert ["bottom yes", *map(str, range(1, 21))] == [one for one in end["a"] if not one.startswith("b") or " " in one]
    assert [f"b{depth}" for depth in range(20, -1, -1)] == calls


@pytest.mark.acceptance("S1-27")
def test_a_command_for_the_graph_around_a_called_one_is_its_nodes_output(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    up = chain("up", up=lambda state: Command(graph=Command.PARENT, update={"a": ["up"]}, goto="last")).compile()
    app = _around(_calls(run, up)).compile(checkpointer=memory)

    assert ["in", "up", "last"] == run.invoke(app, {"a": ["in"]}, thread("1"))["a"]


def test_the_same_without_a_saver(run: Runner) -> None:
    up = chain("up", up=lambda state: Command(graph=Command.PARENT, update={"a": ["up"]}, goto="last")).compile()

    assert ["in", "up", "last"] == run.invoke(_around(_calls(run, up)).compile(), {"a": ["in"]})["a"]


def _around(node: Any) -> StateGraph[Any]:
    graph = StateGraph(State)
    graph.add_node("node", node, destinations=("last",))
    graph.add_node("last", mark("last"))
    graph.add_edge(START, "node")
    return graph


def test_chunks_of_a_called_graph_show_with_its_namespace(run: Runner, memory: Saver, thread: Thread) -> None:
    app = chain("node", node=_calls(run, chain("x").compile())).compile(checkpointer=memory)

    (inner, first), (outer, second) = run.stream(app, {"a": []}, thread("1"), stream_mode="updates", subgraphs=True)

    assert ({"x": {"a": ["x"]}}, {"node": {"a": ["x"]}}) == (first, second)
    assert ((), "call:0") == (outer, inner[-1])


def test_a_called_graph_sees_the_context_and_the_store_of_its_run(run: Runner, memory: Saver, thread: Thread) -> None:
    def look(state: State, runtime: Runtime[Any]) -> dict[str, Any]:
        return {"a": [runtime.context, runtime.store]}

    app = chain("node", node=_calls(run, chain("look", look=look).compile())).compile(
        checkpointer=memory, store=THE_STORE
    )

    assert ["context", "the store"] == run.invoke(app, {"a": []}, thread("1"), context="context")["a"]


def test_a_breakpoint_of_a_called_graph_stops_the_run(run: Runner, memory: Saver, thread: Thread) -> None:
    calls = list[str]()
    inner = chain("x", "y", x=mark("x", calls), y=mark("y", calls)).compile(interrupt_before=["y"])
    app = chain("node", node=_calls(run, inner)).compile(checkpointer=memory)

    run.invoke(app, {"a": []}, thread("1"))
    assert (["x"], ("node",)) == (calls, run.state(app, thread("1")).next)

    assert ["x", "y"] == run.invoke(app, None, thread("1"))["a"]
    assert ["x", "y"] == calls


def test_a_call_that_its_run_cannot_hear_runs_as_part_of_its_node_and_is_warned_about(
    run: Runner, thread: Thread
) -> None:
    calls = list[str]()
    inner = asking(calls, "x")

    def awaits(state: State) -> dict[str, Any]:
        return {"a": asyncio.run(inner.ainvoke({"a": []}))["a"]}

    async def blocks(state: State) -> dict[str, Any]:
        return {"a": inner.invoke({"a": []})["a"]}

    app = chain("node", node=awaits if run.name == "sync" else blocks).compile(checkpointer=InMemorySaver())
    with pytest.warns(PregelWarning, match="nothing of it is stored"):
        run.invoke(app, {"a": []}, thread("1"))
    with pytest.warns(PregelWarning, match="nothing of it is stored"):
        end = run.invoke(app, Command(resume="yes"), thread("1"))

    assert (["x1", "x yes", "x2"], ["x1", "x1", "x2"]) == (end["a"], calls)


def test_a_graph_called_in_a_chain_and_in_a_task_is_part_of_the_run(run: Runner, memory: Saver, thread: Thread) -> None:
    inner = chain("x").compile()

    @task
    def call(value: Any) -> Any:
        return inner.invoke(value)

    @entrypoint(checkpointer=memory)
    def flow(n: int) -> Any:
        return call({"a": [str(n)]}).result()["a"]

    graph = StateGraph(State)
    graph.add_node("chained", chain("y").compile() | (lambda state: {"a": state["a"]}))
    graph.add_edge(START, "chained")

    assert ["1", "x"] == run.invoke(flow, 1, thread("1"))
    assert ["in", "in", "y"] == run.invoke(graph.compile(checkpointer=memory), {"a": ["in"]}, thread("2"))["a"]
