"""Messages as objects: what constructors take, how they compare, copy, dump and print."""

from __future__ import annotations

import copy
import json
import pickle
import uuid
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from pregel.errors import InvalidInputError
from pregel.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
    messages_to_dict,
    tool_call_chunk,
)
from tests.unit.few_messages import CALL

EVERY: list[BaseMessage] = [
    HumanMessage("hi", id="1", name="ann"),
    SystemMessage("be kind", additional_kwargs={"a": 1}),
    AIMessage("so", tool_calls=[CALL], usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}),
    ToolMessage("42", tool_call_id="c1", artifact={"rows": [1]}, status="error"),
    FunctionMessage("42", name="f"),
    ChatMessage("x", role="judge"),
    RemoveMessage("1"),
    AIMessageChunk("a", tool_call_chunks=[tool_call_chunk(name="f", args='{"a"', id="1", index=0)]),
    HumanMessage("kept", mood="good"),
]


# -- constructing ----------------------------------------------------------------------------------------------------


def test_content_comes_first_and_the_rest_by_keyword() -> None:
    message = HumanMessage("hi", name="ann", id="1")

    assert ("human", "hi", "ann", "1", {}, {}) == (
        message.type,
        message.content,
        message.name,
        message.id,
        message.additional_kwargs,
        message.response_metadata,
    )


@pytest.mark.parametrize("content", [None, 5, [1], {"type": "text"}])
def test_content_that_is_neither_text_nor_blocks_is_refused(content: Any) -> None:
    with pytest.raises(InvalidInputError, match="content of a HumanMessage"):
        HumanMessage(content)


def test_content_and_metadata_are_copied_one_level() -> None:
    content: list[str | dict[str, Any]] = ["a"]
    extras = {"k": 1}
    message = HumanMessage(content, additional_kwargs=extras)

    content.append("b")
    extras["k"] = 2

    assert (["a"], {"k": 1}) == (message.content, message.additional_kwargs)


def test_an_id_that_is_a_number_becomes_text() -> None:
    assert "5" == HumanMessage("a", id=5).id


def test_the_own_type_may_be_passed_and_another_may_not() -> None:
    assert HumanMessage("a", type="human") == HumanMessage("a")
    with pytest.raises(InvalidInputError, match="type of a HumanMessage is 'human'"):
        HumanMessage("a", type="ai")


def test_an_unknown_keyword_can_be_read_and_an_unknown_attribute_cannot_be_set() -> None:
    message = HumanMessage("a", mood="good")

    assert "good" == message.mood
    with pytest.raises(AttributeError):
        message.contnet = "typo"  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        _ = message.missing


def test_tool_calls_get_their_type_and_lose_unknown_keys() -> None:
    message = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": None, "extras": 1}])

    assert [{"name": "f", "args": {}, "id": None, "type": "tool_call"}] == message.tool_calls


@pytest.mark.parametrize(
    "call",
    [{"name": "f", "args": {}}, {"name": "f", "args": "{}", "id": "1"}, {"name": "f", "args": {}, "id": 1}, "f"],
)
def test_a_tool_call_of_the_wrong_shape_is_refused(call: Any) -> None:
    with pytest.raises(InvalidInputError, match="tool call"):
        AIMessage("", tool_calls=[call])


def test_raw_openai_calls_are_parsed_and_broken_ones_kept_as_invalid() -> None:
    raw = [
        {"id": "1", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "2", "function": {"name": "f", "arguments": "null"}},
        {"id": "3", "function": {"name": "f", "arguments": "{broken"}},
        {"id": "4", "function": {"name": "f", "arguments": "[1]"}},
        {"id": "5"},
    ]
    message = AIMessage("", additional_kwargs={"tool_calls": raw})

    assert [("1", {"x": 1}), ("2", {})] == [(call["id"], call["args"]) for call in message.tool_calls]
    assert [("3", "{broken"), ("4", "[1]")] == [(call["id"], call["args"]) for call in message.invalid_tool_calls]
    assert all(call["error"] for call in message.invalid_tool_calls)


def test_calls_among_content_blocks_become_tool_calls() -> None:
    message = AIMessage(content_blocks=[{"type": "text", "text": "q"}, CALL])

    assert [CALL] == message.tool_calls


def test_a_tool_message_shows_other_content_with_str() -> None:
    assert "{'a': 1}" == ToolMessage({"a": 1}, tool_call_id="1").content
    assert ["1", {"a": 1}, "x"] == ToolMessage((1, {"a": 1}, "x"), tool_call_id="1").content


def test_a_tool_call_id_may_be_anything_that_str_can_write() -> None:
    call_id = uuid.uuid4()

    assert str(call_id) == ToolMessage("x", tool_call_id=call_id).tool_call_id


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: ToolMessage("x"), "tool_call_id"),
        (lambda: ToolMessage("x", tool_call_id="1", status="bad"), "status"),  # type: ignore[arg-type]
        (lambda: ToolMessage(None, tool_call_id="1"), "content"),
        (lambda: FunctionMessage("x"), "name"),
        (lambda: ChatMessage("x"), "role"),
        (lambda: RemoveMessage(), "id"),
        (lambda: RemoveMessage("1", content="x"), "content"),
        (lambda: HumanMessage("x", name=5), "name"),  # type: ignore[arg-type]
        (lambda: HumanMessage("x", id=[]), "id"),  # type: ignore[arg-type]
        (lambda: AIMessage("x", tool_calls=None), "tool_calls"),  # type: ignore[arg-type]
    ],
)
def test_what_a_message_cannot_do_without_is_asked_for(make: Any, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        make()


# -- reading, comparing, copying -------------------------------------------------------------------------------------


def test_text_joins_texts_and_text_blocks_and_leaves_the_rest_out() -> None:
    message = HumanMessage([{"type": "text", "text": "a"}, "b", {"type": "image", "url": "u"}])

    assert "ab" == message.text


def test_messages_are_equal_field_by_field_and_by_class() -> None:
    assert HumanMessage("a", id="1") == HumanMessage("a", id="1")
    assert HumanMessage("a", id="1") != HumanMessage("a", id="2")
    assert HumanMessage("a", mood="good") != HumanMessage("a", mood="bad")
    assert HumanMessage("a") != SystemMessage("a")
    assert AIMessage("a") != AIMessageChunk("a")
    with pytest.raises(TypeError, match="unhashable"):
        hash(HumanMessage("a"))


@pytest.mark.parametrize("message", EVERY, ids=lambda message: type(message).__name__)
def test_every_message_comes_back_equal(message: BaseMessage) -> None:
    back = [
        type(message).from_fields(message.to_fields()),
        type(message)(**message.model_dump()),
        messages_from_dict(json.loads(json.dumps([message_to_dict(message)])))[0],
        pickle.loads(pickle.dumps(message)),
        copy.copy(message),
        copy.deepcopy(message),
        message.model_copy(),
        message.model_copy(deep=True),
    ]

    assert [message] * len(back) == back


def test_the_stored_fields_leave_out_what_is_default() -> None:
    assert {"content": "a"} == AIMessage("a").to_fields()
    assert {"content": "a", "tool_call_id": "1"} == ToolMessage("a", tool_call_id="1").to_fields()


def test_an_empty_artifact_is_not_lost() -> None:
    message = ToolMessage("a", tool_call_id="1", artifact={})

    assert {} == ToolMessage.from_fields(message.to_fields()).artifact


def test_a_dump_shares_nothing_and_a_copy_shares_its_content() -> None:
    message = HumanMessage([{"type": "text", "text": "a"}])
    dump, same = message.model_dump(), message.model_copy(update={"id": "1"})

    dump["content"][0]["text"] = "changed"

    assert (None, "1") == (message.id, same.id)
    assert "a" == message.text
    assert same.content is message.content


def test_messages_of_an_unknown_type_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="'alien' is no type"):
        messages_from_dict([{"type": "alien", "data": {}}])


def test_dicts_of_messages_hold_type_and_data() -> None:
    assert [("ai", "a")] == [(one["type"], one["data"]["content"]) for one in messages_to_dict([AIMessage("a")])]


def test_a_repr_shows_what_is_set() -> None:
    assert "HumanMessage(content='a', id='1', mood='good')" == repr(HumanMessage("a", id="1", mood="good"))


def test_a_person_reads_title_name_content_and_calls(capsys: pytest.CaptureFixture[str]) -> None:
    bad = {"name": "g", "args": "{", "id": "c2", "error": "cut off"}
    AIMessage("so", name="bob", tool_calls=[CALL], invalid_tool_calls=[bad]).pretty_print()

    lines = capsys.readouterr().out.splitlines()
    assert "================================== Ai Message ==================================" == lines[0]
    assert ["Name: bob", "", "so", "Tool Calls:", "  look (c1)", " Call ID: c1", "  Args:", "    x: 1"] == lines[1:9]
    assert ["Invalid Tool Calls:", "  g (c2)", " Call ID: c2", "  Error: cut off", "  Args:", "    {"] == lines[9:]


def test_pydantic_state_can_hold_messages() -> None:
    class State(BaseModel):
        messages: list[AnyMessage]

    given: list[Any] = [HumanMessage("x"), {"type": "ai", "content": "y", "tool_calls": [CALL]}]
    state = State(messages=given)

    assert [HumanMessage("x"), AIMessage("y", tool_calls=[CALL])] == state.messages
    assert state == State.model_validate_json(state.model_dump_json())
    assert "HumanMessage" in str(State.model_json_schema())
    with pytest.raises(ValidationError):
        State(messages=["x"])  # type: ignore[list-item]
