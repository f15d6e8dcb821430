"""Components for a front end: they show while their node runs, and merge by id in the state."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest

from pregel.errors import InvalidUpdateError, OutsideRunError
from pregel.graph import START, StateGraph
from pregel.graph.ui import AnyUIMessage, delete_ui_message, push_ui_message, ui_message_reducer
from pregel.messages import AIMessage

from .conftest import Runner
from .marks import Saver, Thread


class State(TypedDict, total=False):
    ui: Annotated[list[AnyUIMessage], ui_message_reducer]
    other: Annotated[list[AnyUIMessage], ui_message_reducer]


def graph(*nodes: Any) -> Any:
    named = [(f"n{place}", node) for place, node in enumerate(nodes)]
    return StateGraph(State).add_sequence(named).add_edge(START, "n0")


def component(id: str, merge: bool = False, **props: Any) -> Any:
    return {"type": "ui", "id": id, "name": "card", "props": props, "metadata": {"merge": merge}}


def gone(id: str) -> Any:
    return {"type": "remove-ui", "id": id}


def test_components_show_and_are_stored(run: Runner, saver: Saver, thread: Thread) -> None:
    def push(state: State) -> None:
        push_ui_message("card", {"n": 1}, id="1", message=AIMessage("x", id="m"), metadata={"own": True})
        push_ui_message("chart", {"n": 2}, id="2")
        push_ui_message("toast", {}, id="3", state_key=None)

    def change(state: State) -> None:
        push_ui_message("card", {"more": 2}, id="1", merge=True)
        delete_ui_message("2")

    app = graph(push, change).compile(checkpointer=saver)

    shown = run.stream(app, {}, thread("1"), stream_mode="custom")

    assert ["card", "chart", "toast", "card", None] == [one.get("name") for one in shown]
    assert (True, "m", "n0") == tuple(shown[0]["metadata"][key] for key in ("own", "message_id", "name"))
    (stored,) = run.state(app, thread("1")).values["ui"]
    assert ("card", {"n": 1, "more": 2}) == (stored["name"], stored["props"])


def test_components_merge_by_id_and_go() -> None:
    first, second = component("1", a=1), component("2")

    assert [first, second] == ui_message_reducer(first, second)
    assert [component("1", b=2), second] == ui_message_reducer([first, second], component("1", b=2))
    assert [component("1", True, a=1, b=2)] == ui_message_reducer([first], [component("1", True, b=2)])
    assert [second] == ui_message_reducer([first, second], [gone("1")])
    assert [component("1", c=3)] == ui_message_reducer([first], [gone("1"), component("1", c=3)])
    assert {"a": 1} == first["props"]


def test_what_is_not_there_cannot_go() -> None:
    with pytest.raises(InvalidUpdateError, match="delete"):
        ui_message_reducer([], gone("1"))
    with pytest.raises(ValueError, match="'1'"):
        ui_message_reducer([component("2")], gone("1"))


def test_a_key_that_is_not_there_and_no_node_are_named_errors(run: Runner) -> None:
    def push(state: State) -> None:
        push_ui_message("card", {}, state_key="uii")

    with pytest.raises(InvalidUpdateError, match="uii"):
        run.invoke(graph(push).compile(), {})
    with pytest.raises(OutsideRunError):
        push_ui_message("card", {})
