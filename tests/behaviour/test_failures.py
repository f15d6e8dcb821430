"""A node that raises: what the caller gets, what becomes of its siblings, and what is kept."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from pregel.errors import NodeCancelledError, PregelError
from pregel.graph import START, StateGraph
from pregel.types import Command, RetryPolicy, Send, interrupt

from .conftest import Awaiting, Runner
from .marks import Saver, State, Thread, chain, failing_once, mark, parallel


class Custom(Exception):
    """A user's own error, with a signature of its own."""

    def __init__(self, code: int, *, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason


def raising(error: BaseException) -> Callable[[Any], Any]:
    def node(state: Any) -> None:
        raise error

    return node


# -- what the caller gets ----------------------------------------------------------------------------------------------


def test_a_users_error_arrives_as_it_is(run: Runner, saver: Saver, thread: Thread) -> None:
    error = Custom(7, reason="mine")
    app = chain("x", x=raising(error)).compile(checkpointer=saver)

    with pytest.raises(Custom) as caught:
        run.invoke(app, {"a": []}, thread("1"))

    assert caught.value is error
    assert error.__cause__ is None
    assert error.__context__ is None


def test_the_note_says_which_node_step_thread_and_task(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", y=raising(Custom(7, reason="mine"))).compile(checkpointer=saver)

    with pytest.raises(Custom) as caught:
        run.invoke(app, {"a": []}, thread("thread-7"))

    (task,) = run.state(app, thread("thread-7")).tasks
    (note,) = caught.value.__notes__
    assert note == f"During task with name 'y' and id '{task.id}', step 2 of thread 'thread-7'"


def test_the_traceback_has_one_frame_of_ours_and_then_the_users(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("x", "y", y=raising(Custom(7, reason="mine"))).compile(checkpointer=saver)

    with pytest.raises(Custom) as caught:
        run.invoke(app, {"a": []}, thread("1"))

    modules = [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    ours = [place for place, module in enumerate(modules) if module.startswith("pregel.")]
    assert len(ours) == 1
    assert modules[ours[0] + 1 :] == [__name__]


@pytest.mark.parametrize("build", [chain, parallel])  # on the caller's thread, on a worker
def test_a_stop_iteration_arrives_as_it_is(build: Callable[..., StateGraph[Any]]) -> None:
    error = StopIteration("mine")

    with pytest.raises(StopIteration) as caught:
        build("x", "y", x=raising(error)).compile().invoke({"a": []})

    assert caught.value is error


def test_a_stop_iteration_that_python_keeps_from_leaving_a_coroutine_is_the_cause_of_what_arrives() -> None:
    app = chain("x", x=raising(StopIteration("mine"))).compile()

    with pytest.raises(RuntimeError, match="StopIteration") as caught:
        asyncio.run(app.ainvoke({"a": []}))

    assert isinstance(caught.value.__cause__, StopIteration)


async def acancelled(state: State) -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("build", [chain, parallel])
@pytest.mark.parametrize("node", [raising(asyncio.CancelledError()), acancelled], ids=["sync", "async"])
def test_a_node_that_raises_cancelled_itself_failed(
    run: Runner, saver: Saver, thread: Thread, build: Callable[..., StateGraph[Any]], node: Any
) -> None:
    driver = Awaiting() if node is acancelled else run
    app = build("x", "y", x=node).compile(checkpointer=saver)

    with pytest.raises(NodeCancelledError) as caught:
        driver.invoke(app, {"a": []}, thread("1"))

    assert (caught.value.node, caught.value.step) == ("x", 1)
    assert isinstance(caught.value, PregelError)
    (task,) = [task for task in app.get_state(thread("1")).tasks if task.name == "x"]
    assert task.error.startswith("NodeCancelledError")


@pytest.mark.parametrize("build", [chain, parallel])
def test_the_end_of_an_async_generator_arrives_as_it_is(run: Runner, build: Callable[..., StateGraph[Any]]) -> None:
    error = StopAsyncIteration("mine")

    with pytest.raises(StopAsyncIteration) as caught:
        run.invoke(build("x", "y", x=raising(error)).compile(), {"a": []})

    assert caught.value is error


def test_an_exception_group_arrives_whole(run: Runner) -> None:
    group = ExceptionGroup("several", [ValueError("one"), KeyError("two")])
    app = chain("x", x=raising(group)).compile()

    with pytest.raises(ExceptionGroup) as caught:
        run.invoke(app, {"a": []})

    assert caught.value is group


# -- several in one step -----------------------------------------------------------------------------------------------


def two_that_fail_together() -> StateGraph[Any]:
    """Both raise after both have started."""
    both = threading.Barrier(2, timeout=60)

    def node(name: str) -> Callable[[Any], Any]:
        def body(state: Any) -> None:
            both.wait()
            raise Custom(1, reason=name)

        return body

    return parallel("x", "y", x=node("x"), y=node("y"))


def test_of_two_failures_the_first_in_task_order_is_raised_and_names_the_other(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = two_that_fail_together().compile(checkpointer=saver)

    with pytest.raises(Custom) as caught:
        run.invoke(app, {"a": []}, thread("1"))

    tasks = {task.name: task for task in run.state(app, thread("1")).tasks}
    assert caught.value.reason == "x"
    assert caught.value.__notes__[1:] == [
        f"In the same step 'y' (task {tasks['y'].id}) failed with Custom(1, 'y')",
    ]
    assert {name: task.error for name, task in tasks.items()} == {"x": "Custom(1, 'x')", "y": "Custom(1, 'y')"}


def test_of_failing_sends_the_first_sent_is_raised(run: Runner) -> None:
    both = threading.Barrier(2, timeout=60)

    def work(arg: int) -> None:
        both.wait()
        raise Custom(arg, reason="w")

    graph = StateGraph(State).add_node("w", work)
    graph.add_conditional_edges(START, lambda state: [Send("w", 1), Send("w", 2)], ["w"])

    with pytest.raises(Custom) as caught:
        run.invoke(graph.compile(), {"a": []})

    assert caught.value.code == 1


@pytest.mark.parametrize(
    "goes_on",
    [
        {"retry_policy": RetryPolicy(initial_interval=0.0, max_attempts=2, retry_on=Custom)},
        {"error_handler": lambda state: {"a": ["handled"]}},
    ],
    ids=["tried again", "handled"],
)
def test_a_failure_that_only_the_end_of_the_step_made_final_is_not_the_one_that_is_raised(
    run: Runner, saver: Saver, thread: Thread, goes_on: dict[str, Any]
) -> None:
    started, heard = threading.Event(), threading.Event()

    def late(state: Any) -> None:
        started.set()
        assert heard.wait(60)
        raise Custom(1, reason="late")

    def cause(state: Any) -> None:
        assert started.wait(60)
        raise Custom(2, reason="cause")

    def unwanted(error: Exception) -> bool:  # asked when the failure is heard
        heard.set()
        return False

    graph = StateGraph(State).add_node("x", late, **goes_on)
    graph.add_node("y", cause, retry_policy=RetryPolicy(retry_on=unwanted))
    app = graph.add_edge(START, "x").add_edge(START, "y").compile(checkpointer=saver)

    with pytest.raises(Custom) as caught:
        run.invoke(app, {"a": []}, thread("1"))

    tasks = {task.name: task for task in run.state(app, thread("1")).tasks}
    assert caught.value.reason == "cause"
    assert caught.value.__notes__[1:] == [f"In the same step 'x' (task {tasks['x'].id}) failed with Custom(1, 'late')"]
    assert {name: task.error for name, task in tasks.items()} == {"x": "Custom(1, 'late')", "y": "Custom(2, 'cause')"}


def test_blocking_siblings_of_a_failure_are_awaited_and_kept(run: Runner, saver: Saver, thread: Thread) -> None:
    started, failed = threading.Event(), threading.Event()

    def slow(state: Any) -> dict[str, Any]:
        started.set()
        assert failed.wait(60)
        return {"a": ["slow"]}

    def fail(state: Any) -> None:
        assert started.wait(60)
        failed.set()
        raise Custom(1, reason="fail")

    calls: list[str] = []
    app = parallel("fail", "slow", fail=fail, slow=slow).compile(checkpointer=saver)
    with pytest.raises(Custom):
        run.invoke(app, {"a": []}, thread("1"))

    state = run.state(app, thread("1"))
    assert (state.values, state.next) == ({"a": ["slow"]}, ("fail",))
    mended = parallel("fail", "slow", slow=lambda state: calls.append("slow")).compile(checkpointer=saver)
    assert run.invoke(mended, None, thread("1")) == {"a": ["fail", "slow"]}
    assert calls == []


def test_awaiting_siblings_of_a_failure_are_cancelled_and_stored_so(saver: Saver, thread: Thread) -> None:
    unwound: list[str] = []

    async def scenario() -> None:
        started = asyncio.Event()

        async def slow(state: Any) -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                unwound.append("slow")

        async def fail(state: Any) -> None:
            await started.wait()
            raise Custom(1, reason="fail")

        app = parallel("fail", "slow", fail=fail, slow=slow).compile(checkpointer=saver)
        with pytest.raises(Custom):
            await app.ainvoke({"a": []}, thread("1"))

    asyncio.run(scenario())

    state = parallel("fail", "slow").compile(checkpointer=saver).get_state(thread("1"))
    assert unwound == ["slow"]
    assert {task.name: task.error for task in state.tasks} == {"fail": "Custom(1, 'fail')", "slow": "CancelledError()"}
    assert set(state.next) == {"fail", "slow"}


# -- beside questions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [Custom(1, reason="cleanup"), GeneratorExit(), asyncio.CancelledError()], ids=repr)
def test_asked_beats_failed_in_one_node(run: Runner, saver: Saver, thread: Thread, error: BaseException) -> None:
    calls: list[str] = []

    def node(state: Any) -> dict[str, Any]:
        calls.append("x")
        try:
            answer = interrupt("?")
        except BaseException as question:
            raise error from question
        return {"a": [answer]}

    graph = StateGraph(State).add_node("x", node, retry_policy=RetryPolicy(max_attempts=3, retry_on=Exception))
    app = graph.add_edge(START, "x").compile(checkpointer=saver)

    result = run.invoke(app, {"a": []}, thread("1"))

    assert [question.value for question in result["__interrupt__"]] == ["?"]
    assert calls == ["x"]
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"a": ["yes"]}


def test_a_failure_beside_a_question_is_raised_and_the_question_is_kept(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    asked = threading.Event()

    def ask(state: Any) -> dict[str, Any]:
        try:
            return {"a": [interrupt("?")]}
        finally:
            asked.set()

    trouble = [Custom(1, reason="once")]

    def fail(state: Any) -> dict[str, Any]:
        assert asked.wait(60)
        if trouble:
            raise trouble.pop()
        return {"a": ["fail"]}

    app = parallel("ask", "fail", ask=ask, fail=fail).compile(checkpointer=saver)
    with pytest.raises(Custom):
        run.invoke(app, {"a": []}, thread("1"))

    assert [question.value for question in run.state(app, thread("1")).interrupts] == ["?"]
    assert run.invoke(app, Command(resume="yes"), thread("1")) == {"a": ["yes", "fail"]}


def test_a_failed_thread_goes_on_where_it_failed(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    graph = chain("x", "y", "z", y=failing_once("y", Custom(1, reason="once"), calls), x=mark("x"))
    app = graph.compile(checkpointer=saver)
    with pytest.raises(Custom):
        run.invoke(app, {"a": []}, thread("1"))
    assert run.state(app, thread("1")).next == ("y",)

    assert run.invoke(app, None, thread("1")) == {"a": ["x", "y", "z"]}
    assert calls == ["y", "y"]
