"""What is recorded at any moment is what a crash at that moment leaves: it never counts on work that is not done."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest

from pregel.graph import START, StateGraph
from pregel.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage, add_messages
from pregel.runtime import Runtime
from pregel.types import Command, interrupt
from tests.behaviour.conftest import Runner
from tests.behaviour.marks import Saver, State, Thread, chain, parallel


@pytest.mark.acceptance("S6-15")
def test_a_step_in_progress_is_never_recorded_as_finished(run: Runner, saver: Saver, thread: Thread) -> None:
    seen: list[tuple[Any, ...]] = []

    def look(name: str) -> Any:
        def node(state: State) -> dict[str, Any]:
            found = app.get_state(thread("1"))  # a read needs no authority: this is what another process would find
            seen.append((name, name in found.next, name in found.values["a"]))
            return {"a": [name]}

        return node

    app = chain("one", "two", "three", **{name: look(name) for name in ("one", "two", "three")}).compile(
        checkpointer=saver
    )
    run.invoke(app, {"a": []}, thread("1"))

    assert [(name, True, False) for name in ("one", "two", "three")] == seen
    assert () == run.state(app, thread("1")).next


@pytest.mark.acceptance("S6-15", "S5-1")
def test_a_record_says_which_tasks_are_done_and_which_are_not(run: Runner, saver: Saver, thread: Thread) -> None:
    app = parallel("done", "asks", asks=lambda state: {"b": interrupt("?")}).compile(checkpointer=saver)

    run.invoke(app, {"a": []}, thread("1"))
    state = run.state(app, thread("1"))

    assert ("asks",) == state.next
    assert {"done": {"a": ["done"]}, "asks": None} == {task.name: task.result for task in state.tasks}
    assert ["?"] == [question.value for question in state.interrupts]


@pytest.mark.acceptance("S6-16")
def test_every_past_position_stays_as_it_was(run: Runner, saver: Saver, thread: Thread) -> None:
    def positions() -> dict[str, Any]:
        return {
            found.config["configurable"]["checkpoint_id"]: (
                found.values,
                found.next,
                found.metadata,
                found.parent_config,
            )
            for found in run.history(app, thread("1"))
        }

    app = chain("one", "two").compile(checkpointer=saver)
    known: dict[str, Any] = {}
    run.invoke(app, {"a": []}, thread("1"))
    known |= positions()
    oldest = run.history(app, thread("1"))[-1]

    changes: list[Callable[[], Any]] = [
        lambda: run.invoke(app, {"a": ["more"]}, thread("1")),
        lambda: run.update(app, oldest.config, {"a": ["changed"]}),
        lambda: run.invoke(app, None, oldest.config),
        lambda: run.invoke(app, Command(goto="two"), thread("1")),
    ]
    for change in changes:
        change()
        after = positions()
        assert known == {checkpoint: after[checkpoint] for checkpoint in known}
        known = after

    assert len(known) > 10


class Trip(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    bookings: dict[str, str]


@pytest.mark.acceptance("S5-1")
def test_a_record_holds_the_conversation_tool_outputs_and_what_was_done_outside(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    call = ToolCall(name="book", args={"to": "Rome"}, id="call-1")
    keys: list[str] = []

    def model(state: Trip) -> dict[str, Any]:
        return {"messages": [AIMessage("", id="m2", tool_calls=[call])]}

    def tool(state: Trip, runtime: Runtime[Any]) -> dict[str, Any]:
        keys.append(runtime.idempotency_key)
        output = ToolMessage("booked", id="m3", tool_call_id="call-1")
        return {"messages": [output], "bookings": {keys[0]: "booking-7"}}

    def confirm(state: Trip) -> dict[str, Any]:
        raise ValueError("no line")

    graph = StateGraph(Trip).add_sequence([model, tool, confirm])
    app = graph.add_edge(START, "model").compile(checkpointer=saver)
    with pytest.raises(ValueError, match="no line"):
        run.invoke(app, {"messages": [HumanMessage("Rome, please", id="m1")]}, thread("1"))

    state = run.state(app, thread("1"))
    assert {
        "messages": [
            HumanMessage("Rome, please", id="m1"),
            AIMessage("", id="m2", tool_calls=[call]),
            ToolMessage("booked", id="m3", tool_call_id="call-1"),
        ],
        "bookings": {keys[0]: "booking-7"},
    } == state.values
    assert {"confirm": "ValueError('no line')"} == {task.name: task.error for task in state.tasks}
    done = [task for entry in run.history(app, thread("1")) for task in entry.tasks if task.result is not None]
    assert ["tool", "model", "__start__"] == [task.name for task in done]
