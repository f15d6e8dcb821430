"""Tasks that were called side by side wait side by side, whichever result is asked for first."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from pregel.func import entrypoint, task
from pregel.testing import FakeClock
from pregel.types import Command, interrupt
from pregel.waits import sleep, wait_for_event

from .conftest import Runner
from .marks import Saver, Thread
from .test_thread_api import Api
from .test_waits import NOON, needs_waits  # noqa: F401  # a fixture of this module too


@task
def paid(order: int) -> Any:
    found = wait_for_event("paid", key=str(order), timeout=100 - order)
    return None if found is None else found.value


@task
def nap(seconds: int) -> int:
    sleep(seconds)
    return seconds


@task
def ask() -> Any:
    return interrupt("go on?")


def workflow(run: Runner, saver: Saver, *calls: Any) -> Any:
    """A workflow that calls these tasks at once, and asks for their results in that order."""
    if run.name == "sync":

        def blocking(given: int) -> list[Any]:
            futures = [call() for call in calls]
            return [future.result() for future in futures]

        app = entrypoint(checkpointer=saver)(blocking)
    else:

        async def awaiting(given: int) -> list[Any]:
            return list(await asyncio.gather(*[call() for call in calls]))

        app = entrypoint(checkpointer=saver)(awaiting)
    app.clock = FakeClock(NOON.timestamp())
    return app


def orders(*numbers: int) -> list[Any]:
    return [lambda n=n: paid(n) for n in numbers]


def test_events_come_in_any_order(run: Runner, saver: Saver, thread: Thread) -> None:
    app = workflow(run, saver, *orders(1, 2, 3))
    api = Api(run, app)

    asked = run.invoke(app, 0, thread("1"))["__interrupt__"]
    assert ["1", "2", "3"] == [one.value.key for one in asked]
    for key in "32":
        assert api("send_event", "1", "paid", f"by {key}", key=key).awaited
    assert ["1"] == [one.value.key for one in api("wake", "1")["__interrupt__"]]
    api("send_event", "1", "paid", "by 1", key="1")
    assert ["by 1", "by 2", "by 3"] == api("wake", "1")


def test_each_is_due_when_it_was_first(run: Runner, saver: Saver, thread: Thread) -> None:
    app = workflow(run, saver, *orders(1, 2), lambda: nap(10))
    api = Api(run, app)
    run.invoke(app, 0, thread("1"))

    app.clock.advance(10)
    assert ["1"] == list(api("due"))
    assert [99, 98] == [one.value.due_at - NOON.timestamp() for one in api("wake", "1")["__interrupt__"]]
    app.clock.advance(88)
    api("wake", "1")
    app.clock.advance(1)
    assert [None, None, 10] == api("wake", "1")


def test_a_wait_beside_a_question_is_over_in_its_time(run: Runner, saver: Saver, thread: Thread) -> None:
    app = workflow(run, saver, lambda: ask(), lambda: nap(10))
    api = Api(run, app)
    run.invoke(app, 0, thread("1"))
    assert "waiting" == api("status", "1").status

    app.clock.advance(5)
    run.invoke(app, Command(resume="yes"), thread("1"))
    app.clock.advance(5)
    assert ["yes", 10] == api("wake", "1")


def test_of_questions_beside_each_other_the_first_call_is_asked_first(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    asked_last = threading.Event()

    def early() -> Any:
        @task
        def asks() -> Any:
            asked_last.wait(60)  # heard after the other
            return interrupt("1")

        return asks()

    def late() -> Any:
        @task
        def asks() -> Any:
            asked_last.set()
            return interrupt("2")

        return asks()

    app = workflow(run, saver, early, lambda: nap(10), late)

    asked = run.invoke(app, 0, thread("1"))["__interrupt__"]
    assert ["1", True] == [one.value if isinstance(one.value, str) else one.value.due is not None for one in asked]
    assert ["2"] == [one.value for one in run.invoke(app, Command(resume="first"), thread("1"))["__interrupt__"]][1:]
    app.clock.advance(10)
    assert ["first", 10, "second"] == run.invoke(app, Command(resume="second"), thread("1"))
