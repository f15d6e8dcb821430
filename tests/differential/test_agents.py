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

from pregel.agents import create_agent, create_react_agent  # noqa: E402
from pregel.agents.middleware import SummarizationMiddleware  # noqa: E402
from pregel.checkpoint.memory import InMemorySaver  # noqa: E402


class Fake(FakeMessagesListChatModel):  # type: ignore[misc]  # untyped where it is not installed
    """LangChain's fake model, which takes tools."""

    bound: Any = None

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        self.bound = tools
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
