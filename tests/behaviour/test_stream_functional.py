"""What entrypoints show: their tasks and their value, also where the output is no dict."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.func import entrypoint, task
from pregel.types import Command, interrupt

from .conftest import Runner
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
