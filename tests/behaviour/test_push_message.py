"""push_message: a message shows while its node runs, and is stored with what the node returns."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pregel.errors import InternalError, InvalidUpdateError, OutsideRunError
from pregel.func import task
from pregel.graph import START, MessagesState, StateGraph
from pregel.graph.message import push_message
from pregel.messages import AIMessage, AIMessageChunk, AnyMessage

from .conftest import Runner
from .marks import Saver, Thread

NOTHING: dict[str, Any] = {"messages": []}


def graph(node: Any, **options: Any) -> Any:
    return StateGraph(MessagesState).add_node("say", node).add_edge(START, "say").compile(**options)


def said(values: Any) -> list[tuple[str | None, Any]]:
    return [(message.id, message.content) for message in values["messages"]]


def test_a_pushed_message_shows_before_its_node_ends_and_once(run: Runner) -> None:
    heard_it = threading.Event()

    def node(state: Any) -> Any:
        pushed = push_message({"role": "assistant", "content": "one", "id": "1"})
        assert heard_it.wait(30)
        return {"messages": [pushed, AIMessage("two", id="2")]}

    chunks: list[Any] = []

    def heard(chunk: Any) -> None:
        chunks.append(chunk)
        heard_it.set()

    run.follow(heard, graph(node), NOTHING, stream_mode="messages")

    assert [(m.id, where["langgraph_node"], where["langgraph_step"]) for m, where in chunks] == [
        ("1", "say", 1),
        ("2", "say", 1),
    ]


def test_a_pushed_message_is_stored_with_what_its_node_returns(run: Runner, saver: Saver, thread: Thread) -> None:
    def node(state: Any) -> Any:
        push_message(AIMessage("one", id="1"))
        return {"messages": [AIMessage("two", id="2")]}

    app = graph(node, checkpointer=saver)

    modes = ["updates", "values"]
    chunks = run.stream(app, NOTHING, thread("t"), stream_mode=modes)

    shown = [update["say"] for mode, update in chunks if mode == "updates"]
    assert [[piece["messages"] for piece in pieces] for pieces in shown] == [
        [AIMessage("one", id="1"), [AIMessage("two", id="2")]]
    ]
    assert said(run.state(app, thread("t")).values) == [("1", "one"), ("2", "two")]


def test_a_message_pushed_without_a_key_only_shows(run: Runner) -> None:
    def node(state: Any) -> None:
        for text in ("o", "ne"):
            push_message(AIMessageChunk(text, id="1"), state_key=None)

    chunks = run.stream(graph(node), NOTHING, stream_mode=["messages", "values"])

    assert [data[0].content for mode, data in chunks if mode == "messages"] == ["o", "ne"]
    assert said(run.invoke(graph(node), NOTHING)) == []


def test_an_async_node_pushes() -> None:
    async def node(state: Any) -> None:
        push_message(AIMessage("one", id="1"))

    async def follow() -> list[Any]:
        return [chunk async for chunk in graph(node).astream(NOTHING, stream_mode=["messages", "values"])]

    chunks = asyncio.run(follow())

    assert [mode for mode, _ in chunks] == ["values", "messages", "values"]
    assert said(chunks[-1][1]) == [("1", "one")]


def test_what_a_failed_attempt_pushed_is_not_stored(run: Runner) -> None:
    from pregel.types import RetryPolicy

    tries: list[AnyMessage] = []

    def node(state: Any) -> None:
        tries.append(push_message(AIMessage("one", id=str(len(tries)))))
        if len(tries) == 1:
            raise ConnectionError

    built = StateGraph(MessagesState).add_node("say", node, retry_policy=RetryPolicy(initial_interval=0, jitter=False))

    assert said(run.invoke(built.add_edge(START, "say").compile(), NOTHING)) == [("1", "one")]


def test_a_push_that_has_nowhere_to_go_is_refused(run: Runner) -> None:
    pushes: list[Any] = []

    def stray(state: Any) -> None:
        with pytest.raises(InvalidUpdateError, match="'nope'"):
            push_message(AIMessage("one", id="1"), state_key="nope")

    @task
    def tasked() -> None:
        push_message(AIMessage("one", id="1"))

    def calls(state: Any) -> None:
        with pytest.raises(InvalidUpdateError, match="no state to write to"):
            tasked().result()

    def keeps(state: Any) -> None:
        from contextvars import copy_context

        pushes.append(copy_context())

    for node in (stray, calls, keeps):
        assert run.stream(graph(node), NOTHING, stream_mode="messages") == []
    for key in ("messages", None):
        with pytest.raises(InternalError, match="after it had ended"):
            pushes[0].run(push_message, AIMessage("late", id="1"), state_key=key)
    with pytest.raises(OutsideRunError):
        push_message(AIMessage("one", id="1"))
