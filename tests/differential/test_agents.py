"""LangChain's models and tools drive our agents, and the older agent shows what the reference's shows."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest

pytest.importorskip("langgraph.prebuilt", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")

from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel  # noqa: E402
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage  # noqa: E402
from langchain_core.runnables import RunnableLambda  # noqa: E402
from langchain_core.tools import InjectedToolCallId, tool  # noqa: E402
from langgraph.prebuilt import InjectedState, ToolRuntime  # noqa: E402
from langgraph.prebuilt import create_react_agent as reference_agent  # noqa: E402
from pydantic import BaseModel  # noqa: E402

from pregel.agents import InjectedState as OurState  # noqa: E402
from pregel.agents import InjectedToolCallId as OurCallId  # noqa: E402
from pregel.agents import ToolRuntime as OurRuntime  # noqa: E402
from pregel.agents import create_agent, create_react_agent  # noqa: E402
from pregel.agents.deep import create_deep_agent  # noqa: E402
from pregel.agents.middleware import SummarizationMiddleware, wrap_tool_call  # noqa: E402
from pregel.checkpoint.memory import InMemorySaver  # noqa: E402
from pregel.messages import ToolMessage as OurToolMessage  # noqa: E402
from pregel.types import Command  # noqa: E402

from .chain_runs import Keeping  # noqa: E402


class Fake(FakeMessagesListChatModel):  # type: ignore[misc]  # untyped where it is not installed
    """LangChain's fake model, which takes tools."""

    bound: Any = None
    settings: Any = None

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self.bound, self.settings = tools, kwargs
        return self


def _double(n: int) -> str:
    """Double a number."""
    return str(n * 2)


def _pair(n: int, id: Annotated[str, InjectedToolCallId]) -> tuple[str, list[int]]:
    """Content and artifact."""
    return f"pair {id}", [n]


def _seen(what: str, state: Annotated[Any, InjectedState], runtime: ToolRuntime) -> str:
    """What a tool sees."""
    return f"{what} {len(state['messages'])} {runtime.tool_call_id}"


double, seen = tool("double")(_double), tool("seen")(_seen)
pair = tool("pair", response_format="content_and_artifact")(_pair)


def call(name: str, id: str, **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": id}


def calling(*calls: Any) -> Any:
    return AIMessage("", tool_calls=list(calls))


SCRIPTS = {
    "no tool": [AIMessage("hello")],
    "one tool": [calling(call("double", "1", n=21)), AIMessage("42")],
    "two tools": [calling(call("double", "1", n=1), call("pair", "2", n=2)), AIMessage("done")],
    "twice": [calling(call("double", "1", n=1)), calling(call("double", "2", n=2)), AIMessage("done")],
    "what tools see": [calling(call("seen", "1", what="w"), call("seen", "2", what="v")), AIMessage("done")],
}


def told(result: Any) -> list[tuple[Any, ...]]:
    return [
        (
            message.type,
            message.content,
            [(one["name"], one["args"], one["id"]) for one in getattr(message, "tool_calls", [])],
            getattr(message, "tool_call_id", None),
            getattr(message, "artifact", None),
        )
        for message in result["messages"]
    ]


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("name", list(SCRIPTS))
def test_the_older_agent_shows_what_the_references_shows(name: str, version: Any) -> None:
    tools = [double, pair, seen]
    theirs = reference_agent(Fake(responses=SCRIPTS[name]), tools, prompt="be brief", version=version)
    ours = create_react_agent(Fake(responses=SCRIPTS[name]), tools, prompt="be brief", version=version)
    given = {"messages": [("user", "hi")]}

    assert set(theirs.get_graph().nodes) == set(ours.get_graph().nodes)
    assert told(theirs.invoke(given)) == told(ours.invoke(given))
    assert told(theirs.invoke(given)) == told(asyncio.run(ours.ainvoke(given)))


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_langchains_messages_models_and_tools_survive_a_thread(name: str) -> None:
    answers = [
        answer.model_copy(update={"id": None}) for answer in SCRIPTS[name] * 2
    ]  # one with its id would replace it
    agent = create_agent(Fake(responses=answers), [double, pair, seen], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}

    first = agent.invoke({"messages": [SystemMessage("s"), HumanMessage("hi")]}, config)
    second = agent.invoke({"messages": [HumanMessage("more")]}, config)

    assert told(second)[: len(first["messages"])] == told(first)
    assert isinstance(agent.get_state(config).values["messages"][1], HumanMessage)


def test_bad_arguments_for_langchains_tool_are_told_to_the_model() -> None:
    model = Fake(responses=[calling(call("double", "1", n="x")), AIMessage("ok")])
    result = create_agent(model, [double]).invoke({"messages": "hi"})

    assert "valid integer" in result["messages"][2].text
    assert "double" == model.bound[0]["function"]["name"]


def test_a_history_of_langchains_is_summarized() -> None:
    history = [
        HumanMessage("a"),
        calling(call("double", "1", n=1)),
        ToolMessage("2", tool_call_id="1"),
        HumanMessage("b"),
    ]
    summary = SummarizationMiddleware(Fake(responses=[AIMessage("SUM")]), trigger=("messages", 3), keep=("messages", 2))
    result = create_agent(Fake(responses=[AIMessage("ok")]), middleware=[summary]).invoke({"messages": history})

    assert ["human", "ai", "tool", "human", "ai"] == [message.type for message in result["messages"]]


def test_our_agent_is_a_step_of_langchains_chain() -> None:
    agent = create_agent(Fake(responses=[AIMessage("ok")]))
    ask = RunnableLambda(lambda text: {"messages": [("user", text)]})
    chain = ask | RunnableLambda(agent.invoke) | RunnableLambda(lambda result: result["messages"][-1].text)

    assert "ok" == chain.invoke("hi")


@tool  # type: ignore[untyped-decorator]  # untyped where it is not installed
def note(text: str, id: Annotated[str, OurCallId], state: Annotated[Any, OurState], runtime: OurRuntime) -> Any:
    """Note a text."""
    told = OurToolMessage(f"{text} {len(state['messages'])} {runtime.tool_call_id}", tool_call_id=id)
    return Command(update={"messages": [told]})


@pytest.mark.parametrize("make", [create_agent, create_react_agent])
def test_langchains_tool_takes_what_we_inject_and_returns_our_commands(make: Any) -> None:
    def answers() -> list[Any]:
        return [calling(call("note", "c1", text="t")), AIMessage("done")]

    model = Fake(responses=answers())
    given: Any = {"messages": "hi"}

    assert "t 2 c1" == make(model, [note]).invoke(given)["messages"][2].text
    assert "t 2 c1" == asyncio.run(make(Fake(responses=answers()), [note]).ainvoke(given))["messages"][2].text
    assert ["text"] == list(model.bound[0]["function"]["parameters"]["properties"])


def test_a_wrap_hook_may_supply_langchains_tool() -> None:
    @wrap_tool_call
    def supply(request: Any, handler: Any) -> Any:
        return handler(request.override(tool=double))

    model = Fake(responses=[calling(call("double", "1", n=21)), AIMessage("done")])
    result = create_agent(model, middleware=[supply]).invoke({"messages": "hi"})

    assert "42" == result["messages"][2].text


@pytest.mark.parametrize("awaited", [False, True])
def test_a_model_that_cannot_stream_keeps_its_calls_when_words_are_shown(awaited: bool) -> None:
    agent = create_agent(Fake(responses=[calling(call("double", "1", n=21)), AIMessage("done")]), [double])

    async def shown() -> list[Any]:
        return [part async for part in agent.astream({"messages": "hi"}, stream_mode="messages")]

    parts = asyncio.run(shown()) if awaited else list(agent.stream({"messages": "hi"}, stream_mode="messages"))

    assert ["", "42", "done"] == [message.text for message, _ in parts]


class Town(BaseModel):
    """A town."""

    name: str


def test_the_schema_that_langchains_model_is_given_has_a_title() -> None:
    model = Fake(responses=[AIMessage('{"name": "Oslo"}')], profile={"structured_output": True})
    result = create_agent(model, [double], response_format=Town).invoke({"messages": "where?"})

    assert Town(name="Oslo") == result["structured_response"]
    assert "Town" == model.settings["response_format"]["json_schema"]["schema"]["title"]


def test_the_older_agent_asks_langchains_model_in_its_own_way_for_a_structured_answer() -> None:
    class Structured(Fake):
        def with_structured_output(self, schema: Any, **kwargs: Any) -> Any:
            return RunnableLambda(lambda messages: schema(name=str(len(messages))))

    agent = create_react_agent(Structured(responses=[AIMessage("ok")]), [], response_format=Town)

    assert Town(name="2") == agent.invoke({"messages": "where?"})["structured_response"]
    assert Town(name="2") == asyncio.run(agent.ainvoke({"messages": "where?"}))["structured_response"]


@pytest.mark.parametrize("make", [create_agent, create_react_agent])
def test_a_system_message_of_langchains_is_a_prompt(make: Any) -> None:
    options = {"system_prompt" if make is create_agent else "prompt": SystemMessage("be brief")}
    heard: list[Any] = []

    class Hearing(Fake):
        def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
            heard.extend(messages)
            return super()._generate(messages, *args, **kwargs)

    make(Hearing(responses=[AIMessage("ok")]), [], **options).invoke({"messages": "hi"})

    assert [("system", "be brief"), ("human", "hi")] == [(one.type, one.content) for one in heard]


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
@pytest.mark.parametrize("is_awaited", [False, True])
def test_a_deep_agent_with_a_subagent_is_one_tree_for_handlers(is_awaited: bool, saver: Any) -> None:
    helper = create_agent(Fake(responses=[calling(call("double", "9", n=1)), AIMessage("ok")]), [double], name="helper")
    delegating = calling(call("task", "1", description="do", subagent_type="helper"), call("double", "2", n=2))
    subagent: Any = {"name": "helper", "description": "h", "runnable": helper}
    main, keeping = Fake(responses=[delegating, AIMessage("done")]), Keeping()
    app = create_deep_agent(main, [double], subagents=[subagent], checkpointer=saver)

    config: Any = {"configurable": {"thread_id": str(is_awaited)}, "callbacks": [keeping]}
    _ = asyncio.run(app.ainvoke({"messages": "hi"}, config)) if is_awaited else app.invoke({"messages": "hi"}, config)

    runs = keeping.tree.runs
    (inner,) = keeping.tree.named("helper")
    delegated = runs[inner["parent"]]
    assert ("tool", "task") == (delegated["kind"], delegated["name"])
    around = runs[delegated["parent"]]
    assert "tools" == around["name"]
    assert keeping.tree.named("LangGraph") == [runs[around["parent"]]]
    assert ["double", "double", "task"] == sorted(one["name"] for one in runs.values() if one["kind"] == "tool")
    lying = [runs[one["parent"]]["name"] for one in runs.values() if one["kind"] == "chat"]
    assert ["model"] * 4 == lying
    assert all("output" in one["end"] for one in runs.values())
