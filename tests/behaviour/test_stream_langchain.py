"""LangChain chat models inside nodes: their tokens show as those of our own models do."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.constants import TAG_NOSTREAM
from pregel.graph import START, MessagesState, StateGraph

from .conftest import Runner
from .marks import State, chain

fakes = pytest.importorskip("langchain_core.language_models.fake_chat_models", reason="LangChain is not installed")
messages = pytest.importorskip("langchain_core.messages")
runnables = pytest.importorskip("langchain_core.runnables")


def model() -> Any:
    return fakes.GenericFakeChatModel(messages=iter([messages.AIMessage("one two")]))


def talking(**attached: Any) -> Any:
    def node(state: State) -> dict[str, Any]:
        answer = model().with_config(**attached).invoke("hi")
        return {"b": answer.content}

    return StateGraph(State).add_node("talk", node).add_edge(START, "talk").compile()


@pytest.mark.acceptance("S1-46")
def test_tokens_show_with_their_node(run: Runner) -> None:
    chunks = run.stream(talking(), {"a": []}, stream_mode="messages")

    assert [message.content for message, _ in chunks] == ["one", " ", "two"]
    assert {(where["langgraph_node"], where["langgraph_step"]) for _, where in chunks} == {("talk", 1)}
    assert {where["ls_model_type"] for _, where in chunks} == {"chat"}
    assert len({message.id for message, _ in chunks}) == 1


def test_a_model_inside_a_chain_of_langchain_is_heard(run: Runner) -> None:
    def node(state: State) -> dict[str, Any]:
        steps = runnables.RunnableLambda(lambda text: text) | model()
        return {"b": steps.invoke("hi").content}

    chunks = run.stream(chain("n", n=node).compile(), {"a": []}, stream_mode="messages")

    assert "".join(message.content for message, _ in chunks) == "one two"


def test_a_model_that_is_awaited_is_heard() -> None:
    async def node(state: State) -> dict[str, Any]:
        return {"b": (await model().ainvoke("hi")).content}

    async def follow() -> list[Any]:
        app = chain("n", n=node).compile()
        return [chunk async for chunk in app.astream({"a": []}, stream_mode="messages")]

    import asyncio

    assert "".join(message.content for message, _ in asyncio.run(follow())) == "one two"


def test_an_event_stream_of_a_model_and_the_answer_that_it_gave_are_one_message(
    run: Runner, capfd: pytest.CaptureFixture[str]
) -> None:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": model().stream_events(state["messages"], version="v3").output}

    app = StateGraph(MessagesState).add_node("talk", node).add_edge(START, "talk").compile()
    chunks = run.stream(app, {"messages": "hi"}, stream_mode="messages")

    assert [message.content for message, _ in chunks] == ["one", " ", "two"]
    assert "Error in" not in capfd.readouterr().err


def test_an_answer_that_could_not_be_streamed_shows_whole(run: Runner) -> None:
    def node(state: State) -> dict[str, Any]:
        return {"b": fakes.FakeMessagesListChatModel(responses=[messages.AIMessage("whole")]).invoke("hi").content}

    ((message, _),) = run.stream(chain("n", n=node).compile(), {"a": []}, stream_mode="messages")

    assert message.content == "whole"


def test_nostream_is_heard_of_nowhere(run: Runner) -> None:
    assert run.stream(talking(tags=[TAG_NOSTREAM]), {"a": []}, stream_mode="messages") == []


def test_nothing_of_it_is_there_when_nobody_listens(run: Runner) -> None:
    run.stream(talking(), {"a": []}, stream_mode="messages")  # the library is connected now
    streamed: list[str] = []

    class Model(fakes.GenericFakeChatModel):  # type: ignore[misc, name-defined]  # the library may not be installed
        def _stream(self, *args: Any, **kwargs: Any) -> Any:
            streamed.append("streamed")
            yield from super()._stream(*args, **kwargs)

    def node(state: State) -> dict[str, Any]:
        return {"b": Model(messages=iter([messages.AIMessage("one two")])).invoke("hi").content}

    assert run.invoke(chain("n", n=node).compile(), {"a": []})["b"] == "one two"
    assert streamed == []
