"""What entrypoints show: their tasks and their value, also where the output is no dict."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pregel.func import entrypoint, task
from pregel.types import Command, interrupt

from .conftest import Awaiting, Runner
from .marks import Saver, Thread, chain


@task
def double(n: int) -> int:
    return n * 2


def doubling(saver: Saver | None = None) -> Any:
    @entrypoint(checkpointer=saver)
    def flow(n: int) -> int:
        return double(n).result() + double(n + 1).result()

    return flow


def asking(saver: Saver) -> Any:
    @entrypoint(checkpointer=saver)
    def flow(n: int) -> int:
        return n + int(interrupt("how many?"))

    return flow


def test_updates_show_each_task_and_then_the_value(run: Runner, saver: Saver, thread: Thread) -> None:
    flow = doubling(saver)

    assert run.stream(flow, 3, thread("1")) == [{"double": 6}, {"double": 8}, {"flow": 14}]
    assert run.stream(flow, 3, thread("2"), stream_mode="values") == [14]


CALLERS = ("entrypoint", "node", "node around a graph")


def caller(kind: str, code: Any) -> Any:
    """A graph of this code."""
    return entrypoint()(code) if kind == "entrypoint" else chain("code", code=code).compile()


@pytest.mark.acceptance("S1-45")
@pytest.mark.parametrize("kind", CALLERS)
def test_what_is_called_shows_before_its_caller_ends(run: Runner, kind: str) -> None:
    inner, seen, waited = chain("x").compile(), threading.Event(), list[bool]()

    def code(given: Any) -> Any:
        _ = inner.invoke(given) if kind == "node around a graph" else double(1).result()
        waited.append(seen.wait(10))

    run.follow(lambda chunk: seen.set(), caller(kind, code), {"a": []}, stream_mode="updates", subgraphs=True)

    assert [True] == waited


@pytest.mark.parametrize("kind", CALLERS)
def test_what_a_coroutine_calls_shows_before_it_ends(kind: str) -> None:
    inner, seen = chain("x").compile(), asyncio.Event()

    async def code(given: Any) -> Any:
        _ = await (inner.ainvoke(given) if kind == "node around a graph" else double(1))
        await asyncio.wait_for(seen.wait(), 10)

    Awaiting().follow(lambda chunk: seen.set(), caller(kind, code), {"a": []}, stream_mode="updates", subgraphs=True)

    assert seen.is_set()


def test_an_end_in_mode_tasks_has_what_was_written_by_key(run: Runner) -> None:
    ends = [one for one in run.stream(doubling(), 3, stream_mode="tasks") if "result" in one]

    assert [one["result"] for one in ends] == [{"__return__": 6}, {"__return__": 8}, {"__end__": 14}]


def test_a_question_shows_in_values_where_there_is_no_value_yet(run: Runner, saver: Saver, thread: Thread) -> None:
    flow = asking(saver)

    ((question,),) = (one["__interrupt__"] for one in run.stream(flow, 1, thread("1"), stream_mode="values"))
    assert question.value == "how many?"
    (part,) = run.stream(flow, 1, thread("2"), stream_mode="values", version="v2")
    assert (part["data"], [one.value for one in part["interrupts"]]) == (None, ["how many?"])
    assert run.stream(flow, Command(resume="2"), thread("1"), stream_mode="values") == [
        None,
        3,
    ]  # a resume begins with what is there


def test_a_question_shows_in_values_of_one_key(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("asks", asks=lambda state: {"b": interrupt("ok?")}).compile(checkpointer=saver)

    (shown,) = run.stream(app, {"a": []}, thread("1"), stream_mode="values", output_keys="b")

    assert [question.value for question in shown["__interrupt__"]] == ["ok?"]


@pytest.mark.acceptance("S1-45")
def test_a_run_object_of_an_entrypoint_that_asks_is_interrupted(saver: Saver, thread: Thread) -> None:
    with asking(saver).stream_events(1, thread("1"), version="v3") as paused:
        assert (paused.output, paused.interrupted) == (None, True)
        assert [question.value for question in paused.interrupts] == ["how many?"]
    with asking(saver).stream_events(Command(resume="2"), thread("1"), version="v3") as run:
        assert (run.output, run.interrupted) == (3, False)
