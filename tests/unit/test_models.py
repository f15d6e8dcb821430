"""A chat model: what its face does with the methods of an adapter, and the scripted one."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from pregel.agents.models import (
    ChatModel,
    ChatRequest,
    ModelRateLimitError,
    ScriptedModel,
    ToolSpec,
    Turn,
    as_model,
    call_tool,
    call_tools,
    init_chat_model,
)
from pregel.agents.models.base import whole_answer
from pregel.agents.structured_output import StructuredOutputValidationError
from pregel.errors import AsyncOnlyError, DefinitionError, InvalidInputError
from pregel.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage


class Echo(ChatModel):
    """The least that an adapter can be."""

    def generate(self, request: ChatRequest) -> AIMessage:
        return AIMessage(f"{len(request.messages)} {sorted(request.settings)} {request.tool_choice}")


def lookup(query: str) -> str:
    """Look it up."""
    return query


def test_one_method_is_enough() -> None:
    model = Echo()

    assert "1 ['stop', 'temperature'] None" == model.bind(temperature=0).invoke("hi", stop=["x"]).text
    assert "1 [] None" == asyncio.run(model.ainvoke([("user", "hi")])).text
    assert ["1 [] None"] == [chunk.text for chunk in model.stream("hi")]


def test_bound_tools_are_part_of_the_request() -> None:
    model = ScriptedModel(["ok"])
    provided = {"type": "web_search"}

    bound = model.bind_tools([lookup, provided], tool_choice="any")
    bound.invoke([SystemMessage("be"), HumanMessage("hi")])

    (request,) = model.requests
    spec = request.tools[0]
    assert isinstance(spec, ToolSpec)
    assert ("lookup", "Look it up.", ["query"]) == (spec.name, spec.description, spec.parameters["required"])
    assert (provided, "any", ()) == (request.tools[1], request.tool_choice, model.bound.tools)


def test_a_stream_adds_up_to_the_answer() -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    answer = AIMessage(
        "a b  c", tool_calls=call_tool("f", {"x": [1, "é"]}, id="1").tool_calls, usage_metadata=usage, id="m1"
    )
    model = ScriptedModel([answer], loop=True)

    chunks = list(model.stream("hi"))

    assert answer == whole_answer(chunks)
    assert (True, "last") == (len(chunks) > 5, chunks[-1].chunk_position)
    assert answer == model.invoke("hi")


def test_pieces_share_an_id() -> None:
    async def ids() -> set[Any]:
        return {chunk.id async for chunk in ScriptedModel(["a b c"]).astream("hi")}

    assert 1 == len(asyncio.run(ids()))
    assert 1 == len({chunk.id for chunk in ScriptedModel(["a b c"]).stream("hi")})


def test_a_script_raises_streams_and_answers_by_turn() -> None:
    model = ScriptedModel([ModelRateLimitError("slow down"), Turn(chunks=[AIMessageChunk("x")], error=OSError("cut"))])
    with pytest.raises(ModelRateLimitError):
        model.invoke("hi")
    stream = model.stream("hi")
    assert "x" == next(stream).text
    with pytest.raises(OSError, match="cut"):
        next(stream)
    with pytest.raises(InvalidInputError, match="2 lines"):
        model.invoke("hi")

    again = ScriptedModel(["first", "second"], by_turn=True)
    assert ["second", "second", "first"] == [
        again.invoke(given).text for given in (["hi", AIMessage("first")], ["hi", AIMessage("x")], "hi")
    ]
    assert "2 messages" == ScriptedModel(lambda request: f"{len(request.messages)} messages").invoke(["a", "b"]).text


async def slowly(request: ChatRequest) -> str:
    await asyncio.sleep(0)
    return f"{len(request.messages)} awaited"


@pytest.mark.parametrize("script", [slowly, [slowly], [lambda request: slowly(request)]], ids=["whole", "line", "call"])
def test_a_coroutine_function_in_a_script_answers_where_it_is_awaited(script: Any) -> None:
    async def streamed() -> str:
        return "".join([chunk.text async for chunk in ScriptedModel(script).astream("hi")])

    assert "1 awaited" == asyncio.run(ScriptedModel(script).ainvoke("hi")).text
    assert "1 awaited" == asyncio.run(streamed())
    with pytest.raises(AsyncOnlyError, match=r"awaited at <function .*\n?.*ainvoke"):
        ScriptedModel(script).invoke("hi")
    with pytest.raises(AsyncOnlyError):
        list(ScriptedModel(script).stream("hi"))


@pytest.mark.parametrize("streams", [False, True])
def test_a_function_in_a_script_does_not_hold_up_the_loop(streams: bool) -> None:
    there, go = threading.Event(), threading.Event()

    def wait(request: ChatRequest) -> str:
        there.set()
        return f"went {go.wait(60)}"

    async def ask() -> str:
        model = ScriptedModel(wait)
        if streams:
            return "".join([chunk.text async for chunk in model.astream("hi")])
        return (await model.ainvoke("hi")).text

    async def both() -> str:
        asked = asyncio.create_task(ask())
        assert await asyncio.to_thread(there.wait, 60)
        go.set()  # by the loop, while the function waits
        return await asked

    assert "went True" == asyncio.run(both())


def test_what_is_no_answer_of_a_script_is_a_named_error() -> None:
    def pieces(request: ChatRequest) -> Any:
        yield "a"

    async def apieces(request: ChatRequest) -> Any:
        yield "a"

    def nothing(request: ChatRequest) -> Any:
        return None

    for generating in (pieces, apieces):
        with pytest.raises(DefinitionError, match="generator function"):
            ScriptedModel([generating])
    with pytest.raises(InvalidInputError, match="gave None, which is no answer"):
        ScriptedModel([nothing]).invoke("hi")
    with pytest.raises(InvalidInputError, match="gave HumanMessage"):
        asyncio.run(ScriptedModel([HumanMessage("hi")]).ainvoke("hi"))  # type: ignore[list-item]


def test_two_calls_in_one_answer() -> None:
    answer = call_tools(call_tool("a", id="1"), call_tool("b", {"x": 1}, id="2"))

    assert [("a", {}, "1"), ("b", {"x": 1}, "2")] == [
        (call["name"], call["args"], call["id"]) for call in answer.tool_calls
    ]


class Point(BaseModel):
    """A point."""

    x: int


def test_structured_output_through_a_tool_and_through_the_provider() -> None:
    by_tool = ScriptedModel([call_tool("Point", {"x": 1}), call_tool("Point", {"x": "no"}), "words"])
    structured = by_tool.with_structured_output(Point)
    assert Point(x=1) == structured.invoke("hi")
    with pytest.raises(StructuredOutputValidationError, match="Point"):
        structured.invoke("hi")
    assert structured.invoke("hi") is None
    assert ("any", "Point") == (by_tool.requests[0].tool_choice, by_tool.requests[0].tools[0].name)  # type: ignore[union-attr]

    by_provider = ScriptedModel(['{"x": 2}', "words"], profile={"structured_output": True})
    raw = by_provider.with_structured_output(Point, include_raw=True)
    assert Point(x=2) == raw.invoke("hi")["parsed"]
    assert isinstance(raw.invoke("hi")["parsing_error"], StructuredOutputValidationError)
    assert by_provider.requests[0].output is not None
    assert "Point" == by_provider.requests[0].output.name


class Shaped:
    """A foreign model: only the shape of one."""

    def __init__(self) -> None:
        self.tools: Any = None

    def bind_tools(self, tools: Any, **settings: Any) -> Shaped:
        self.tools = (tools, settings)
        return self

    def bind(self, **settings: Any) -> Shaped:
        return self

    def invoke(self, messages: Any, config: Any = None) -> Any:
        return AIMessage(f"{len(messages)} of {type(messages[0]).__name__}")


def test_a_foreign_model_is_taken_by_its_shape() -> None:
    theirs = Shaped()
    model = as_model(theirs)

    assert "1 of HumanMessage" == model.bind_tools([lookup], tool_choice="any").invoke("hi").text
    ((spec,), settings) = theirs.tools
    assert ("lookup", {"tool_choice": "any"}) == (spec["function"]["name"], settings)
    assert "1 of HumanMessage" == asyncio.run(model.ainvoke("hi")).text
    assert ["1 of HumanMessage"] == [chunk.text for chunk in model.stream("hi")]


def test_what_is_no_model_is_refused() -> None:
    with pytest.raises(DefinitionError, match="no chat model"):
        as_model(3)
    with pytest.raises(DefinitionError, match="No adapter"):
        init_chat_model("nobody:knows")
