"""Lifecycle callbacks: who hears of a pause and of a resume, when, and what a handler's own failure does."""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from uuid import UUID

import pytest

from pregel.callbacks import (
    GraphCallbackHandler,
    GraphInterruptEvent,
    GraphResumeEvent,
    get_async_graph_callback_manager_for_config,
    get_sync_graph_callback_manager_for_config,
)
from pregel.checkpoint.memory import InMemorySaver
from pregel.types import Command, interrupt

from .conftest import Runner
from .marks import Saver, Thread, chain


class Heard(GraphCallbackHandler):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        self.events.append(event)

    def on_resume(self, event: GraphResumeEvent) -> None:
        self.events.append(event)


def ask(state: Any) -> dict[str, Any]:
    return {"a": [interrupt("ok?")]}


def hearing(thread: Thread, *handlers: Any) -> Any:
    return {**thread("1"), "callbacks": list(handlers)}


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_pause_and_a_resume_are_told(run: Runner, saver: Saver, thread: Thread, way: str) -> None:
    heard = Heard()
    app = chain("x", "y", x=ask).compile(checkpointer=saver, interrupt_before=["y"])
    call = run.invoke if way == "invoke" else run.stream
    config = hearing(thread, object(), heard)

    call(app, {"a": []}, config)
    asked_at = run.state(app, thread("1")).config["configurable"]["checkpoint_id"]
    call(app, Command(resume="yes"), config)
    call(app, None, config)

    question, resumed, before, resumed_again = heard.events
    assert ("pending", asked_at, (), ["ok?"]) == (
        question.status,
        question.checkpoint_id,
        question.checkpoint_ns,
        [one.value for one in question.interrupts],
    )
    assert ("pending", asked_at, ()) == (resumed.status, resumed.checkpoint_id, resumed.checkpoint_ns)
    assert ("interrupt_before", ()) == (before.status, before.interrupts)
    assert isinstance(question.run_id, UUID)
    assert resumed.run_id == before.run_id != question.run_id
    assert isinstance(resumed_again, GraphResumeEvent)


def test_a_subgraph_tells_that_it_goes_on_and_the_root_that_it_paused(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    heard = Heard()
    app = chain("sub", sub=chain("x", x=ask).compile()).compile(checkpointer=saver)

    run.invoke(app, {"a": []}, hearing(thread, heard))
    run.invoke(app, Command(resume="yes"), hearing(thread, heard))

    places = [(type(event).__name__, [part.split(":")[0] for part in event.checkpoint_ns]) for event in heard.events]
    assert [("GraphInterruptEvent", []), ("GraphResumeEvent", []), ("GraphResumeEvent", ["sub"])] == places


def test_what_a_handler_hears_is_stored_already(saver: Saver, thread: Thread) -> None:
    seen: list[Any] = []

    class Looking(GraphCallbackHandler):
        def on_interrupt(self, event: GraphInterruptEvent) -> None:
            seen.extend(app.get_state(thread("1")).interrupts)

    app = chain("x", x=ask).compile(checkpointer=saver)
    app.invoke({"a": []}, hearing(thread, Looking()))

    assert ["ok?"] == [question.value for question in seen]


class Failing(GraphCallbackHandler):
    def on_interrupt(self, event: GraphInterruptEvent) -> None:
        raise KeyError("mine")


def test_a_handler_that_raises_is_logged_and_the_run_ends_as_ever(
    run: Runner, saver: Saver, thread: Thread, caplog: pytest.LogCaptureFixture
) -> None:
    app = chain("x", x=ask).compile(checkpointer=saver)

    with caplog.at_level(logging.ERROR, logger="pregel.callbacks"):
        assert run.invoke(app, {"a": []}, hearing(thread, Failing()))["__interrupt__"]

    assert "Failing.on_interrupt failed: KeyError('mine')" in caplog.text


def test_a_handler_that_must_be_heard_raises_and_the_question_is_kept(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    handler = Failing()
    handler.raise_error = True
    app = chain("x", x=ask).compile(checkpointer=saver)

    with pytest.raises(KeyError, match="mine"):
        run.invoke(app, {"a": []}, hearing(thread, handler))

    assert ["ok?"] == [question.value for question in run.state(app, thread("1")).interrupts]
    assert {"a": ["yes"]} == run.invoke(app, Command(resume="yes"), thread("1"))


def test_a_coroutine_handler_is_awaited(thread: Thread) -> None:
    heard: list[Any] = []

    class Awaited(GraphCallbackHandler):
        async def on_interrupt(self, event: GraphInterruptEvent) -> None:
            heard.append(event)

    app = chain("x", x=ask).compile(checkpointer=InMemorySaver())
    asyncio.run(app.ainvoke({"a": []}, hearing(thread, Awaited())))

    assert 1 == len(heard)


def test_the_factories_find_the_lifecycle_handlers_of_a_config() -> None:
    heard, event = Heard(), GraphResumeEvent(None, "pending", "1", ())
    get_sync_graph_callback_manager_for_config({"callbacks": [heard, object()]}).tell(event)
    asyncio.run(get_async_graph_callback_manager_for_config({"callbacks": [heard]}).atell(event))

    assert ["1", "1"] == [one.checkpoint_id for one in heard.events]
