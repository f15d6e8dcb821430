"""Mode messages: tokens while models stream, whole messages that nodes return; each once, nothing stored changes."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated, Any, TypedDict

import pytest

from pregel.agents.models.scripted import ScriptedModel
from pregel.constants import TAG_NOSTREAM
from pregel.graph import START, MessagesState, StateGraph
from pregel.graph.message import add_messages
from pregel.messages import AIMessage, AIMessageChunk, HumanMessage
from pregel.tokens import token_sink, tool_sink

from .conftest import Runner
from .marks import Saver, Thread

HELLO = {"messages": [HumanMessage("hi", id="h")]}


def graph(**nodes: Any) -> StateGraph[Any]:
    """These nodes one after the other."""
    built: StateGraph[Any] = StateGraph(MessagesState)
    before = START
    for name, node in nodes.items():
        built.add_node(name, node).add_edge(before, name)
        before = name
    return built


def model_node(*texts: str, tags: tuple[str, ...] = ()) -> Any:
    model = ScriptedModel(texts, loop=True)
    return lambda state: {"messages": [model.invoke(state["messages"], {"tags": list(tags)})]}


def spoken(chunks: list[Any]) -> list[tuple[str, str, str]]:
    """Type, text and node of each chunk."""
    return [(type(message).__name__, str(message.content), meta["langgraph_node"]) for message, meta in chunks]


@pytest.mark.acceptance("S1-46")
def test_tokens_come_before_their_node_ends(run: Runner) -> None:
    may_end = threading.Event()
    model = ScriptedModel(["one two"])

    def node(state: Any) -> Any:
        answer = model.invoke(state["messages"])
        assert may_end.wait(30)
        return {"messages": [answer]}

    texts: list[str] = []

    def heard(chunk: Any) -> None:
        message, where = chunk
        texts.append(message.content)
        assert (where["langgraph_node"], where["langgraph_step"]) == ("talk", 1)
        assert where["langgraph_checkpoint_ns"].startswith("talk:")
        assert where["checkpoint_ns"] == where["langgraph_checkpoint_ns"]
        if "".join(texts) == "one two":
            may_end.set()  # never, if the tokens had to wait for the node

    run.follow(heard, graph(talk=node).compile(), HELLO, stream_mode="messages")

    assert "".join(texts) == "one two"


def test_what_has_streamed_is_not_shown_again_when_it_is_returned(run: Runner) -> None:
    app = graph(talk=model_node("one two"), listen=lambda state: {"messages": state["messages"]}).compile()

    chunks = run.stream(app, HELLO, stream_mode="messages")

    assert {(kind, node) for kind, _, node in spoken(chunks)} == {("AIMessageChunk", "talk")}
    assert len({message.id for message, _ in chunks}) == 1


def test_a_message_that_a_node_returns_shows_whole_and_once(run: Runner) -> None:
    say = lambda state: {"messages": [AIMessage("static"), AIMessage("named", id="n")]}  # noqa: E731
    app = graph(say=say, again=lambda state: {"messages": [AIMessage("named", id="n")]}).compile()

    chunks = run.stream(app, HELLO, stream_mode="messages")

    assert spoken(chunks) == [("AIMessage", "static", "say"), ("AIMessage", "named", "say")]


def test_a_message_deep_inside_of_a_key_is_data(run: Runner) -> None:
    def node(state: Any) -> dict[str, Any]:
        return {"draft": {"kept": AIMessage("no", id="no")}, "messages": [AIMessage("yes", id="yes")]}

    class Drafting(TypedDict, total=False):
        messages: Annotated[list[Any], add_messages]
        draft: dict[str, Any]

    app = StateGraph(Drafting).add_node("node", node).add_edge(START, "node").compile()

    assert [message.content for message, _ in run.stream(app, {}, stream_mode="messages")] == ["yes"]


def test_what_is_stored_does_not_depend_on_who_listens(run: Runner, saver: Saver, thread: Thread) -> None:
    app = graph(talk=model_node("one two"), say=lambda state: {"messages": AIMessage("x")}).compile(checkpointer=saver)

    run.stream(app, HELLO, thread("heard"), stream_mode="messages")
    run.invoke(app, HELLO, thread("unheard"))

    heard, unheard = (run.state(app, thread(name)).values["messages"] for name in ("heard", "unheard"))
    assert [(type(m), m.content) for m in heard] == [(type(m), m.content) for m in unheard]
    assert [type(m).__name__ for m in heard] == ["HumanMessage", "AIMessage", "AIMessage"]


@pytest.mark.parametrize("tagged", ["call", "node"])
def test_nostream_keeps_tokens_back_and_not_the_message(run: Runner, tagged: str) -> None:
    quiet = model_node("one two", tags=(TAG_NOSTREAM,) if tagged == "call" else ())
    config = {"tags": [TAG_NOSTREAM]} if tagged == "node" else {}

    chunks = run.stream(graph(talk=quiet).compile(), HELLO, config, stream_mode="messages")

    assert spoken(chunks) == [("AIMessage", "one two", "talk")]


@pytest.mark.parametrize("subgraphs", [False, True])
def test_a_subgraphs_tokens_need_subgraphs_and_its_messages_show_once(run: Runner, subgraphs: bool) -> None:
    inner = graph(talk=model_node("one two"), say=lambda state: {"messages": [AIMessage("static")]}).compile()
    app = graph(child=inner).compile()

    chunks = run.stream(app, HELLO, stream_mode="messages", subgraphs=subgraphs)

    if subgraphs:
        inside = [chunk for ns, chunk in chunks if ns]
        assert len(inside) == len(chunks)
        assert "".join(text for kind, text, _ in spoken(inside) if kind == "AIMessageChunk") == "one two"
        assert spoken(inside)[-1] == ("AIMessage", "static", "say")
    else:
        assert spoken(chunks) == [("AIMessage", "one two", "child"), ("AIMessage", "static", "child")]


def test_metadata_says_what_the_caller_attached(run: Runner) -> None:
    config = {"metadata": {"user": "u"}, "tags": ["t"]}

    ((_, where), *_) = run.stream(graph(talk=model_node("one")).compile(), HELLO, config, stream_mode="messages")

    assert (where["user"], where["tags"], where["ls_provider"]) == ("u", ["t"], "scripted")
    assert where["langgraph_path"] == ("__pregel_pull", "talk")
    assert where["langgraph_triggers"] == ("branch:to:talk",)


def test_a_model_that_streams_inside_an_async_node_is_heard() -> None:
    model = ScriptedModel(["one two"])

    async def node(state: Any) -> Any:
        chunks = [chunk async for chunk in model.astream(state["messages"])]
        return {"messages": [AIMessage("".join(str(chunk.content) for chunk in chunks), id=chunks[0].id)]}

    async def follow() -> list[Any]:
        return [chunk async for chunk in graph(talk=node).compile().astream(HELLO, stream_mode="messages")]

    chunks = asyncio.run(follow())

    assert "".join(text for _, text, _ in spoken(chunks)) == "one two"
    assert {kind for kind, _, _ in spoken(chunks)} == {"AIMessageChunk"}


def test_a_sink_is_there_only_when_somebody_listens(run: Runner) -> None:
    found: list[tuple[bool, bool]] = []

    def node(state: Any) -> None:
        found.append((token_sink() is not None, tool_sink() is not None))

    app = graph(n=node).compile()
    for modes in (["values"], ["messages"], ["tools"], ["messages", "tools"]):
        run.stream(app, HELLO, stream_mode=modes)

    assert token_sink() is None
    assert found == [(False, False), (True, False), (False, True), (True, True)]


def test_tool_events_show_as_they_are(run: Runner) -> None:
    event = {"event": "tool-started", "tool_call_id": "c", "tool_name": "t", "input": {}}

    def node(state: Any) -> None:
        sink = tool_sink()
        assert sink is not None
        sink(event)

    assert run.stream(graph(n=node).compile(), HELLO, stream_mode=["tools"]) == [("tools", event)]


def test_what_is_said_after_the_node_has_ended_is_dropped(run: Runner) -> None:
    kept: list[Any] = []

    def node(state: Any) -> None:
        kept.append(token_sink())

    def late(state: Any) -> None:
        kept[0](AIMessageChunk("late", id="l"))

    assert run.stream(graph(n=node, late=late).compile(), HELLO, stream_mode="messages") == []
