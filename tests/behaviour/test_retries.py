"""Retries: which errors are tried again, how often and when, and what the journal keeps of attempts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Append, Receipt
from pregel.engine.call import Call
from pregel.engine.effects import Due, Failed, Step
from pregel.engine.journal import BlockingJournal
from pregel.errors import InvalidInputError, NodeTimeoutError
from pregel.graph import START, StateGraph
from pregel.runtime import ExecutionInfo, Runtime
from pregel.types import RetryPolicy, default_retry_on

from .conftest import Runner
from .marks import Saver, State, Thread, chain, mark

NOW = RetryPolicy(initial_interval=0.0, jitter=False, max_attempts=3)


def info(runtime: Runtime[Any]) -> ExecutionInfo:
    assert runtime.execution_info is not None
    return runtime.execution_info


def failing(times: int, error: Exception, calls: list[str]) -> Callable[[Any], Any]:
    def node(state: Any) -> dict[str, Any]:
        calls.append("x")
        if len(calls) <= times:
            raise error
        return {"a": ["ok"]}

    return node


def one(node: Any, **options: Any) -> StateGraph[Any]:
    return StateGraph(State).add_node("x", node, **options).add_edge(START, "x")


@pytest.mark.acceptance("S1-39")
def test_a_value_error_is_retried_only_by_a_policy_that_says_so(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    siblings: list[str] = []
    app = one(failing(2, ValueError("x"), calls), retry_policy=NOW).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="x"):
        run.invoke(app, {"a": []}, thread("1"))
    assert 1 == len(calls)

    calls.clear()
    graph = one(failing(2, ValueError("x"), calls), retry_policy=NOW._replace(retry_on=ValueError))
    app = graph.add_node("y", mark("y", siblings)).add_edge(START, "y").compile(checkpointer=saver)

    assert {"a": ["ok", "y"]} == run.invoke(app, {"a": []}, thread("2"))
    assert (3, ["y"]) == (len(calls), siblings)


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (ConnectionError(), True),
        (NodeTimeoutError(), True),
        (Exception("unknown"), True),
        (ValueError(), False),
        (KeyError(), False),
        (RuntimeError(), False),
        (OSError(), False),
        (InvalidInputError(), False),
    ],
)
def test_what_looks_passing(error: Exception, *, passing: bool) -> None:
    assert passing is default_retry_on(error)


def test_of_several_policies_the_first_that_wants_the_error_counts(run: Runner) -> None:
    calls: list[str] = []
    policies = [
        NOW._replace(retry_on=lambda error: "later" in str(error), max_attempts=2),
        NOW._replace(retry_on=[ValueError, KeyError], max_attempts=5),
    ]

    with pytest.raises(ValueError, match="later"):
        run.invoke(one(failing(9, ValueError("later"), calls), retry_policy=policies).compile(), {"a": []})
    assert 2 == len(calls)

    calls.clear()
    with pytest.raises(KeyError):
        run.invoke(one(failing(9, KeyError("x"), calls), retry_policy=policies).compile(), {"a": []})
    assert 5 == len(calls)


def test_defaults_hold_for_nodes_that_do_not_say_otherwise(run: Runner) -> None:
    calls: list[str] = []
    graph = one(failing(1, KeyError("x"), calls)).set_node_defaults(retry_policy=NOW._replace(retry_on=KeyError))
    own: list[str] = []
    graph.add_node("y", failing(1, KeyError("y"), own), retry_policy=NOW).add_edge("x", "y")

    with pytest.raises(KeyError, match="y"):
        run.invoke(graph.compile(), {"a": []})

    assert (2, 1) == (len(calls), len(own))


@pytest.mark.parametrize(
    "policy",
    [
        RetryPolicy(retry_on="ValueError"),  # type: ignore[arg-type]
        RetryPolicy(retry_on=[ValueError, 5]),  # type: ignore[list-item]
        RetryPolicy(retry_on=BaseException),  # type: ignore[arg-type]
        RetryPolicy(max_attempts=0),
        RetryPolicy(initial_interval=-1),
        "often",
    ],
)
def test_a_policy_that_cannot_be_followed_is_refused_when_the_node_is_added(policy: Any) -> None:
    with pytest.raises((TypeError, InvalidInputError)):
        one(mark("x"), retry_policy=policy)


@pytest.mark.acceptance("S1-40")
def test_waits_grow_by_the_factor_up_to_the_maximum_and_chance_is_the_drivers() -> None:
    policy = RetryPolicy(
        initial_interval=0.5, backoff_factor=3.0, max_interval=4.0, max_attempts=5, jitter=True, retry_on=KeyError
    )
    app = one(mark("x"), retry_policy=policy).compile()
    flow = Call(app, {"a": []}).start(BlockingJournal)[1]
    waits: list[tuple[float, bool]] = []
    step: Step = next(flow)
    while True:
        if step.after:
            ((seconds, jitter, event),) = step.after
            waits.append((seconds, jitter))
            assert isinstance(event, Due)
            step = flow.send([event])
            continue
        (task,) = step.start
        try:
            step = flow.send([Failed(task, KeyError("x"))])
        except StopIteration:
            break

    assert [(0.5, True), (1.5, True), (4.0, True), (4.0, True)] == waits


def test_intervals_beyond_all_numbers_are_the_maximum() -> None:
    assert 128.0 == RetryPolicy(backoff_factor=10.0).wait(5000)


@pytest.mark.acceptance("S1-40")
def test_a_node_reads_which_attempt_it_is_and_when_the_first_began(run: Runner, saver: Saver, thread: Thread) -> None:
    seen: list[ExecutionInfo] = []

    def node(state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        seen.append(info(runtime))
        if len(seen) < 3:
            raise KeyError(len(seen))
        return {}

    run.invoke(one(node, retry_policy=NOW._replace(retry_on=KeyError)).compile(checkpointer=saver), {}, thread("1"))

    first = {one.node_first_attempt_time for one in seen}
    assert [1, 2, 3] == [one.node_attempt for one in seen]
    assert 1 == len(first)
    assert 1_500_000_000 < (first.pop() or 0)


# -- what the journal keeps --------------------------------------------------------------------------------------------


class Breaking(InMemorySaver):
    """A store that is away while `away` is set; a run that meets this leaves the thread as a crash does."""

    away = False

    def append(self, append: Append) -> Receipt:
        if self.away:
            raise OSError("the store is away")
        return super().append(append)


def attempts(saver: InMemorySaver, config: Any) -> list[Any]:
    """The attempt records of a thread, oldest first: deliveries, failures, time, last failure."""
    found = [tuple_.pending_writes or [] for tuple_ in saver.list(config)]
    return [value for writes in reversed(found) for _, channel, value in writes if channel == "__attempt__"]


@pytest.mark.acceptance("S4-13", "S4-16")
def test_a_retry_leaves_a_record_with_the_failure(run: Runner, thread: Thread) -> None:
    saver = InMemorySaver()
    calls: list[str] = []
    app = one(failing(2, KeyError("x"), calls), retry_policy=NOW._replace(retry_on=KeyError)).compile(
        checkpointer=saver
    )

    run.invoke(app, {"a": []}, thread("1"))

    ((deliveries, failures, _, error),) = attempts(saver, thread("1"))
    assert (0, 2, "KeyError('x')") == (deliveries, failures, error)


@pytest.mark.acceptance("S4-13", "S5-2", "S4-14")
def test_a_crash_is_one_more_delivery_and_gives_no_new_allowance(run: Runner, thread: Thread) -> None:
    saver = Breaking()
    seen: list[int] = []
    crash_at = 2

    def node(state: Any, runtime: Runtime[Any]) -> None:
        seen.append(info(runtime).node_attempt)
        saver.away = len(seen) == crash_at
        raise KeyError(len(seen))

    app = one(node, retry_policy=NOW._replace(retry_on=KeyError)).compile(checkpointer=saver)
    with pytest.raises(OSError, match="away"):
        run.invoke(app, {"a": []}, thread("1"))
    saver.away = False

    with pytest.raises(KeyError):
        run.invoke(app, None, thread("1"))

    assert [1, 2, 3, 4] == seen  # the second failure was never recorded: two were left, and one delivery more
    assert (1, 2) == tuple(attempts(saver, thread("1"))[-1][:2])


@pytest.mark.acceptance("S5-2")
def test_a_person_who_resumes_a_failed_run_gives_a_new_allowance(run: Runner, saver: Saver, thread: Thread) -> None:
    calls: list[str] = []
    app = one(failing(5, KeyError("x"), calls), retry_policy=NOW._replace(retry_on=KeyError)).compile(
        checkpointer=saver
    )
    with pytest.raises(KeyError):
        run.invoke(app, {"a": []}, thread("1"))

    assert {"a": ["ok"]} == run.invoke(app, None, thread("1"))
    assert 6 == len(calls)


@pytest.mark.acceptance("S4-13")
def test_replay_leaves_a_fork_and_no_attempt(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": []}, thread("1"))
    before_y = next(found for found in run.history(app, thread("1")) if found.next == ("y",))

    run.invoke(app, None, before_y.config)

    sources = [found.metadata["source"] for found in run.history(app, thread("1"))]
    assert 1 == sources.count("fork")
