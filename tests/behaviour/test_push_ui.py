"""push_ui_message: a component shows while its node runs, and is kept in the state."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, TypedDict

import pytest

from pregel.errors import InvalidInputError, InvalidUpdateError, OutsideRunError
from pregel.graph import START, StateGraph
from pregel.graph.ui import (
    AnyUIMessage,
    UIMessage,
    delete_ui_message,
    push_ui_message,
    ui_message_reducer,
)
from pregel.messages import AIMessage

from .conftest import Runner
from .marks import Saver, Thread


class Screen(TypedDict):
    ui: Annotated[list[AnyUIMessage], ui_message_reducer]


def card(id: str, by: str = "show", merge: bool = False, **props: Any) -> UIMessage:
    about = {"merge": merge, "run_id": None, "tags": None, "name": by}
    return {"type": "ui", "id": id, "name": "card", "props": props, "metadata": about}


def graph(*nodes: Any) -> Any:
    return StateGraph(Screen).add_sequence(list(nodes)).add_edge(START, nodes[0].__name__)


def test_a_component_is_shown_kept_changed_and_taken_away(run: Runner, saver: Saver, thread: Thread) -> None:
    def show(state: Screen) -> dict[str, Any]:
        push_ui_message("card", {"a": 1}, id="1")
        push_ui_message("card", {"b": 2}, id="1", merge=True)
        push_ui_message("card", {}, id="2", metadata={"place": "top"}, message=AIMessage("hi", id="m"))
        return {}

    def hide(state: Screen) -> dict[str, Any]:
        delete_ui_message("2")
        push_ui_message("card", {"toast": True}, id="3", state_key=None)
        return {}

    app = graph(show, hide).compile(checkpointer=saver)

    chunks = run.stream(app, {}, thread("1"), stream_mode=["custom", "updates"])

    second = card("2")
    second["metadata"] |= {"place": "top", "message_id": "m"}
    pushed = [card("1", a=1), card("1", merge=True, b=2), second]
    gone = {"type": "remove-ui", "id": "2"}
    toast = card("3", "hide", toast=True)
    assert chunks == [
        *[("custom", record) for record in pushed],
        ("updates", {"show": [{"ui": record} for record in pushed]}),
        ("custom", gone),
        ("custom", toast),
        ("updates", {"hide": {"ui": gone}}),
    ]
    assert app.get_state(thread("1")).values == {"ui": [card("1", merge=True, a=1, b=2)]}


def test_a_push_without_an_id_gets_one(run: Runner) -> None:
    def show(state: Screen) -> dict[str, Any]:
        return {"ui": [push_ui_message("card", {}, state_key=None), push_ui_message("card", {}, state_key=None)]}

    shown = run.invoke(graph(show).compile(), {})["ui"]

    assert 2 == len({record["id"] for record in shown})


def test_the_record_says_where_it_comes_from(run: Runner) -> None:
    def show(state: Screen) -> dict[str, Any]:
        push_ui_message("card", {}, id="1")
        return {}

    shown = run.invoke(graph(show).compile(), {}, {"tags": ["t"]})["ui"]

    assert (["t"], "show") == (shown[0]["metadata"]["tags"], shown[0]["metadata"]["name"])


def test_what_cannot_be_is_an_error(run: Runner) -> None:
    def elsewhere(state: Screen) -> None:
        push_ui_message("card", {}, state_key="nowhere")

    def twice(state: Screen) -> None:
        delete_ui_message("1")

    with pytest.raises(OutsideRunError):
        push_ui_message("card", {})
    with pytest.raises(InvalidUpdateError, match="nowhere"):
        run.invoke(graph(elsewhere).compile(), {})
    with pytest.raises(InvalidInputError, match="No UI message has the id '1'"):
        run.invoke(graph(twice).compile(), {})


def test_the_reducer_changes_nothing_that_it_gets() -> None:
    left, right = [card("1", a=1)], card("1", merge=True, b=2)

    merged = ui_message_reducer(left, right)

    assert merged == [card("1", merge=True, a=1, b=2)]
    assert (left, right) == ([card("1", a=1)], card("1", merge=True, b=2))


def test_components_of_parallel_tasks_all_arrive() -> None:
    def left(state: Screen) -> None:
        push_ui_message("card", {}, id="left")

    async def right(state: Screen) -> None:
        push_ui_message("card", {}, id="right")

    builder = StateGraph(Screen).add_node(left).add_node(right).add_edge(START, "left").add_edge(START, "right")

    ended = asyncio.run(builder.compile().ainvoke({"ui": []}))

    assert ["left", "right"] == [record["id"] for record in ended["ui"]]
