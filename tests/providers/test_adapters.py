"""The adapters, by the real client packages, against the strict service: whole, streamed, blocking and awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pregel.agents.models import (
    ChatModel,
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelRateLimitError,
    ModelRefusalError,
    OutputSchema,
    init_chat_model,
)
from pregel.agents.models.anthropic import ChatAnthropic
from pregel.agents.models.base import ChatRequest, ToolSpec
from pregel.agents.models.openai import ChatOpenAI
from pregel.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolCall, ToolMessage, tool_call

from .service import Conversation

Make = Callable[..., ChatModel]
ADD = ToolSpec(
    name="add",
    description="Adds.",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
)


@pytest.fixture(params=["openai", "anthropic"])
def model(request: pytest.FixtureRequest, conversation: Conversation) -> ChatModel:
    if request.param == "openai":
        return ChatOpenAI("gpt", api_key=conversation.key, base_url=f"{conversation.url}/v1", max_retries=0)
    return ChatAnthropic("claude", api_key=conversation.key, base_url=conversation.url, max_retries=0)


async def _collected(model: ChatModel, messages: Any) -> list[AIMessageChunk]:
    return [chunk async for chunk in model.astream(messages)]


def _sum(chunks: list[AIMessageChunk]) -> AIMessage:
    first, *others = chunks
    return first + others if others else first


ASK: dict[str, Callable[[ChatModel, Any], AIMessage]] = {
    "invoke": lambda model, messages: model.invoke(messages),
    "ainvoke": lambda model, messages: asyncio.run(model.ainvoke(messages)),
    "stream": lambda model, messages: _sum(list(model.stream(messages))),
    "astream": lambda model, messages: _sum(asyncio.run(_collected(model, messages))),
}


@pytest.fixture(params=ASK)
def ask(request: pytest.FixtureRequest) -> Callable[[ChatModel, Any], AIMessage]:
    return ASK[request.param]


@pytest.mark.parametrize("split", range(2))
def test_text_calls_and_usage_come_back(model: ChatModel, conversation: Conversation, ask: Any, split: int) -> None:
    calls = [
        {"id": "c1", "name": "add", "args": {"a": 1, "wörter": "日本\n🙂"}},
        {"id": "c2", "name": "add", "args": {}},
    ]
    conversation.will_say({"text": "Grüße, 日本 🙂", "tool_calls": calls, "usage": (12, 7), "split": split})

    answer = ask(model, "hi")

    assert answer.text == "Grüße, 日本 🙂"
    assert [(call["id"], call["name"], call["args"]) for call in answer.tool_calls] == [
        ("c1", "add", {"a": 1, "wörter": "日本\n🙂"}),
        ("c2", "add", {}),
    ]
    assert answer.usage_metadata == {"input_tokens": 12, "output_tokens": 7, "total_tokens": 19}
    assert answer.response_metadata["model_provider"] == model.provider
    assert answer.response_metadata["finish_reason"] in ("tool_calls", "tool_use")
    assert conversation.refused == []


def test_arguments_that_are_no_json_are_an_invalid_call(conversation: Conversation) -> None:
    model = ChatOpenAI("gpt", api_key=conversation.key, base_url=f"{conversation.url}/v1")
    bad = {"text": "", "tool_calls": [{"id": "c1", "name": "add", "args": "{a: 1"}]}
    conversation.will_say(bad, {"text": "sorry"})

    answer = model.invoke("hi")
    result = ToolMessage("not JSON", tool_call_id="c1", status="error")
    again = model.invoke([HumanMessage("hi"), answer, result])

    assert answer.tool_calls == []
    assert [call["args"] for call in answer.invalid_tool_calls] == ["{a: 1"]
    assert (again.text, conversation.refused) == ("sorry", [])


def _call(id: str, **args: Any) -> ToolCall:
    return tool_call(name="add", args=args, id=id)


HISTORIES: dict[str, list[Any]] = {
    "a round of tools": [
        SystemMessage("Be brief."),
        HumanMessage("1 + 1?", name="Ada Lovelace"),
        AIMessage("", tool_calls=[{"name": "add", "args": {"a": 1}, "id": "c1"}, _call("c2")]),
        ToolMessage("2", tool_call_id="c1"),
        ToolMessage("failed", tool_call_id="c2", status="error"),
        HumanMessage("And?"),
    ],
    "an empty result": [
        HumanMessage("go"),
        AIMessage("", tool_calls=[_call("c1")]),
        ToolMessage("", tool_call_id="c1"),
    ],
    "blank texts": [
        SystemMessage(""),
        HumanMessage("hi"),
        AIMessage(""),
        HumanMessage([{"type": "text", "text": "ho"}]),
    ],
    "ids of other providers": [
        HumanMessage("go"),
        AIMessage("", tool_calls=[{"name": "add", "args": {}, "id": "chat:" + "x" * 60}]),
        ToolMessage("2", tool_call_id="chat:" + "x" * 60),
    ],
    "thoughts of other providers": [
        HumanMessage("go"),
        AIMessage([{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Yes."}]),
        HumanMessage("on"),
    ],
    "a system message in the middle": [
        HumanMessage("hi"),
        AIMessage("ho"),
        SystemMessage("Hurry."),
        HumanMessage("go"),
    ],
    "an unreadable call": [
        HumanMessage("go"),
        AIMessage("", invalid_tool_calls=[{"name": "add", "args": "{a", "id": "c1", "error": "no JSON"}]),
        ToolMessage("no JSON", tool_call_id="c1", status="error"),
    ],
    "a picture": [
        HumanMessage(["What is this?", {"type": "image", "base64": "aGk=", "mime_type": "image/png"}]),
    ],
    "a picture from a tool": [
        HumanMessage("go"),
        AIMessage("", tool_calls=[_call("c1")]),
        ToolMessage([{"type": "image", "base64": "aGk=", "mime_type": "image/png"}], tool_call_id="c1", name="add"),
    ],
    "a last word that ends in a space": [HumanMessage("go on"), AIMessage("Once upon a time ")],
    "calls twice in a row": [
        HumanMessage("go"),
        AIMessage("", tool_calls=[_call("c1")]),
        ToolMessage("1", tool_call_id="c1"),
        AIMessage("Again.", tool_calls=[_call("c2")]),
        ToolMessage("2", tool_call_id="c2"),
    ],
}


@pytest.mark.parametrize("history", HISTORIES)
def test_every_history_is_taken(model: ChatModel, conversation: Conversation, history: str) -> None:
    conversation.will_say({"text": "ok"})

    assert model.bind_tools([ADD]).invoke(HISTORIES[history]).text == "ok"
    assert conversation.refused == []


def test_a_picture_from_a_tool_reaches_openai_behind_the_results(conversation: Conversation) -> None:
    model = ChatOpenAI("gpt", api_key=conversation.key, base_url=f"{conversation.url}/v1")
    conversation.will_say({"text": "ok"})

    model.invoke(HISTORIES["a picture from a tool"])

    *_, last = conversation.log[-1]["body"]["messages"]
    assert [part["type"] for part in last["content"]] == ["text", "image_url"]


@pytest.mark.parametrize(
    ("choice", "openai", "anthropic"),
    [
        ("any", "required", {"type": "any"}),
        ("auto", "auto", {"type": "auto"}),
        ("none", "none", {"type": "none"}),
        ("add", {"type": "function", "function": {"name": "add"}}, {"type": "tool", "name": "add"}),
    ],
)
def test_a_choice_of_tools(
    model: ChatModel, conversation: Conversation, choice: str, openai: Any, anthropic: Any
) -> None:
    conversation.will_say({"text": "ok"})

    model.bind_tools([ADD], tool_choice=choice).invoke("hi")

    assert conversation.log[-1]["body"]["tool_choice"] == (openai if model.provider == "openai" else anthropic)


def test_settings_go_out_even_where_the_client_does_not_know_them(model: ChatModel, conversation: Conversation) -> None:
    conversation.will_say({"text": "ok"})

    model.bind(temperature=0.5, top_p=0.9).invoke("hi", stop=["END"])

    body = conversation.log[-1]["body"]
    assert (body["temperature"], body["top_p"]) == (0.5, 0.9)
    assert (body.get("stop") or body.get("stop_sequences")) == ["END"]
    with pytest.raises(ModelInvalidRequestError, match="temprature"):
        model.invoke("hi", temprature=0.5)


@pytest.mark.parametrize("required", [["a", "b"], ["a"]])
def test_an_output_schema(model: ChatModel, conversation: Conversation, required: list[str]) -> None:
    properties = {"a": {"type": "integer"}, "b": {"type": "object", "properties": {}, "default": {}}}
    schema = {"type": "object", "properties": properties, "required": required}
    conversation.will_say({"text": '{"a": 1}'})

    answer = model.generate(
        ChatRequest(messages=[HumanMessage("hi")], output=OutputSchema(name="answer", schema=schema))
    )

    assert answer.text == '{"a": 1}'
    assert conversation.refused == []


FAILURES: dict[str, tuple[dict[str, Any], type[ModelError], bool]] = {
    "authentication": ({"status": 401}, ModelAuthenticationError, False),
    "no such model": ({"status": 404}, ModelNotFoundError, False),
    "bad request": ({"status": 400, "message": "no"}, ModelInvalidRequestError, False),
    "too long": ({"status": 400, "message": "prompt is too long: 9 > 8"}, ContextOverflowError, False),
    "too long, by code": (
        {"status": 400, "message": "x", "code": "context_length_exceeded"},
        ContextOverflowError,
        False,
    ),
    "rate limit": ({"status": 429, "retry_after": 3}, ModelRateLimitError, True),
    "server": ({"status": 500}, ModelAPIError, True),
    "overloaded": ({"status": 529}, ModelAPIError, True),
}


@pytest.mark.parametrize("way", ["invoke", "astream"])
@pytest.mark.parametrize("failure", FAILURES)
def test_failures_have_our_names(model: ChatModel, conversation: Conversation, way: str, failure: str) -> None:
    error, expected, retryable = FAILURES[failure]
    conversation.will_say({"error": error})

    with pytest.raises(ModelError) as raised:
        ASK[way](model, "hi")

    assert type(raised.value) is expected
    assert raised.value.is_retryable is retryable
    assert raised.value.status == error["status"]
    assert raised.value.retry_after == error.get("retry_after")
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("cut", [1, 3])
def test_a_stream_that_breaks_off_is_an_error(model: ChatModel, conversation: Conversation, way: str, cut: int) -> None:
    conversation.will_say({"text": "a long story about many things", "cut": cut})

    with pytest.raises(ModelConnectionError):
        ASK[way](model, "hi")


def test_nobody_there_is_a_connection_error(ask: Any) -> None:
    model = ChatOpenAI("gpt", api_key="x", base_url="http://127.0.0.1:9/v1", max_retries=0)

    with pytest.raises(ModelConnectionError):
        ask(model, "hi")


@pytest.mark.parametrize("way", ["invoke", "astream"])
def test_thoughts_come_back_and_go_out_again_with_their_signature(conversation: Conversation, way: str) -> None:
    model = ChatAnthropic("claude", api_key=conversation.key, base_url=conversation.url, max_tokens=4000)
    thinking = model.bind(thinking={"type": "enabled", "budget_tokens": 2000}).bind_tools([ADD])
    call = {"id": "toolu_1", "name": "add", "args": {"a": 1}}
    conversation.will_say({"thinking": "Let me add.", "text": "So:", "tool_calls": [call]}, {"text": "2"})

    first = ASK[way](thinking, "1 + 1?")
    second = thinking.invoke([HumanMessage("1 + 1?"), first, ToolMessage("2", tool_call_id="toolu_1")])

    assert [block["type"] for block in first.content_blocks] == ["reasoning", "text", "tool_call"]
    assert (first.text, second.text, conversation.refused) == ("So:", "2", [])
    thought = conversation.log[-1]["body"]["messages"][1]["content"][0]
    assert thought == {"type": "thinking", "thinking": "Let me add.", "signature": "sig-1"}


def test_a_refusal_is_text_but_no_structured_output(conversation: Conversation) -> None:
    model = ChatOpenAI("gpt", api_key=conversation.key, base_url=f"{conversation.url}/v1")
    conversation.will_say({"refusal": "I would rather not."}, {"refusal": "I would rather not."})
    schema = OutputSchema(name="answer", schema={"type": "object", "properties": {}})

    answer = model.invoke("hi")
    with pytest.raises(ModelRefusalError, match="rather not"):
        model.generate(ChatRequest(messages=[HumanMessage("hi")], output=schema))

    assert (answer.text, answer.additional_kwargs["refusal"]) == ("I would rather not.", "I would rather not.")


def test_init_chat_model_finds_the_adapter(conversation: Conversation) -> None:
    conversation.will_say({"text": "a"}, {"text": "b"})
    openai = init_chat_model("openai:gpt", api_key=conversation.key, base_url=f"{conversation.url}/v1")
    anthropic = init_chat_model("claude-x", api_key=conversation.key, base_url=conversation.url)

    assert (type(openai), openai.invoke("hi").text) == (ChatOpenAI, "a")
    assert (type(anthropic), anthropic.invoke("hi").text) == (ChatAnthropic, "b")


def test_one_model_serves_several_event_loops(model: ChatModel, conversation: Conversation) -> None:
    conversation.will_say(*({"text": str(n)} for n in range(4)))

    async def twice() -> list[str]:
        return [answer.text for answer in await asyncio.gather(model.ainvoke("hi"), model.ainvoke("hi"))]

    assert sorted(asyncio.run(twice()) + asyncio.run(twice())) == ["0", "1", "2", "3"]


@pytest.mark.parametrize("name", ["openai:gpt", "anthropic:claude"])
def test_a_missing_key_is_said_the_same_way(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(variable, raising=False)

    with pytest.raises(ModelAuthenticationError, match="API_KEY") as raised:
        init_chat_model(name).invoke("hi")

    assert not raised.value.is_retryable
