"""Threads and event loops: where nodes run, how many at once, and graphs called from inside nodes."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from pregel.errors import AsyncOnlyError, GraphInterrupt
from pregel.graph import START, StateGraph
from pregel.runnable import RunnableLambda
from pregel.types import Command, Send, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark, parallel

# -- where nodes run ---------------------------------------------------------------------------------------------------


async def amark(state: State) -> dict[str, Any]:
    return {"a": ["async"]}


@pytest.mark.parametrize("build", [chain, parallel])  # on the caller's thread, on a worker
def test_an_async_only_node_is_refused_by_the_blocking_api(saver: Saver, thread: Thread, build: Any) -> None:
    app = build("x", "y", x=amark).compile(checkpointer=saver)

    with pytest.raises(AsyncOnlyError, match="No synchronous function provided") as caught:
        app.invoke({"a": []}, thread("1"))

    assert isinstance(caught.value, TypeError)
    assert "ainvoke" in caught.value.fix
    assert asyncio.run(app.ainvoke(None, thread("1"))) == {"a": ["async", "y"]}


def test_sync_nodes_run_off_the_event_loop() -> None:
    threads: list[int] = []
    app = chain("x", "y", x=lambda state: threads.append(threading.get_ident()), y=amark).compile()

    async def scenario() -> int:
        await app.ainvoke({"a": []})
        return threading.get_ident()

    assert asyncio.run(scenario()) not in threads
    assert len(threads) == 1


def test_a_sync_node_does_not_hold_up_the_event_loop() -> None:
    async def scenario() -> Any:
        go = threading.Event()
        app = chain("x", x=lambda state: {"a": [str(go.wait(60))]}).compile()
        running = asyncio.ensure_future(app.ainvoke({"a": []}))
        asyncio.get_running_loop().call_soon(go.set)  # never comes when the loop's thread waits in the node
        return await running

    assert asyncio.run(scenario()) == {"a": ["True"]}


def test_invoke_works_inside_a_running_event_loop(saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y").compile(checkpointer=saver)

    async def scenario() -> Any:
        return app.invoke({"a": []}, thread("1"))

    assert asyncio.run(scenario()) == {"a": ["x", "y"]}


def test_a_graph_serves_several_event_loops_one_after_the_other(saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", x=amark).compile(checkpointer=saver)

    results = [asyncio.run(app.ainvoke({"a": []}, thread(id))) for id in ("1", "2", "1")]

    assert [len(result["a"]) for result in results] == [2, 2, 4]


def test_context_variables_of_the_caller_reach_nodes_and_none_comes_back(run: Runner) -> None:
    user: ContextVar[str] = ContextVar("user", default="nobody")

    def node(state: State) -> dict[str, Any]:
        seen = user.get()
        user.set("node")
        return {"a": [seen]}

    user.set("anna")
    result = run.invoke(parallel("x", "y", x=node, y=node).compile(), {"a": []})

    assert result == {"a": ["anna", "anna"]}
    assert user.get() == "anna"


def test_no_more_tasks_run_at_once_than_allowed(run: Runner) -> None:
    lock, now, most = threading.Lock(), [0], [0]
    two = threading.Barrier(2, timeout=60)

    def work(arg: int) -> dict[str, Any]:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        two.wait()
        with lock:
            now[0] -= 1
        return {"a": [str(arg)]}

    graph = StateGraph(State).add_node("w", work)
    graph.add_conditional_edges(START, lambda state: [Send("w", n) for n in range(8)], ["w"])

    result = run.invoke(graph.compile(), {"a": []}, {"max_concurrency": 2})

    assert (result["a"], most) == ([str(n) for n in range(8)], [2])


# -- graphs inside nodes -----------------------------------------------------------------------------------------------


def calling(inner: Any) -> Any:
    """A node that calls a graph from its own code, blocking or awaiting as it is called itself."""

    def node(state: State) -> dict[str, Any]:
        return {"a": ["outer", *inner.invoke({"a": []})["a"]]}

    return node


def fan(node: Any) -> Any:
    """Runs the node for each of so many numbers as are given."""
    builder = StateGraph(State).add_node("start", lambda state: {}).add_node("work", node)
    builder.add_edge(START, "start")
    builder.add_conditional_edges("start", lambda state: [Send("work", n) for n in range(int(state["a"][0]))], ["work"])
    return builder.compile()


def test_thousands_of_tasks_that_wait_for_each_other_all_start() -> None:
    """They start wave by wave, and no wave waits for the one before it to end."""
    begun = 0

    async def scenario() -> Any:
        everybody = asyncio.Event()

        async def work(n: int) -> dict[str, Any]:
            nonlocal begun
            begun += 1
            if begun == 3_000:
                everybody.set()
            await everybody.wait()
            return {}

        return await fan(work).ainvoke({"a": ["3000"]})

    assert asyncio.run(scenario()) == {"a": ["3000"]}


def test_of_thousands_of_tasks_that_wait_for_nothing_few_are_asyncio_tasks_at_once() -> None:
    seen: list[int] = []

    async def work(n: int) -> dict[str, Any]:
        if n % 500 == 0:
            seen.append(len(asyncio.all_tasks()))
        return {}

    asyncio.run(fan(work).ainvoke({"a": ["6000"]}))

    assert len(seen) == 12
    assert max(seen) < 600


@pytest.mark.parametrize("config", [{}, {"max_concurrency": 3}])
def test_a_failure_among_thousands_of_tasks_stops_those_that_have_not_started(run: Runner, config: Any) -> None:
    """Leaving each out is no search through all of them: a hundred thousand would take minutes."""

    async def awork(n: int) -> dict[str, Any]:
        return work(n)

    def work(n: int) -> dict[str, Any]:
        raise ValueError(f"of {n}")

    node = RunnableLambda(work, afunc=awork)
    with pytest.raises(ValueError, match="of 0"):
        run.invoke(fan(node), {"a": ["20000"]}, config)


def test_a_node_may_invoke_a_graph(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", x=calling(parallel("p", "q").compile())).compile(checkpointer=saver)

    assert run.invoke(app, {"a": []}, thread("1")) == {"a": ["outer", "p", "q"]}


def test_an_async_node_may_await_a_graph(saver: Saver, thread: Thread) -> None:
    inner = parallel("p", "q", q=amark).compile()

    async def node(state: State) -> dict[str, Any]:
        return await inner.ainvoke({"a": []})  # type: ignore[no-any-return]

    app = chain("x", x=node).compile(checkpointer=saver)

    assert asyncio.run(app.ainvoke({"a": []}, thread("1"))) == {"a": ["p", "async"]}


def test_a_question_of_an_invoked_graph_goes_up_and_its_answer_comes_down(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    inner = chain("p", "q", q=lambda state: {"a": [interrupt("?")]}).compile()
    app = chain("x", "y", x=calling(inner)).compile(checkpointer=saver)

    (question,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]

    assert question.value == "?"
    assert run.state(app, thread("1")).interrupts == (question,)
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"a": ["outer", "p", "yes", "y"]}


def test_two_invoked_graphs_of_one_node_ask_one_after_the_other(run: Runner, saver: Saver, thread: Thread) -> None:
    inner = chain("p", p=lambda state: {"a": [interrupt("?")]}).compile()

    def node(state: State) -> dict[str, Any]:
        return {"a": [inner.invoke({"a": []})["a"][0], inner.invoke({"a": []})["a"][0]]}

    app = chain("x", x=node).compile(checkpointer=saver)
    (first,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    (second,) = run.invoke(app, Command(resume={first.id: "1"}), thread("1"))["__interrupt__"]

    assert first.id != second.id
    assert run.invoke(app, Command(resume="2"), thread("1")) == {"a": ["1", "2"]}


def test_a_question_of_an_invoked_graph_cannot_be_swallowed(run: Runner, saver: Saver, thread: Thread) -> None:
    inner = chain("p", p=lambda state: {"a": [interrupt("?")]}).compile()

    def node(state: State) -> dict[str, Any]:
        try:
            return {"a": inner.invoke({"a": []})["a"]}
        except GraphInterrupt:
            return {"a": ["skipped"]}

    app = chain("x", x=node).compile(checkpointer=saver)

    assert "__interrupt__" in run.invoke(app, {"a": []}, thread("1"))
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"a": ["yes"]}


def test_many_nodes_that_wait_for_graphs_do_not_use_up_the_threads(run: Runner) -> None:
    def fan(node: Any) -> Any:
        graph = StateGraph(State).add_node("w", node)
        graph.add_conditional_edges(START, lambda state: [Send("w", n) for n in range(12)], ["w"])
        return graph.compile()

    leaf = fan(mark("leaf"))
    middle = fan(lambda arg: {"a": leaf.invoke({"a": []})["a"]})

    result = run.invoke(fan(lambda arg: {"a": middle.invoke({"a": []})["a"]}), {"a": []})

    assert result == {"a": ["leaf"] * 12**3}


def test_a_failure_of_an_invoked_graph_can_be_handled_by_the_node(run: Runner, saver: Saver, thread: Thread) -> None:
    def fail(state: State) -> None:
        raise ValueError("inner")

    inner = chain("p", p=fail).compile()

    def node(state: State) -> dict[str, Any]:
        try:
            inner.invoke({"a": []})
        except ValueError as error:
            return {"a": [str(error)]}
        return {}

    app = chain("x", x=node).compile(checkpointer=saver)

    assert run.invoke(app, {"a": []}, thread("1")) == {"a": ["inner"]}
    assert run.state(app, thread("1")).next == ()
