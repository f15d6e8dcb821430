"""What becomes a message, and the role dicts that messages become."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pregel.errors import InvalidInputError
from pregel.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    MessageCoercionError,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)
from tests.unit.few_messages import CALL, PNG

# -- conversion ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a", HumanMessage("a")),
        (("user", "a"), HumanMessage("a")),
        (["ai", "a"], AIMessage("a")),
        ({"role": "user", "content": "a", "name": "n", "id": "1"}, HumanMessage("a", name="n", id="1")),
        ({"type": "human", "content": "a"}, HumanMessage("a")),
        ({"role": "user", "content": "a", "foo": 2}, HumanMessage("a", additional_kwargs={"foo": 2})),
        ({"role": "assistant", "content": None}, AIMessage("")),
        (
            {"role": "developer", "content": "a"},
            SystemMessage("a", additional_kwargs={"__openai_role__": "developer"}),
        ),
        (
            {"role": "assistant", "content": "", "tool_calls": [{"name": "look", "args": {"x": 1}, "id": "c1"}]},
            AIMessage("", tool_calls=[CALL]),
        ),
        (
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": '{"x": 1}'}}],
                "response_metadata": {"m": 1},
            },
            AIMessage("", tool_calls=[CALL], response_metadata={"m": 1}),
        ),
        (
            {"role": "tool", "content": "a", "tool_call_id": "1", "artifact": 3, "status": "error"},
            ToolMessage("a", tool_call_id="1", artifact=3, status="error"),
        ),
        ({"role": "function", "content": "a", "name": "f"}, FunctionMessage("a", name="f")),
        ({"role": "remove", "content": "", "id": "1"}, RemoveMessage("1")),
        (
            {"lc": 1, "type": "constructor", "id": ["langchain", "AIMessage"], "kwargs": {"content": "a"}},
            AIMessage("a"),
        ),
    ],
)
def test_message_like_things_become_messages(given: Any, expected: BaseMessage) -> None:
    assert [expected] == convert_to_messages([given])


def test_a_message_stays_the_object_it_is() -> None:
    message = HumanMessage("a")

    assert convert_to_messages([message])[0] is message


@pytest.mark.parametrize("lone", ["abc", {"role": "user", "content": "abc"}, HumanMessage("abc")])
def test_a_lone_message_is_a_list_of_one(lone: Any) -> None:
    assert [HumanMessage("abc")] == convert_to_messages(lone)


@pytest.mark.parametrize("given", [5, None, ["ai"], ("a", "b", "c"), b"x", object()])
def test_what_cannot_be_a_message_is_named_in_the_error(given: Any) -> None:
    with pytest.raises(MessageCoercionError) as caught:
        convert_to_messages([given])

    assert isinstance(caught.value, NotImplementedError)


@pytest.mark.parametrize(
    "given", [("alien", "a"), {"role": "alien", "content": "a"}, {"content": "a"}, {"role": "user"}, ("tool", "x")]
)
def test_a_wrong_role_or_a_missing_key_is_a_value_error(given: Any) -> None:
    with pytest.raises(InvalidInputError):
        convert_to_messages([given])


def test_arguments_that_are_no_json_are_refused_when_a_dict_is_read() -> None:
    call = {"id": "c1", "function": {"name": "look", "arguments": "{broken"}}

    with pytest.raises(json.JSONDecodeError):
        convert_to_messages([{"role": "assistant", "content": "", "tool_calls": [call]}])


# -- openai ----------------------------------------------------------------------------------------------------------


def test_messages_become_role_dicts() -> None:
    messages: list[BaseMessage] = [
        SystemMessage("s", additional_kwargs={"__openai_role__": "developer"}),
        HumanMessage("a", name="ann", id="1"),
        AIMessage("", tool_calls=[CALL], additional_kwargs={"refusal": "no"}),
        ToolMessage("r", tool_call_id="c1", name="look"),
        ChatMessage("x", role="judge"),
    ]

    function = {"name": "look", "arguments": '{"x": 1}'}
    assert [
        {"role": "developer", "content": "s"},
        {"role": "user", "name": "ann", "id": "1", "content": "a"},
        {
            "role": "assistant",
            "tool_calls": [{"type": "function", "id": "c1", "function": function}],
            "refusal": "no",
            "content": "",
        },
        {"role": "tool", "name": "look", "tool_call_id": "c1", "content": "r"},
        {"role": "judge", "content": "x"},
    ] == convert_to_openai_messages(messages, include_id=True)


def test_a_lone_message_becomes_one_dict() -> None:
    assert {"role": "user", "content": "a"} == convert_to_openai_messages(HumanMessage("a"))
    assert {"role": "user", "content": "a"} == convert_to_openai_messages(("user", "a"))


@pytest.mark.parametrize(
    ("content", "string", "block"),
    [
        ("a", "a", [{"type": "text", "text": "a"}]),
        ("", "", []),
        ([], "", []),
        (["a", {"type": "text", "text": "b"}], "a\nb", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        ([{"type": "json", "json": {"a": 1}}], '{"a": 1}', [{"type": "text", "text": '{"a": 1}'}]),
    ],
)
def test_text_is_a_str_or_blocks_as_asked(content: Any, string: Any, block: Any) -> None:
    assert [{"role": "user", "content": string}] == convert_to_openai_messages([HumanMessage(content)])
    blocks = convert_to_openai_messages([HumanMessage(content)], text_format="block")
    assert [{"role": "user", "content": block}] == blocks


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (PNG, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}),
        ({"type": "image", "url": "u"}, {"type": "image_url", "image_url": {"url": "u"}}),
        (
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
        ),
        (
            {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
            {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
        ),
        (
            {"type": "audio", "base64": "AA", "mime_type": "audio/wav"},
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
        ),
        ({"type": "file", "file_id": "f"}, {"type": "file", "file": {"file_id": "f"}}),
        (
            {"type": "file", "base64": "AA", "mime_type": "application/pdf", "filename": "a.pdf"},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"}},
        ),
        ({"type": "strange"}, {"type": "strange"}),
    ],
)
def test_blocks_take_the_form_openai_reads(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert [{"role": "user", "content": [expected]}] == convert_to_openai_messages([HumanMessage([given])])


def test_a_block_without_a_form_is_refused_when_asked() -> None:
    with pytest.raises(InvalidInputError, match="strange"):
        convert_to_openai_messages([HumanMessage([{"type": "strange"}])], pass_through_unknown_blocks=False)


def test_calls_in_the_content_become_tool_calls_once() -> None:
    content: list[str | dict[str, Any]] = [
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"x": 1}},
    ]

    for message in (AIMessage(content), AIMessage(content, tool_calls=[CALL])):
        (found,) = convert_to_openai_messages([message])
        assert isinstance(found, dict)
        assert ("a", ["c1"]) == (found["content"], [call["id"] for call in found["tool_calls"]])


def test_tool_results_come_as_messages_before_what_follows_them() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "r"}]}

    assert [
        {"role": "tool", "tool_call_id": "c1", "content": "r"},
        {"role": "user", "content": "next"},
    ] == convert_to_openai_messages([HumanMessage([result, {"type": "text", "text": "next"}])])


def test_a_removal_has_no_role_and_a_format_must_be_known() -> None:
    with pytest.raises(InvalidInputError, match="no role"):
        convert_to_openai_messages([RemoveMessage("1")])
    with pytest.raises(InvalidInputError, match="text_format"):
        convert_to_openai_messages(["a"], text_format="xml")  # type: ignore[arg-type]
