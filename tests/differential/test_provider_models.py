"""LangChain's chat models of OpenAI and Anthropic in our agent, against the strict service."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("langchain_openai", reason="not installed: pip install 'pregel[compare]'")
pytest.importorskip("langchain_anthropic", reason="not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")

from langchain_anthropic import ChatAnthropic  # noqa: E402
from langchain_core.tools import tool  # noqa: E402
from langchain_openai import ChatOpenAI  # noqa: E402

from pregel.agents import create_agent  # noqa: E402
from pregel.agents.middleware import HumanInTheLoopMiddleware  # noqa: E402
from pregel.checkpoint.sqlite import SqliteSaver  # noqa: E402
from pregel.types import Command  # noqa: E402
from tests.providers.service import Conversation  # noqa: E402

CONFIG: Any = {"configurable": {"thread_id": "t"}}
CALLS = [{"id": "c1", "name": "double", "args": {"n": 21}}, {"id": "c2", "name": "double", "args": {"n": 2}}]


@tool  # type: ignore[untyped-decorator, unused-ignore]  # it has no types where it is not installed
def double(n: int) -> int:
    """Double a number."""
    return n * 2


@pytest.fixture(params=["openai", "anthropic"])
def model(request: pytest.FixtureRequest, conversation: Conversation) -> Any:
    if request.param == "openai":
        return ChatOpenAI(
            model="gpt", api_key=conversation.key, base_url=f"{conversation.url}/v1", max_retries=0, stream_usage=True
        )
    return ChatAnthropic(
        model_name="claude", api_key=conversation.key, base_url=conversation.url, max_retries=0, max_tokens_to_sample=99
    )


def talk(model: Any) -> Any:
    """The messages of two turns."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        agent = create_agent(model, [double], system_prompt="Be brief.", checkpointer=saver)
        agent.invoke({"messages": "Double 21 and 2."}, CONFIG)
        return agent.invoke({"messages": "Thanks."}, CONFIG)["messages"]


async def atalk(model: Any) -> Any:
    """The same, awaited; its client's connections end with the loop."""
    with SqliteSaver.from_conn_string(":memory:") as saver:
        agent = create_agent(model, [double], system_prompt="Be brief.", checkpointer=saver)
        await agent.ainvoke({"messages": "Double 21 and 2."}, CONFIG)
        said = await agent.ainvoke({"messages": "Thanks."}, CONFIG)
    await (model.root_async_client if isinstance(model, ChatOpenAI) else model._async_client).close()
    return said["messages"]


@pytest.mark.parametrize("awaited", [False, True], ids=["sync", "async"])
def test_their_model_calls_tools_and_no_request_is_refused(
    model: Any, conversation: Conversation, awaited: bool
) -> None:
    conversation.will_say({"text": "Let me see.", "tool_calls": CALLS}, {"text": "42 and 4."}, {"text": "Bye."})

    messages = asyncio.run(atalk(model)) if awaited else talk(model)

    assert [] == conversation.refused
    assert ["human", "ai", "tool", "tool", "ai", "human", "ai"] == [message.type for message in messages]
    assert ["42", "4", "42 and 4.", "Bye."] == [messages[at].text for at in (2, 3, 4, 6)]
    assert CALLS == [{key: call[key] for key in ("id", "name", "args")} for call in messages[1].tool_calls]
    assert 3 == len(conversation.log)


def test_the_words_of_their_model_show_as_they_come(model: Any, conversation: Conversation) -> None:
    conversation.will_say({"text": "It is as you say.", "split": 1})
    agent = create_agent(model)

    shown = [chunk.text for chunk, _ in agent.stream({"messages": "hi"}, stream_mode="messages")]

    assert "It is as you say." == "".join(shown)
    assert len([one for one in shown if one]) > 1


def test_a_call_of_their_model_waits_for_a_person(model: Any, conversation: Conversation) -> None:
    conversation.will_say({"text": "", "tool_calls": CALLS[:1]}, {"text": "As you wish."})
    with SqliteSaver.from_conn_string(":memory:") as saver:
        asking = HumanInTheLoopMiddleware({"double": True})
        agent = create_agent(model, [double], middleware=[asking], checkpointer=saver)

        assert "__interrupt__" in agent.invoke({"messages": "Double 21."}, CONFIG)
        refusal: Any = {"decisions": [{"type": "reject", "message": "No."}]}
        messages = agent.invoke(Command(resume=refusal), CONFIG)["messages"]

    assert [] == conversation.refused
    assert ["No.", "As you wish."] == [message.text for message in messages[-2:]]
