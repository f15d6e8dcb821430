"""Messages in a `DeltaChannel`: each gets an id once, whoever wrote it, and every read gives the same."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest

from pregel.channels import DeltaChannel
from pregel.graph import START, StateGraph
from pregel.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, messages_delta_reducer
from pregel.types import Overwrite

from .conftest import Runner
from .marks import Saver, Thread

SHAPES = ["hi", ("user", "hi"), {"role": "user", "content": "hi"}, HumanMessage("hi"), [HumanMessage("hi")]]


class State(TypedDict):
    messages: Annotated[list[BaseMessage], DeltaChannel(messages_delta_reducer)]


def saying(saver: Saver, said: Any) -> Any:
    graph = StateGraph(State).add_node("say", lambda state: {"messages": said})
    return graph.add_edge(START, "say").compile(checkpointer=saver)


def ids(run: Runner, app: Any, config: Any) -> list[tuple[str, str | None]]:
    return [(message.text, message.id) for message in run.state(app, config).values["messages"]]


@pytest.mark.parametrize("said", SHAPES, ids=lambda said: type(said).__name__)
def test_a_message_of_any_shape_has_one_id_in_every_read(run: Runner, saver: Saver, thread: Thread, said: Any) -> None:
    app = saying(saver, said)

    run.invoke(app, {"messages": said}, thread("1"))
    run.update(app, thread("1"), {"messages": [AIMessage("bye")]}, as_node="say")
    run.invoke(app, {"messages": said}, thread("1"))

    found = ids(run, app, thread("1"))
    assert [*["hi"] * 2, "bye", *["hi"] * 2] == [text for text, _ in found]
    assert all(id for _, id in found)
    assert len(found) == len({id for _, id in found})
    assert found == ids(run, app, thread("1"))


def test_a_message_inside_of_an_overwrite_gets_one_too(run: Runner, saver: Saver, thread: Thread) -> None:
    app = saying(saver, Overwrite([("user", "new")]))
    run.invoke(app, {"messages": Overwrite(["old"])}, thread("1"))

    ((text, id),) = ids(run, app, thread("1"))

    assert ("new", True) == (text, bool(id))
    assert [("new", id)] == ids(run, app, thread("1"))


def test_a_message_without_an_id_can_be_removed_by_the_one_that_it_got(
    run: Runner, saver: Saver, thread: Thread
) -> None:
    app = saying(saver, AIMessage("hi"))
    run.invoke(app, {"messages": "hello"}, thread("1"))
    (_, hello), (_, hi) = ids(run, app, thread("1"))

    run.update(app, thread("1"), {"messages": [RemoveMessage(hello or "")]}, as_node="say")

    assert [("hi", hi)] == ids(run, app, thread("1"))


def test_a_node_sees_the_ids_that_are_stored(run: Runner, saver: Saver, thread: Thread) -> None:
    seen: list[Any] = []

    def look(state: State) -> None:
        seen.extend((message.text, message.id) for message in state["messages"])

    app = StateGraph(State).add_node("look", look).add_edge(START, "look").compile(checkpointer=saver)
    run.invoke(app, {"messages": [("user", "one"), "two"]}, thread("1"))

    assert seen == ids(run, app, thread("1"))
