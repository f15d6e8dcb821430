"""LangChain and we compose in both directions, in a process that has both."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar
from uuid import uuid4

import pytest
from typing_extensions import TypedDict

theirs = pytest.importorskip("langchain_core.runnables", reason="not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")

from langchain_core.callbacks import BaseCallbackHandler  # noqa: E402
from langchain_core.language_models.fake_chat_models import FakeListChatModel  # noqa: E402
from langchain_core.messages import (  # noqa: E402
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    convert_to_messages,
)
from langchain_core.messages import BaseMessage as BaseMessageOfLangChain  # noqa: E402
from langchain_core.messages import HumanMessage as HumanMessageOfLangChain  # noqa: E402
from langchain_core.prompts import ChatPromptTemplate  # noqa: E402
from pydantic import BaseModel  # noqa: E402

from pregel.agents import AgentState, create_agent  # noqa: E402
from pregel.agents.middleware import PIIMiddleware, SummarizationMiddleware  # noqa: E402
from pregel.agents.models.scripted import ScriptedModel  # noqa: E402
from pregel.cache.memory import InMemoryCache  # noqa: E402
from pregel.channels import DeltaChannel  # noqa: E402
from pregel.checkpoint.memory import InMemorySaver  # noqa: E402
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer  # noqa: E402
from pregel.errors import PregelError  # noqa: E402
from pregel.graph import START, MessagesState, StateGraph, add_messages  # noqa: E402
from pregel.interop.langchain import connect  # noqa: E402
from pregel.messages import AIMessage as AIMessageOfOurs  # noqa: E402
from pregel.messages import HumanMessage, RemoveMessage, ToolMessage, messages_delta_reducer  # noqa: E402
from pregel.runnable import RunnableLambda  # noqa: E402
from pregel.types import CachePolicy, Overwrite  # noqa: E402


class State(TypedDict, total=False):
    x: int


def doubling() -> Any:
    return StateGraph(State).add_node("double", lambda state: {"x": state["x"] * 2}).add_edge(START, "double").compile()


def add(x: int) -> int:
    return x + 1


def double(x: int) -> int:
    """Twice x."""
    return 2 * x


class Heard(BaseCallbackHandler):  # type: ignore[misc]  # it has no types where it is not installed
    """Keeps the tags and metadata of the runs, and the tokens, that it hears of."""

    def __init__(self) -> None:
        self.tags: list[Any] = []
        self.nodes: list[Any] = []
        self.tokens: list[str] = []

    def on_chain_start(self, *args: Any, tags: Any = None, metadata: Any = None, **kwargs: Any) -> None:
        self.tags.append(tags)
        self.nodes.append((metadata or {}).get("langgraph_node"))

    def on_llm_new_token(self, token: str, **kwargs: Any) -> None:
        self.tokens.append(token)


@pytest.mark.acceptance("S1-1", "S1-2")
def test_pipes_go_both_ways() -> None:
    connect()
    wrap, unwrap = theirs.RunnableLambda(lambda x: {"x": x}), theirs.RunnableLambda(lambda state: state["x"])

    for chain in (
        wrap | doubling() | unwrap,
        RunnableLambda(add) | theirs.RunnableLambda(lambda x: {"x": x - 1}) | doubling() | unwrap,
        theirs.RunnableLambda(lambda x: x) | RunnableLambda(lambda x: {"x": x}) | doubling() | (lambda s: s["x"]),
    ):
        assert 6 == chain.invoke(3)
        assert 6 == asyncio.run(chain.ainvoke(3))
        assert [6, 8] == chain.batch([3, 4])
    assert [{"double": {"x": 6}}] == list((wrap | doubling()).stream(3))


def test_what_a_node_calls_without_a_config_has_the_nodes_callbacks_tags_and_metadata() -> None:
    heard = Heard()
    inner = theirs.RunnableLambda(add)

    async def awaiting(state: State) -> State:
        return {"x": await inner.ainvoke(state["x"])}

    graph = StateGraph(State).add_node("sync", lambda state: {"x": inner.invoke(state["x"])})
    app = graph.add_node("async", awaiting).add_edge(START, "sync").add_edge("sync", "async").compile()

    assert {"x": 3} == asyncio.run(app.ainvoke({"x": 1}, {"callbacks": [heard], "tags": ["mine"]}))
    assert [None, "sync", "sync", "async", "async"] == heard.nodes  # the graph, and each node with what it calls
    assert all("mine" in tags for tags in heard.tags)


@pytest.mark.parametrize("way", ["called", "node"])
def test_its_objects_in_a_node_have_their_own_names_and_run_ids(way: str) -> None:
    class Named(BaseCallbackHandler):  # type: ignore[misc]  # it is not installed everywhere
        started: ClassVar[list[tuple[str, bool]]] = []

        def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: Any, **kwargs: Any) -> None:
            self.started.append((kwargs["name"], run_id == given))

    given, Named.started = uuid4(), []
    inner = theirs.RunnableLambda(lambda state: {"x": state["x"] + 1}, name="inner")
    node = inner if way == "node" else lambda state: inner.invoke(inner.invoke(state))
    app = StateGraph(State).add_node("n", node).add_edge(START, "n").compile()

    app.invoke({"x": 1}, {"callbacks": [Named()], "run_name": "mine", "run_id": given})
    asyncio.run(app.ainvoke({"x": 1}, {"callbacks": [Named()], "run_name": "mine", "run_id": given}))

    assert set(Named.started) == {("mine", True), ("n", False), ("inner", False)}


def test_its_runnable_is_a_node_and_its_model_takes_our_messages() -> None:
    heard = Heard()
    model = FakeListChatModel(responses=["hi"])
    chain = RunnableLambda(lambda state: [HumanMessage("hello")]) | model | (lambda answer: {"x": len(answer.content)})
    app = StateGraph(State).add_node("model", chain).add_edge(START, "model").compile()

    assert {"x": 2} == app.invoke({"x": 0}, {"callbacks": [heard]})
    direct = StateGraph(State).add_node("n", theirs.RunnableLambda(lambda state: {"x": state["x"] + 1}))
    assert {"x": 1} == direct.add_edge(START, "n").compile().invoke({"x": 0})


@pytest.mark.parametrize(
    "said", ["hi", ("user", "hi"), {"role": "user", "content": "hi"}, HumanMessageOfLangChain("hi")]
)
def test_its_model_takes_the_messages_of_the_state_where_a_node_calls_it(said: Any) -> None:
    model = FakeListChatModel(responses=["one", "two", "three", "four"])
    prompt = ChatPromptTemplate.from_messages([("system", "be brief"), ("placeholder", "{messages}")])

    def whole(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"]), (prompt | model).invoke(state)]}

    async def streamed(state: MessagesState) -> dict[str, Any]:
        return {"messages": ["".join([chunk.text async for chunk in model.astream(state["messages"])])]}

    graph = StateGraph(MessagesState).add_node("whole", whole).add_node("streamed", streamed)
    app = graph.add_edge(START, "whole").add_edge("whole", "streamed").compile()
    done = asyncio.run(app.ainvoke({"messages": [said]}))

    assert ["hi", "one", "two", "three"] == [message.text for message in done["messages"]]


class Told(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class ToldBase(TypedDict):
    messages: Annotated[Sequence[BaseMessageOfLangChain], add_messages(format="langchain-openai")]


class ToldDelta(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(messages_delta_reducer)]


class ToldModel(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []


@pytest.mark.parametrize("schema", [Told, ToldBase, ToldDelta, ToldModel])
def test_a_key_that_is_declared_to_hold_its_messages_holds_them_whatever_is_written(schema: Any) -> None:
    seen: list[Any] = []

    def node(state: Any) -> dict[str, Any]:
        seen.extend(state["messages"] if isinstance(state, dict) else state.messages)
        return {"messages": [AIMessageOfOurs("yes"), AIMessageChunk("no"), HumanMessageOfLangChain("so", id="s")]}

    app = StateGraph(schema).add_node("n", node).add_edge(START, "n").compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    app.invoke({"messages": ("user", "hi")}, thread)
    app.update_state(thread, {"messages": [RemoveMessage("s"), {"role": "user", "content": "bye"}]}, as_node="n")
    app.invoke({"messages": Overwrite(["new"])}, thread)

    found = app.get_state(thread).values["messages"]
    kinds = {"human": HumanMessageOfLangChain, "ai": AIMessage}
    assert ["hi", "new"] == [message.text for message in seen]
    assert ["new", "yes", "no", "so"] == [message.text for message in found]
    assert all(type(message) is kinds[message.type] for message in [*seen, *found])


@pytest.mark.parametrize("schema", [Told, ToldDelta])
@pytest.mark.parametrize("alone", [False, True])
def test_an_update_shows_a_message_alone_as_the_node_returned_it(schema: Any, alone: bool) -> None:
    said = AIMessageOfOurs("yes")
    graph = StateGraph(schema).add_node("n", lambda state: {"messages": said if alone else [said]})

    (shown,) = graph.add_edge(START, "n").compile().stream({"messages": []}, stream_mode="updates")

    assert (AIMessage if alone else list) is type(shown["n"]["messages"])


def test_what_is_no_message_is_refused_by_the_reducer_there_too() -> None:
    app = StateGraph(Told).add_node("n", lambda state: {}).add_edge(START, "n").compile()

    with pytest.raises(PregelError, match="No message can be made"):
        app.invoke({"messages": [5]})


def test_an_agent_whose_state_holds_its_messages_runs_tools() -> None:
    class Own(AgentState):
        messages: Annotated[list[AnyMessage], add_messages]

    call = {"name": "double", "args": {"x": 2}, "id": "c"}
    model = ScriptedModel([AIMessageOfOurs("", tool_calls=[call]), "4"])
    app = create_agent(model, [double], state_schema=Own)

    done = app.invoke({"messages": "what is twice 2?"})["messages"]

    assert ["human", "ai", "tool", "ai"] == [message.type for message in done]
    assert ["what is twice 2?", "", "4", "4"] == [message.text for message in done]
    assert all(isinstance(message, BaseMessageOfLangChain) for message in done)


def test_its_functions_lose_nothing_of_our_messages() -> None:
    connect()
    call = {"name": "add", "args": {"x": 1}, "id": "c1", "type": "tool_call"}
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    ours = [
        HumanMessage("hello", id="h", name="ann"),
        AIMessageOfOurs("", id="a", tool_calls=[call], usage_metadata=usage, response_metadata={"model": "m"}),
        ToolMessage("2", tool_call_id="c1", artifact={"raw": 2}, status="error"),
    ]

    theirs_now = convert_to_messages(ours)

    assert ["HumanMessage", "AIMessage", "ToolMessage"] == [type(message).__name__ for message in theirs_now]
    assert all(type(message).__module__.startswith("langchain_core.") for message in theirs_now)
    human, answer, result = theirs_now
    assert ("hello", "h", "ann") == (human.content, human.id, human.name)
    assert ([call], usage, {"model": "m"}) == (answer.tool_calls, answer.usage_metadata, answer.response_metadata)
    assert ("c1", {"raw": 2}, "error") == (result.tool_call_id, result.artifact, result.status)


def test_tokens_reach_the_handlers_of_the_run() -> None:
    heard = Heard()
    model = FakeListChatModel(responses=["hi"])

    def node(state: State) -> State:
        return {"x": len(list(model.stream("hello")))}

    app = StateGraph(State).add_node("n", node).add_edge(START, "n").compile()
    app.invoke({"x": 0}, {"callbacks": [heard]})

    assert "hi" == "".join(heard.tokens)


def test_its_model_in_an_agent_shows_each_token_once_and_redacted() -> None:
    def shown(*middleware: Any) -> list[str]:
        app = create_agent(FakeListChatModel(responses=["a@b.org x"]), middleware=middleware)

        async def awaited() -> list[Any]:
            return [part async for part in app.astream({"messages": "hi"}, stream_mode="messages")]

        chunks = [*app.stream({"messages": "hi"}, stream_mode="messages"), *asyncio.run(awaited())]
        return [chunk.text for chunk, _ in chunks if chunk.text]

    assert [*"a@b.org x"] * 2 == shown()
    assert ["[REDACTED_EMAIL] ", "x"] * 2 == shown(PIIMiddleware("email", apply_to_output=True))


def test_what_a_middleware_asks_its_model_does_not_show() -> None:
    hidden, said = FakeListChatModel(responses=["SUMMARY"]), FakeListChatModel(responses=["x"])
    middleware = SummarizationMiddleware(hidden, trigger=("messages", 1), keep=("messages", 1))
    app = create_agent(said, middleware=[middleware])

    chunks = app.stream({"messages": ["one", "two"]}, stream_mode="messages")

    assert "SUMMARY" not in "".join(chunk.text for chunk, _ in chunks if chunk.type != "human")


def test_policies_hold_for_nodes_in_a_process_with_both() -> None:
    calls: list[int] = []

    def node(state: State) -> State:
        calls.append(1)
        return {"x": state["x"] + 1}

    app = StateGraph(State).add_node("n", node, cache_policy=CachePolicy()).add_edge(START, "n")
    graph = app.compile(cache=InMemoryCache())

    assert [{"x": 2}, {"x": 2}] == [graph.invoke({"x": 1}) for _ in range(2)]
    assert 1 == len(calls)


def test_its_messages_and_their_text_are_kept_by_any_state() -> None:
    class Said(TypedDict, total=False):
        messages: list[Any]
        text: str

    def speak(state: Said) -> Said:
        answer = AIMessage("hi", tool_calls=[{"name": "f", "args": {}, "id": "1"}])
        return {"messages": [*state["messages"], answer, AIMessageChunk("x")], "text": answer.text}

    app = StateGraph(Said).add_node("speak", speak).add_edge(START, "speak").compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    done = app.invoke({"messages": [HumanMessageOfLangChain("hello")]}, thread)

    assert done["messages"] == app.get_state(thread).values["messages"]
    assert ["HumanMessage", "AIMessage", "AIMessageChunk"] == [type(one).__name__ for one in done["messages"]]


def test_a_process_that_has_not_loaded_it_reads_its_messages() -> None:
    stored = JsonPlusSerializer().dumps([HumanMessageOfLangChain("hello")])
    reading = (
        "import sys; from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer;"
        "print(JsonPlusSerializer().loads(bytes.fromhex(sys.argv[1]))[0].text)"
    )

    told = subprocess.run([sys.executable, "-c", reading, stored.hex()], capture_output=True, text=True, check=True)

    assert "hello\n" == told.stdout
