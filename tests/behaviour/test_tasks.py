"""`@task` and `@entrypoint`: what was done is kept over questions, failures and crashes, and not done again."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import Any

import pytest

from pregel.cache.memory import InMemoryCache
from pregel.checkpoint.memory import InMemorySaver
from pregel.config import RunnableConfig
from pregel.errors import InvalidInputError, NodeTimeoutError, OutsideRunError
from pregel.func import entrypoint, task
from pregel.graph import START, StateGraph
from pregel.runtime import Runtime
from pregel.types import CachePolicy, Command, RetryPolicy, interrupt

from .conftest import Runner
from .marks import Saver, State, Thread
from .virtual_time import played


@pytest.fixture
def memory() -> Saver:
    """A saver, for what is the same on each."""
    return InMemorySaver()


def test_results_of_tasks_flow_into_the_output(run: Runner, saver: Saver, thread: Thread) -> None:
    @task
    def double(n: int) -> int:
        return 2 * n

    @entrypoint(checkpointer=saver)
    def flow(n: int) -> int:
        return sum(future.result() for future in [double(n), double(n + 1)])

    assert 10 == run.invoke(flow, 2, thread("1"))
    assert (10, ()) == run.state(flow, thread("1"))[:2]


def test_what_ended_is_not_run_again_after_a_failure(run: Runner, saver: Saver, thread: Thread) -> None:
    calls, trouble = list[str](), [ValueError("once")]

    @task
    def charge(name: str) -> str:
        calls.append(name)
        return name.upper()

    @entrypoint(checkpointer=saver)
    def flow(names: list[str]) -> list[str]:
        done = [charge(name) for name in names]
        found = [one.result() for one in done]
        if trouble:
            raise trouble.pop()
        return found

    with pytest.raises(ValueError, match="once"):
        run.invoke(flow, ["a", "b", "c"], thread("1"))

    assert ["A", "B", "C"] == run.invoke(flow, None, thread("1"))
    assert ["a", "b", "c"] == sorted(calls)


def test_a_failed_task_runs_again_and_the_others_do_not(run: Runner, memory: Saver, thread: Thread) -> None:
    calls, trouble = list[str](), [ValueError("once")]

    @task
    def work(name: str) -> str:
        calls.append(name)
        if name == "b" and trouble:
            raise trouble.pop()
        return name

    @entrypoint(checkpointer=memory)
    def flow(_: str) -> str:
        return "".join(one.result() for one in [work("a"), work("b")])

    with pytest.raises(ValueError, match="once"):
        run.invoke(flow, "go", thread("1"))

    assert "ab" == run.invoke(flow, None, thread("1"))
    assert ["a", "b", "b"] == sorted(calls)


@pytest.mark.acceptance("S1-22")
def test_code_before_a_question_runs_again_and_a_task_before_it_does_not(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    plain, kept = list[str](), list[str]()

    @task
    def quote(item: str) -> str:
        kept.append(item)
        return f"{item} at 5"

    @entrypoint(checkpointer=memory)
    def flow(item: str) -> str:
        plain.append(item)
        offer = quote(item).result()
        return f"{offer}: {interrupt(offer)}"

    asked = run.invoke(flow, "bread", thread("1"))["__interrupt__"]

    assert "bread at 5: yes" == run.invoke(flow, Command(resume="yes"), thread("1"))
    assert (["bread at 5"], 2, 1) == ([one.value for one in asked], len(plain), len(kept))


def test_questions_of_tasks_come_as_their_results_are_asked_for(run: Runner, memory: Saver, thread: Thread) -> None:
    @task
    def ask(question: str) -> str:
        return str(interrupt(question))

    @entrypoint(checkpointer=memory)
    def flow(_: str) -> str:
        first, second = ask("one?"), ask("two?")
        return first.result() + second.result()

    one = run.invoke(flow, "go", thread("1"))["__interrupt__"]
    assert one == list(run.state(flow, thread("1")).interrupts)
    two = run.invoke(flow, Command(resume={one[0].id: "1"}), thread("1"))["__interrupt__"]

    assert "12" == run.invoke(flow, Command(resume="2"), thread("1"))
    assert (["one?"], ["two?"]) == ([q.value for q in one], [q.value for q in two])


def test_several_questions_of_one_task_are_answered_one_after_the_other(
    run: Runner, memory: Saver, thread: Thread
) -> None:
    @task
    def ask() -> list[Any]:
        return [interrupt("one?"), interrupt("two?")]

    @entrypoint(checkpointer=memory)
    def flow(_: str) -> list[Any]:
        return ask().result()

    first = run.invoke(flow, "go", thread("1"))["__interrupt__"]
    second = run.invoke(flow, Command(resume=1), thread("1"))["__interrupt__"]

    assert [1, 2] == run.invoke(flow, Command(resume=2), thread("1"))
    assert first[0].id != second[0].id


def test_an_error_of_a_task_can_be_handled_where_its_result_is_asked_for(run: Runner, thread: Thread) -> None:
    @task
    def broken() -> int:
        raise ValueError("no")

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: str) -> str:
        broken()  # nobody asks for this one
        try:
            broken().result()
        except ValueError as error:
            return f"handled {error}"
        return "not reached"

    assert "handled no" == run.invoke(flow, "go", thread("1"))


def test_a_task_is_tried_again_by_its_own_policy(run: Runner, thread: Thread) -> None:
    attempts = []

    @task(retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError), name="shaky")
    def flaky(*, runtime: Runtime[None]) -> int:
        assert runtime.execution_info is not None
        attempts.append(runtime.execution_info.node_attempt)
        if len(attempts) < 3:
            raise ValueError("not yet")
        return len(attempts)

    @entrypoint(checkpointer=InMemorySaver())
    def flow(_: str) -> int:
        return flaky().result()  # type: ignore[call-arg]  # it is filled in

    assert [{"shaky": 3}, {"flow": 3}] == run.stream(flow, "go", thread("1"))
    assert [1, 2, 3] == attempts


def test_a_caller_that_is_tried_again_keeps_what_its_tasks_returned(run: Runner, thread: Thread) -> None:
    calls = list[str]()

    @task
    def work(name: str) -> str:
        calls.append(name)
        return name

    @entrypoint(
        checkpointer=InMemorySaver(),
        retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=ValueError),
    )
    def flow(name: str) -> str:
        found = work(name).result()
        if calls == ["a"]:
            calls.append("again")
            raise ValueError("once")
        return found

    assert "a" == run.invoke(flow, "a", thread("1"))
    assert ["a", "again"] == calls


def test_previous_is_what_the_last_run_returned_or_saved(run: Runner, memory: Saver, thread: Thread) -> None:
    @entrypoint(checkpointer=memory)
    def total(n: int, *, previous: int | None) -> Any:
        return entrypoint.final(value=f"was {previous}", save=(previous or 0) + n)

    assert ["was None", "was 1", "was 3"] == [run.invoke(total, n, thread("1")) for n in (1, 2, 3)]


def test_without_a_saver_there_is_no_previous_and_tasks_run_all_the_same(run: Runner) -> None:
    @task
    def add(a: int, b: int) -> int:
        return a + b

    @entrypoint()
    def flow(n: int, *, previous: Any, runtime: Runtime[Any]) -> tuple[Any, Any, int]:
        return previous, runtime.previous, add(n, b=1).result()

    assert (None, None, 3) == run.invoke(flow, 2)


def test_a_stream_shows_each_task_as_it_ends(run: Runner, memory: Saver, thread: Thread) -> None:
    @task
    def work(n: int) -> int | None:
        return n or None

    @entrypoint(checkpointer=memory)
    def flow(n: int) -> Any:
        work(0).result()
        return (work(n).result(), interrupt("go on?"))

    first = run.stream(flow, 1, thread("1"))
    second = run.stream(flow, Command(resume="yes"), thread("1"), stream_mode=["updates", "values"])

    assert [{"work": None}, {"work": 1}] == first[:2]
    assert ["__interrupt__"] == list(first[2])
    assert [
        ("values", None),
        ("updates", {"flow": (1, "yes")}),
        ("values", (1, "yes")),
    ] == second


def test_a_task_of_a_partial_is_called_after_its_function(run: Runner) -> None:
    def add(left: int, right: int) -> int:
        return left + right

    one, two = task(functools.partial(add, 1)), task(name="two")(functools.partial(add, 2))

    @entrypoint()
    def flow(n: int) -> int:
        return int(two(one(n).result()).result())

    assert run.stream(flow, 0) == [{"add": 1}, {"two": 3}, {"flow": 3}]


def test_mode_tasks_shows_how_calls_start_and_end(run: Runner) -> None:
    @task
    def add(a: int, *, b: int) -> int:
        return a + b

    @entrypoint(checkpointer=InMemorySaver())
    def flow(n: int) -> int:
        return add(n, b=1).result()

    shown = run.stream(flow, 1, {"configurable": {"thread_id": "1"}}, stream_mode="tasks")

    names = [(one["name"], "result" in one) for one in shown]
    assert [("flow", False), ("add", False), ("add", True), ("flow", True)] == names
    assert (((1,), {"b": 1}), ("__pregel_push",)) == (shown[1]["input"], tuple(shown[1]["triggers"]))
    assert {"__return__": 2} == shown[2]["result"]


def test_the_history_of_an_entrypoint(run: Runner, memory: Saver, thread: Thread) -> None:
    @entrypoint(checkpointer=memory)
    def flow(n: int) -> int:
        return n + 1

    run.invoke(flow, 1, thread("1"))

    end, start = run.history(flow, thread("1"))
    assert (2, (), "loop", 0) == (end.values, end.next, end.metadata["source"], end.metadata["step"])
    assert (None, ("flow",), "input", -1) == (
        start.values,
        start.next,
        start.metadata["source"],
        start.metadata["step"],
    )
    assert [2] == [one.result for one in start.tasks]


def test_nodes_of_a_graph_call_tasks_too(run: Runner, memory: Saver, thread: Thread) -> None:
    calls = list[str]()

    @task
    def work(name: str) -> str:
        calls.append(name)
        return name

    def node(state: State) -> dict[str, Any]:
        found = work("x").result()
        return {"a": [found, interrupt("go on?")]}

    graph = StateGraph(State)
    graph.add_node("node", node)
    graph.add_node("beside", lambda state: {"a": [work("y").result()]})
    graph.add_edge(START, "node")
    graph.add_edge(START, "beside")
    app = graph.compile(checkpointer=memory)

    run.invoke(app, {"a": []}, thread("1"))

    assert ["y", "x", "yes"] == run.invoke(app, Command(resume="yes"), thread("1"))["a"]
    assert ["x", "y"] == sorted(calls)


def test_tasks_call_tasks(run: Runner, memory: Saver, thread: Thread) -> None:
    calls = list[int]()

    @task
    def count(n: int) -> int:
        calls.append(n)
        return 0 if n == 0 else count(n - 1).result() + 1

    @entrypoint(checkpointer=memory)
    def flow(n: int) -> Any:
        return count(n).result(), interrupt("sure?")

    run.invoke(flow, 4, thread("1"))

    assert (4, "yes") == run.invoke(flow, Command(resume="yes"), thread("1"))
    assert [4, 3, 2, 1, 0] == calls


def test_what_a_task_wants_of_the_runtime_is_filled_in_unless_it_is_given(run: Runner) -> None:
    @task
    def seen(a: int, config: RunnableConfig, runtime: Runtime[Any]) -> tuple[int, Any, Any]:
        return a, config["configurable"].get("who"), runtime.context

    @entrypoint(context_schema=dict)
    def flow(_: int) -> Any:
        return seen(1).result(), seen(2, {"configurable": {"who": "given"}}).result()  # type: ignore[call-arg]

    config = {"configurable": {"who": "me"}}
    assert ((1, "me", {"k": 1}), (2, "given", {"k": 1})) == run.invoke(flow, 1, config, context={"k": 1})


def test_a_task_outside_of_a_run_is_refused() -> None:
    @task
    def work() -> int:
        return 1

    with pytest.raises(OutsideRunError):
        work()


def test_a_task_that_cannot_be_stopped_takes_no_timeout() -> None:
    with pytest.raises(InvalidInputError, match="cannot be stopped"):

        @task(timeout=1)
        def work() -> int:
            return 1


def test_an_entrypoint_needs_an_input_and_is_no_generator() -> None:
    with pytest.raises(ValueError, match="takes no parameter"):

        @entrypoint()
        def nothing() -> int:
            return 1

    with pytest.raises(NotImplementedError, match="generator"):

        @entrypoint()
        def many(n: int) -> Any:
            yield n

    with pytest.raises(TypeError, match="both types"):

        @entrypoint()
        def half(n: int) -> entrypoint.final[int]:  # type: ignore[type-arg]
            return entrypoint.final(value=n, save=n)


def test_a_cached_task_runs_once_an_input_and_again_when_it_is_forgotten(run: Runner, thread: Thread) -> None:
    ran, cache = list[int](), InMemoryCache[Any]()

    @task(cache_policy=CachePolicy())
    def work(n: int) -> int:
        ran.append(n)
        return 2 * n

    @entrypoint(cache=cache, checkpointer=InMemorySaver())
    def flow(numbers: list[int]) -> list[int]:
        return [work(n).result() for n in numbers]

    assert [[2, 4, 2], [2, 4, 2]] == [run.invoke(flow, [1, 2, 1], thread(name)) for name in "ab"]
    assert [1, 2] == ran
    work.clear_cache(cache)
    run.invoke(flow, [1], thread("c"))
    assert [1, 2, 1] == ran


def test_a_coroutine_task_that_takes_too_long_is_a_failure_that_is_tried_again(thread: Thread) -> None:
    tries = list[int]()

    @task(timeout=0.05, retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=NodeTimeoutError))
    async def slow() -> int:
        tries.append(1)
        if len(tries) == 1:
            await asyncio.Event().wait()
        return len(tries)

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(_: int) -> int:
        return await slow()

    assert 2 == played(flow.ainvoke(1, thread("1")))


def test_a_task_is_a_method_too(run: Runner) -> None:
    class Shop:
        price = 5

        @task
        def cost(self, n: int) -> int:
            return n * self.price

    @entrypoint()
    def flow(n: int) -> Any:
        return Shop().cost(n).result()

    assert 10 == run.invoke(flow, 2)


def test_every_attempt_of_a_task_has_its_limit(thread: Thread) -> None:
    tries: list[int] = []

    @task(timeout=0.05, retry_policy=RetryPolicy(initial_interval=0, jitter=False, retry_on=NodeTimeoutError))
    async def slow() -> int:
        tries.append(1)
        if len(tries) < 3:
            await asyncio.Event().wait()
        return len(tries)

    @entrypoint(checkpointer=InMemorySaver())
    async def flow(_: int) -> int:
        return await slow()

    assert 3 == played(flow.ainvoke(1, thread("1")))


def test_an_output_that_cannot_be_cached_fails_no_run(run: Runner) -> None:
    @entrypoint(cache=InMemoryCache(), cache_policy=CachePolicy())
    def kept(n: int) -> entrypoint.final[int, int]:
        return entrypoint.final(value=n, save=2)

    def lock(state: State) -> State:
        return {"a": [threading.Lock()]}  # type: ignore[list-item]

    app = StateGraph(State).add_node("lock", lock, cache_policy=CachePolicy()).add_edge(START, "lock")

    assert [1, 1] == [run.invoke(kept, 1), run.invoke(kept, 1)]
    assert 1 == len(run.invoke(app.compile(cache=InMemoryCache()), {"a": []})["a"])
