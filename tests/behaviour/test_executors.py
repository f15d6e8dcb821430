"""The code of nodes on an executor: other processes, threads, another engine; the same graph, and the same run."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest
from pydantic import ValidationError

from pregel.checkpoint.memory import InMemorySaver
from pregel.durable import elsewhere
from pregel.errors import DefinitionError, InternalError, OutsideRunError, WorkFailedError
from pregel.func import entrypoint
from pregel.graph import START, StateGraph
from pregel.testing import FakeClock
from pregel.types import CachePolicy, Command, RetryPolicy, Send, TimeoutPolicy

from . import away_nodes as nodes
from .conftest import Runner
from .marks import Saver, State, Thread, chain, parallel
from .test_authority import has_authority
from .test_thread_api import Api


def new_pool(size: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(size, mp_context=multiprocessing.get_context("spawn"))


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with new_pool(1) as pool:
        yield pool


@pytest.fixture(params=["threads", "processes", "keeping"])
def executor(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "processes":
        yield request.getfixturevalue("processes")
    elif request.param == "keeping":
        yield nodes.Keeping()
    else:
        with ThreadPoolExecutor(4) as pool:
            yield pool


def workflow() -> StateGraph[Any]:
    """Routes, Sends, siblings: what a graph is made of."""
    graph = StateGraph(State).add_node("double", nodes.doubled).add_node("route", nodes.routed)
    graph.add_node("last", nodes.last).add_node("each", nodes.doubled).add_edge("double", "route")
    graph.add_conditional_edges(START, lambda _: ["double", Send("each", {"a": ["s"]}), Send("each", {"a": ["t"]})])
    return graph


@pytest.mark.acceptance("S0-17")
def test_a_graph_runs_the_same_wherever_its_nodes_do(run: Runner, saver: Saver, thread: Thread, executor: Any) -> None:
    def shown(app: Any, name: str) -> Any:
        chunks = run.stream(app, {"a": ["in"]}, thread(name), stream_mode=["values", "updates", "tasks"])
        history = run.history(app, thread(name))
        told = [(mode, sorted(repr(chunk).split("'id'")[0] for chunk in [data])) for mode, data in chunks]
        return sorted(map(str, told)), [(one.values, one.next, one.metadata) for one in history]

    local = shown(workflow().compile(checkpointer=saver), "1")
    away = shown(workflow().compile(checkpointer=saver, executor=executor), "2")

    def anonymous(history: list[Any]) -> list[Any]:
        return [(values, next, {k: v for k, v in meta.items() if k not in ("thread_id", "run_id")})
                for values, next, meta in history]  # fmt: skip

    assert local[0] == away[0]
    assert anonymous(local[1]) == anonymous(away[1])


@pytest.mark.acceptance("S0-17")
def test_code_runs_in_other_processes(run: Runner, saver: Saver, thread: Thread, processes: Any) -> None:
    graph = chain("here", "there", here=nodes.where, there=nodes.where)

    away = graph.compile(checkpointer=saver, executor={"there": processes})
    here, there = run.invoke(away, {"a": []}, thread("1"))["a"]

    assert str(os.getpid()) == here != there
    assert [str(os.getpid())] * 2 == run.invoke(graph.compile(checkpointer=saver), {"a": []}, thread("2"))["a"]


@pytest.mark.acceptance("S0-17")
@pytest.mark.parametrize("node", [nodes.where_awaited, nodes.generated, nodes.generated_awaited])
def test_async_nodes_and_generators_run_there_too(run: Runner, processes: Any, node: Any) -> None:
    app = chain("x", x=node).compile(executor=processes)

    assert str(os.getpid()) not in run.invoke(app, {"a": []})["a"]


def test_questions_come_back_and_answers_go_there(run: Runner, saver: Saver, thread: Thread, executor: Any) -> None:
    app = chain("x", x=nodes.asks).compile(checkpointer=saver, executor=executor)

    (first,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    (second,) = run.invoke(app, Command(resume="Emma"), thread("1"))["__interrupt__"]

    assert ("name?", "town?") == (first.value, second.value)
    assert ["Emma", "Kyiv"] == run.invoke(app, Command(resume={second.id: "Kyiv"}), thread("1"))["a"]


def test_a_question_has_the_same_name_there_and_here(run: Runner, thread: Thread, processes: Any) -> None:
    saver, graph = InMemorySaver(), chain("x", x=nodes.asks)
    away = graph.compile(checkpointer=saver, executor=processes)
    (asked,) = run.invoke(away, {"a": []}, thread("1"))["__interrupt__"]

    answered = run.invoke(graph.compile(checkpointer=saver), Command(resume={asked.id: "Emma"}), thread("1"))

    assert ["town?"] == [one.value for one in answered["__interrupt__"]]


def test_typed_answers_are_checked_there(run: Runner, thread: Thread, processes: Any) -> None:
    app = chain("x", x=nodes.asks_typed).compile(checkpointer=InMemorySaver(), executor=processes)
    (asked,) = run.invoke(app, {"a": []}, thread("1"))["__interrupt__"]
    assert "years" in asked.response_schema["properties"]

    with pytest.raises(ValidationError):
        run.invoke(app, Command(resume={"years": "many"}), thread("1"))
    assert ["7"] == run.invoke(app, Command(resume={"years": 7}), thread("1"))["a"]


@pytest.mark.parametrize("ends", ["event", "time"])
def test_waits_rest_as_any(run: Runner, saver: Saver, thread: Thread, processes: Any, ends: str) -> None:
    if not has_authority(saver):
        pytest.skip("no waits are kept there")
    app = chain("x", x=nodes.waits).compile(checkpointer=saver, executor=processes)
    app.clock = clock = FakeClock()
    api = Api(run, app)
    run.invoke(app, {"a": []}, thread("1"))
    assert "waiting" == api("status", "1").status

    clock.advance(30)
    assert [] == list(api("due"))
    if ends == "event":
        api("send_event", "1", "paid", "in time")
    clock.advance(30)
    assert [{"event": "in time", "time": "late"}[ends]] == api("wake", "1")["a"]


def test_failures_come_back_and_are_tried_again_from_here(
    run: Runner, saver: Saver, thread: Thread, executor: Any
) -> None:
    policy = RetryPolicy(initial_interval=0, max_attempts=3, jitter=False)
    graph = StateGraph(State).add_node("x", nodes.fails_at_first, retry_policy=policy).add_edge(START, "x")

    app = graph.compile(checkpointer=saver, executor=executor)

    assert ["attempt 3"] == run.invoke(app, {"a": []}, thread("1"))["a"]


def test_an_error_says_where_it_was_raised(run: Runner, executor: Any) -> None:
    with pytest.raises(KeyError, match="not there") as caught:
        run.invoke(chain("x", x=nodes.fails).compile(executor=executor), {"a": []})

    assert "away_nodes.py" in caught.value.__notes__[0]
    assert "pregel/engine" not in caught.value.__notes__[0]


def test_an_error_that_cannot_come_back_says_what_it_was(run: Runner, executor: Any) -> None:
    with pytest.raises(WorkFailedError, match="Picky: one and two") as caught:
        run.invoke(chain("x", x=nodes.is_picky).compile(executor=executor), {"a": []})

    assert ("Picky", "one and two") == (caught.value.error_type, caught.value.error_message)


def test_error_handlers_run_there(run: Runner, processes: Any) -> None:
    graph = StateGraph(State).add_node("x", nodes.fails, error_handler=nodes.handles).add_edge(START, "x")

    assert ["handled KeyError"] == run.invoke(graph.compile(executor=processes), {"a": []})["a"]


def test_a_process_that_dies_is_a_failure_of_its_node(run: Runner, thread: Thread) -> None:
    with new_pool(1) as broken:
        app = chain("x", x=nodes.dies).compile(checkpointer=InMemorySaver(), executor=broken)
        with pytest.raises(BrokenProcessPool):
            run.invoke(app, {"a": []}, thread("1"))

    (task,) = run.state(app, thread("1")).tasks
    assert "BrokenProcessPool" in str(task.error)


def test_an_executor_that_refuses_is_a_failure_of_the_node(run: Runner) -> None:
    with pytest.raises(InternalError, match="queue is full"):
        run.invoke(chain("x", x=nodes.last).compile(executor=nodes.Full()), {"a": []})


def test_what_a_node_is_told_goes_there(run: Runner, saver: Saver, thread: Thread, executor: Any) -> None:
    def told(app: Any, name: str) -> tuple[list[Any], list[str]]:
        chunks = run.stream(app, {"a": []}, thread(name), stream_mode=["custom", "values"], context="the context")
        return [data for mode, data in chunks if mode == "custom"], chunks[-1][1]["a"]

    streamed, values = told(chain("x", x=nodes.tells).compile(checkpointer=saver, executor=executor), "1")
    here, local = told(chain("x", x=nodes.tells).compile(checkpointer=saver), "2")

    assert ["one", "two"] == streamed == here
    assert (values[0], values[2], len({*values[3:], *local[3:]})) == ("the context", "x", 4)
    assert (int(local[1]) > 0) is (int(values[1]) > 0)  # the fence


def test_keys_for_outside_effects_are_those_of_a_run_here(run: Runner, thread: Thread, executor: Any) -> None:
    def keys(**placed: Any) -> list[str]:
        app = chain("x", x=nodes.tells).compile(checkpointer=InMemorySaver(), **placed)
        found: list[str] = run.invoke(app, {"a": []}, thread("1"))["a"]
        return found[3:]

    assert keys() == keys(executor=executor)


@pytest.mark.parametrize("name", ["store", "step", "effect", "call"])
def test_what_is_not_there_is_named(run: Runner, thread: Thread, executor: Any, name: str) -> None:
    app = chain("x", x=nodes.wants(name)).compile(checkpointer=InMemorySaver(), executor=executor)

    with pytest.raises(OutsideRunError):
        run.invoke(app, {"a": []}, thread("1"))


def test_tasks_of_a_workflow_run_there(run: Runner, saver: Saver, thread: Thread, processes: Any) -> None:
    @entrypoint(checkpointer=saver, executor=processes)
    def app(numbers: list[int]) -> Any:
        futures = [nodes.square(n) for n in numbers]
        return [future.result() for future in futures], nodes.place(1).result(), os.getpid()

    squares, (n, there), here = run.invoke(app, [1, 2, 3], thread("1"))

    assert ([1, 4, 9], 1, os.getpid()) == (squares, n, here)
    assert there != here


def test_a_graph_inside_has_an_executor_of_its_own(run: Runner, processes: Any) -> None:
    inner = chain("there", there=nodes.where).compile(executor=processes)

    here, there = run.invoke(chain("here", "inner", here=nodes.where, inner=inner).compile(), {"a": []})["a"][-2:]

    assert str(os.getpid()) == here != there


def test_a_cached_node_asks_the_executor_once(run: Runner) -> None:
    from pregel.cache.memory import InMemoryCache

    engine = nodes.Keeping()
    graph = StateGraph(State).add_node("x", nodes.doubled, cache_policy=CachePolicy()).add_edge(START, "x")
    app = graph.compile(cache=InMemoryCache(), executor=engine)

    assert [["1", "11"]] * 2 == [run.invoke(app, {"a": ["1"]})["a"] for _ in range(2)]
    assert 1 == len(engine.seen)


@pytest.mark.acceptance("S0-17")
def test_an_engine_that_keeps_outcomes_is_offered_the_same_work_under_the_same_key(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    engine = nodes.Keeping()
    app = parallel("ask", "done", ask=nodes.asks, done=nodes.last).compile(checkpointer=saver, executor=engine)

    run.invoke(app, {"a": []}, thread("1"))
    run.invoke(app, Command(resume="Emma"), thread("1"))
    assert ["Emma", "Kyiv", "last"] == run.invoke(app, Command(resume="Kyiv"), thread("1"))["a"]

    asked = [work for work in engine.seen if work.node == "ask"]
    assert (4, 3) == (len(engine.seen), len({work.key for work in asked}))
    again = parallel("ask", "done", ask=nodes.asks, done=nodes.last).compile(
        checkpointer=InMemorySaver(), executor=engine
    )
    run.invoke(again, {"a": []}, thread("1"))
    assert 4 == len(engine.kept)  # another saver, and the same work of the same thread


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("pool", "no executor"),
        ({"y": nodes.Keeping()}, "no node"),
        ({"x": 3}, "no executor"),
        ({"idle": nodes.Keeping()}, "idle_timeout"),
        ({"inner": nodes.Keeping()}, "is a graph"),
        ({"work": nodes.Keeping()}, "done elsewhere"),
    ],
)
def test_what_cannot_be_is_refused_at_once(given: Any, message: str) -> None:
    async def patient(state: State) -> State:
        return {}

    graph = StateGraph(State).add_node("x", nodes.last).add_node("inner", chain("x").compile())
    graph.add_node("idle", patient, timeout=TimeoutPolicy(idle_timeout=5)).add_node("work", elsewhere("Work"))
    for name in ("x", "inner", "idle", "work"):
        graph.add_edge(START, name)

    with pytest.raises(DefinitionError, match=message):
        graph.compile(executor=given)


def test_code_that_no_other_process_finds_is_refused_at_once(processes: Any) -> None:
    with pytest.raises(DefinitionError, match="'x' cannot be sent"):
        chain("x", x=lambda state: {}).compile(executor=processes)
    with pytest.raises(DefinitionError, match="no executor"):
        entrypoint(executor=3)(lambda given: given)  # type: ignore[arg-type]  # that is what is refused


def test_work_says_what_it_is() -> None:
    engine = nodes.Keeping()
    app = chain("x", x=nodes.last).compile(checkpointer=InMemorySaver(), executor=engine, name="orders")
    app.invoke({"a": []}, {"configurable": {"thread_id": "7"}})

    (work,) = engine.seen
    assert ("x", "orders", "7", 1, 32) == (work.node, work.graph, work.thread_id, work.attempt, len(work.key))
    assert "last" not in repr(work)


def test_a_copy_and_a_config_keep_the_executor(processes: Any) -> None:
    import copy

    app: Any = chain("x", x=nodes.where).compile(executor=processes)
    made: Mapping[str, Any] = {"copy": copy.deepcopy(app), "config": app.with_config(tags=["t"])}

    assert all(str(os.getpid()) not in one.invoke({"a": []})["a"] for one in made.values())


@pytest.mark.slow
@pytest.mark.acceptance("S0-17")
def test_a_dask_cluster_runs_nodes_and_tasks() -> None:
    command = [sys.executable, "-m", "tests.behaviour.dask_cluster"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)

    assert [False, ["a lambda"] * 2, [1, 4, 9], [1, 4, 9]] == json.loads(ended.stdout)
