"""Messages as objects: what constructors take, how they compare, copy, dump, print, convert and add up."""

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
    ChatMessageChunk,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    MessageCoercionError,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    ToolMessageChunk,
    UsageMetadata,
    convert_to_messages,
    convert_to_openai_messages,
    count_tokens_approximately,
    filter_messages,
    get_buffer_string,
    merge_message_runs,
    message_chunk_to_message,
    message_to_dict,
    messages_from_dict,
    messages_to_dict,
    tool_call,
    tool_call_chunk,
    trim_messages,
)
from pregel.messages.calls import parse_partial_json

CALL: ToolCall = {"name": "look", "args": {"x": 1}, "id": "c1", "type": "tool_call"}
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


# -- content blocks --------------------------------------------------------------------------------------------------

PNG = {"type": "image", "base64": "AA==", "mime_type": "image/png"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a", {"type": "text", "text": "a"}),
        ({"text": "a"}, {"type": "text", "text": "a"}),
        (PNG, PNG),
        ({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}, PNG),
        ({"type": "image_url", "image_url": "http://u"}, {"type": "image", "url": "http://u"}),
        (
            {"type": "image_url", "image_url": {"url": "http://u", "detail": "low"}},
            {"type": "image", "url": "http://u", "extras": {"detail": "low"}},
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
            {"type": "audio", "base64": "AA", "mime_type": "audio/wav"},
        ),
        ({"type": "file", "file": {"file_id": "f"}}, {"type": "file", "file_id": "f"}),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA", "filename": "a.pdf"}},
            {"type": "file", "base64": "AA", "mime_type": "application/pdf", "extras": {"filename": "a.pdf"}},
        ),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}, PNG),
        ({"type": "image", "source": {"type": "file", "file_id": "f"}}, {"type": "image", "file_id": "f"}),
        (
            {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}, "title": "t"},
            {"type": "text-plain", "text": "a", "mime_type": "text/plain", "extras": {"title": "t"}},
        ),
        ({"type": "document", "source": {"type": "url", "url": "u"}}, {"type": "file", "url": "u"}),
        ({"type": "image", "source_type": "base64", "data": "AA==", "mime_type": "image/png"}, PNG),
        ({"type": "image", "source_type": "id", "id": "f"}, {"type": "image", "file_id": "f"}),
        ({"type": "strange", "a": 1}, {"type": "non_standard", "value": {"type": "strange", "a": 1}}),
        ({"a": 1}, {"type": "non_standard", "value": {"a": 1}}),
        (
            {"type": "document", "source": {"type": "content", "content": []}},
            {"type": "non_standard", "value": {"type": "document", "source": {"type": "content", "content": []}}},
        ),
    ],
)
def test_content_is_read_as_standard_blocks(given: Any, expected: dict[str, Any]) -> None:
    assert [expected] == HumanMessage([given]).content_blocks


def test_text_is_one_block_and_empty_text_is_none() -> None:
    assert [{"type": "text", "text": "a"}] == HumanMessage("a").content_blocks
    assert [] == HumanMessage("").content_blocks


def test_an_answer_has_its_reasoning_first_and_its_calls_last() -> None:
    message = AIMessage("a", tool_calls=[CALL], additional_kwargs={"reasoning_content": "hm"})

    assert [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "a"}, CALL] == message.content_blocks


def test_what_a_provider_answers_is_translated_when_the_message_names_it() -> None:
    content: list[str | dict[str, Any]] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "a", "citations": [{"type": "page", "cited_text": "q", "page": 3}]},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ]

    citation = {"type": "citation", "cited_text": "q", "extras": {"type": "page", "page": 3}}
    assert [
        {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "s"}},
        {"type": "text", "text": "a", "annotations": [citation]},
        CALL,
    ] == AIMessage(content, tool_calls=[CALL], response_metadata={"model_provider": "anthropic"}).content_blocks
    assert "non_standard" == AIMessage(content).content_blocks[0]["type"]


def test_openai_reasoning_is_its_summary() -> None:
    reasoning = {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "sum"}]}
    message = AIMessage([reasoning], response_metadata={"model_provider": "openai"})

    assert [{"type": "reasoning", "id": "r", "reasoning": "sum"}] == message.content_blocks


def test_content_that_is_standard_already_is_returned_as_it_is() -> None:
    content: list[str | dict[str, Any]] = [{"type": "strange"}]

    assert content == AIMessage(content, response_metadata={"output_version": "v1"}).content_blocks


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


# -- pieces ----------------------------------------------------------------------------------------------------------


def chunk(args: str | None, **given: Any) -> AIMessageChunk:
    return AIMessageChunk("", tool_call_chunks=[tool_call_chunk(**{"args": args, "index": 0, **given})])


def test_pieces_of_text_join() -> None:
    assert AIMessageChunk("abc", id="1") == AIMessageChunk("a") + AIMessageChunk("b", id="1") + AIMessageChunk("c")


def test_many_pieces_can_be_added_at_once() -> None:
    assert AIMessageChunk("abc") == AIMessageChunk("a") + [AIMessageChunk("b"), AIMessageChunk("c")]  # noqa: RUF005


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("a", [{"type": "text", "text": "x"}], ["a", {"type": "text", "text": "x"}]),
        (["a"], "b", ["ab"]),
        ([{"type": "text", "text": "x"}], "b", [{"type": "text", "text": "x"}, "b"]),
        ([{"type": "text", "text": "x"}], "", [{"type": "text", "text": "x"}]),
        (
            [{"type": "text", "text": "x", "index": 0}],
            [{"type": "text", "text": "y", "index": 0}, {"type": "text", "text": "z", "index": 1}],
            [{"type": "text", "text": "xy", "index": 0}, {"type": "text", "text": "z", "index": 1}],
        ),
        (
            [{"type": "text", "text": "x", "index": "lc_t"}],
            [{"type": "text", "text": "y", "index": "lc_t"}],
            [{"type": "text", "text": "xy", "index": "lc_t"}],
        ),
    ],
)
def test_contents_of_pieces_are_merged(left: Any, right: Any, expected: Any) -> None:
    assert expected == (AIMessageChunk(left) + AIMessageChunk(right)).content


def test_a_call_is_put_together_from_its_pieces() -> None:
    whole = chunk('{"x"', name="look", id="c1") + chunk(": 1}")

    assert [CALL] == whole.tool_calls
    assert [{"name": "look", "args": '{"x": 1}', "id": "c1", "index": 0, "type": "tool_call_chunk"}] == [
        dict(piece) for piece in whole.tool_call_chunks
    ]


def test_pieces_with_two_ids_or_no_index_are_two_calls() -> None:
    assert 2 == len((chunk("{}", name="f", id="1") + chunk("{}", name="f", id="2")).tool_calls)
    assert 2 == len((chunk("{}", name="f", index=None) + chunk("{}", name="g", index=None)).tool_calls)


def test_a_call_that_is_cut_off_shows_what_is_there_so_far() -> None:
    assert [{"a": 1}] == [call["args"] for call in chunk('{"a": 1, "b', name="f").tool_calls]
    assert [{}] == [call["args"] for call in chunk(None, name="f").tool_calls]
    assert ["nonsense"] == [call["args"] for call in chunk("nonsense", name="f").invalid_tool_calls]
    assert ["[1"] == [call["args"] for call in chunk("[1", name="f").invalid_tool_calls]


def test_metadata_of_pieces_is_merged_key_by_key() -> None:
    left = AIMessageChunk("", response_metadata={"n": 1, "a": None, "model_provider": "p", "d": {"x": "y"}, "index": 1})
    right = AIMessageChunk("", response_metadata={"n": 2, "a": "b", "model_provider": "p", "d": {"x": "z"}, "index": 2})

    assert {"n": 3, "a": "b", "model_provider": "p", "d": {"x": "yz"}, "index": 2} == (left + right).response_metadata
    with pytest.raises(TypeError, match="'n'"):
        _ = left + AIMessageChunk("", response_metadata={"n": "2"})


def test_usage_of_pieces_adds_up_with_its_details() -> None:
    usage: UsageMetadata = {
        "input_tokens": 1,
        "output_tokens": 2,
        "total_tokens": 3,
        "input_token_details": {"cache_read": 1},
    }
    whole = AIMessageChunk("", usage_metadata=usage) + AIMessageChunk("", usage_metadata=usage) + AIMessageChunk("")

    assert {
        "input_tokens": 2,
        "output_tokens": 4,
        "total_tokens": 6,
        "input_token_details": {"cache_read": 2},
    } == whole.usage_metadata


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (("msg_1", "lc_run-1"), "msg_1"),
        (("lc_run-1", "msg_1"), "msg_1"),
        (("lc_x", "lc_run-1"), "lc_run-1"),
        (("a", "b"), "a"),
        ((None, None), None),
        ((None, "b"), "b"),
    ],
)
def test_the_id_that_says_most_is_kept(ids: tuple[str | None, str | None], expected: str | None) -> None:
    assert expected == (AIMessageChunk("", id=ids[0]) + AIMessageChunk("", id=ids[1])).id


def test_the_last_piece_ends_the_whole() -> None:
    assert "last" == (AIMessageChunk("") + AIMessageChunk("", chunk_position="last")).chunk_position


def test_tool_pieces_keep_a_failure_and_the_last_artifact() -> None:
    left = ToolMessageChunk("a", tool_call_id="1", artifact=1, status="error")
    right = ToolMessageChunk("b", tool_call_id="1", artifact=2)

    assert ToolMessageChunk("ab", tool_call_id="1", artifact=2, status="error") == left + right


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (ToolMessageChunk("a", tool_call_id="1"), ToolMessageChunk("a", tool_call_id="2")),
        (ChatMessageChunk("a", role="x"), ChatMessageChunk("a", role="y")),
    ],
)
def test_pieces_of_different_messages_do_not_add_up(left: Any, right: Any) -> None:
    with pytest.raises(ValueError, match="do not add up"):
        _ = left + right


def test_a_piece_and_a_whole_message_do_not_add_up() -> None:
    with pytest.raises(TypeError):
        _ = AIMessageChunk("a") + AIMessage("b")


def test_adding_changes_neither_piece() -> None:
    left, right = chunk('{"x"', name="look", id="c1"), chunk(": 1}")
    before = copy.deepcopy((left, right))

    _ = left + right

    assert before == (left, right)


def test_a_piece_becomes_the_whole_message_with_its_id() -> None:
    whole = message_chunk_to_message(chunk('{"x": 1}', name="look", id="c1").model_copy(update={"id": "m"}))

    assert AIMessage("", id="m", tool_calls=[CALL]) == whole
    assert HumanMessage("a") == message_chunk_to_message(HumanMessageChunk("a"))
    assert HumanMessage("a") == message_chunk_to_message(HumanMessage("a"))


def test_pieces_made_from_whole_calls_can_be_streamed_on() -> None:
    piece = AIMessageChunk("", tool_calls=[CALL])

    assert ('{"x": 1}', [CALL]) == (piece.tool_call_chunks[0]["args"], piece.tool_calls)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a"', {}),
        ('{"a": ', {}),
        ('{"a": tr', {}),
        ('{"a": 1', {"a": 1}),
        ('{"a": "x', {"a": "x"}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\\\', {"a": "x\\"}),
        ('{"a": "x\\u00', {"a": "x"}),
        ('{"a": "x\\"', {"a": 'x"'}),
        ('{"a": [1, 2, ', {"a": [1, 2]}),
        ('{"a": [1, {"b": "]', {"a": [1, {"b": "]"}]}),
        ('{"a": {"b": 1}, "c', {"a": {"b": 1}}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ("[1, 2", [1, 2]),
        ("null", None),
    ],
)
def test_json_that_ends_anywhere_gives_what_is_whole(text: str, expected: Any) -> None:
    assert expected == parse_partial_json(text)


@pytest.mark.parametrize("text", ["", "nonsense", "}", '{"a": 1}}', "{'a': 1", '{"a": nope', '{"a": [1}', '{"a": 1,}'])
def test_text_that_never_was_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse_partial_json(text)


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


# -- transcript and counting -----------------------------------------------------------------------------------------


def test_a_transcript_has_a_line_a_message() -> None:
    messages = [
        SystemMessage("s"),
        HumanMessage("a"),
        AIMessage("b", tool_calls=[CALL]),
        ChatMessage("x", role="judge"),
    ]

    assert f"System: s\nUser: a\nAI: b{[CALL]}\njudge: x" == get_buffer_string(messages, human_prefix="User")


def test_a_transcript_in_xml_escapes_and_nests() -> None:
    picture = {"type": "image_url", "image_url": {"url": "http://u"}}
    messages = [
        HumanMessage(["x < y", picture, PNG]),
        AIMessage("b", tool_calls=[CALL]),
        AIMessage("", tool_calls=[CALL]),
    ]

    call = '  <tool_call id="c1" name="look">{"x": 1}</tool_call>'
    assert [
        '<message type="human">x &lt; y <image url="http://u" /></message>',
        '<message type="ai">',
        "  <content>b</content>",
        call,
        "</message>",
        '<message type="ai">',
        call,
        "</message>",
    ] == get_buffer_string(messages, format="xml").splitlines()
    with pytest.raises(InvalidInputError, match="'json'"):
        get_buffer_string(messages, format="json")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (HumanMessage("a" * 40), 14),
        (HumanMessage("a" * 40, name="bobby"), 16),
        (SystemMessage("a" * 40), 15),
        (AIMessage("a", tool_calls=[{"name": "f", "args": {"x": 1}, "id": "c"}]), 22),
        (ToolMessage("abc", tool_call_id="1234567"), 7),
        (HumanMessage(["a" * 40, {"type": "image_url", "image_url": {"url": "u" * 1000}}, "bb"]), 100),
        (HumanMessage([{"type": "foo", "text": "a" * 40}]), 21),
    ],
)
def test_tokens_are_estimated_from_characters(message: BaseMessage, expected: int) -> None:
    assert expected == count_tokens_approximately([message])


def test_the_estimate_can_be_tuned() -> None:
    message = HumanMessage("a" * 40, name="bobby")

    assert 14 == count_tokens_approximately([message], count_name=False)
    assert 19 == count_tokens_approximately([message], chars_per_token=3, extra_tokens_per_message=1.5)
    assert 28 == count_tokens_approximately([message], tools=[{"type": "function", "function": {"name": "f"}}])


@pytest.mark.parametrize(("reported", "expected"), [(5, 125), (400, 157)])
def test_the_estimate_can_follow_what_a_model_reported(reported: int, expected: int) -> None:
    usage: UsageMetadata = {"input_tokens": reported, "output_tokens": 0, "total_tokens": reported}
    answer = AIMessage("b" * 4, usage_metadata=usage, response_metadata={"model_provider": "x"})
    messages = [HumanMessage("a" * 40), answer, HumanMessage("a" * 400)]

    assert expected == count_tokens_approximately(messages, use_usage_metadata_scaling=True)


# -- history ---------------------------------------------------------------------------------------------------------

HISTORY: list[BaseMessage] = [
    SystemMessage("s"),
    HumanMessage("h1"),
    AIMessage("a1"),
    HumanMessage("h2"),
    AIMessage("a2"),
    ToolMessage("t2", tool_call_id="c"),
    HumanMessage("h3"),
]


def texts(messages: list[BaseMessage]) -> list[str]:
    return [message.text for message in messages]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"max_tokens": 0}, []),
        ({"max_tokens": 3}, ["a2", "t2", "h3"]),
        ({"max_tokens": 9}, ["s", "h1", "a1", "h2", "a2", "t2", "h3"]),
        ({"max_tokens": 3, "include_system": True}, ["s", "t2", "h3"]),
        ({"max_tokens": 0, "include_system": True}, ["s"]),
        ({"max_tokens": 3, "strategy": "first"}, ["s", "h1", "a1"]),
        ({"max_tokens": 3, "start_on": HumanMessage}, ["h3"]),
        ({"max_tokens": 5, "include_system": True, "start_on": "human"}, ["s", "h2", "a2", "t2", "h3"]),
        ({"max_tokens": 5, "end_on": ("ai", "system")}, ["s", "h1", "a1", "h2", "a2"]),
        ({"max_tokens": 5, "strategy": "first", "end_on": "human"}, ["s", "h1", "a1", "h2"]),
    ],
)
def test_a_history_is_trimmed_to_what_fits(options: dict[str, Any], expected: list[str]) -> None:
    assert expected == texts(trim_messages(HISTORY, token_counter=len, **options))


def words(messages: list[BaseMessage]) -> int:
    return sum(len(message.text.split()) for message in messages)


@pytest.mark.parametrize(
    ("strategy", "max_tokens", "expected"),
    [("last", 5, ["f", "g h i j"]), ("last", 4, ["g h i j"]), ("first", 4, ["a b c\n"]), ("first", 2, [])],
)
def test_the_message_at_the_cut_can_be_shortened_by_lines(strategy: Any, max_tokens: int, expected: list[str]) -> None:
    messages = [HumanMessage("a b c\nd e\nf"), AIMessage("g h i j")]

    assert expected == texts(
        trim_messages(messages, max_tokens=max_tokens, token_counter=words, strategy=strategy, allow_partial=True)
    )


def test_the_message_at_the_cut_is_shortened_by_blocks_first() -> None:
    blocks: list[str | dict[str, Any]] = [{"type": "text", "text": "a b "}, {"type": "text", "text": "c d"}]
    trimmed = trim_messages([HumanMessage(blocks)], max_tokens=3, token_counter=words, allow_partial=True)

    assert [[{"type": "text", "text": "c d"}]] == [message.content for message in trimmed]


def test_tokens_can_be_counted_by_message_by_model_or_approximately() -> None:
    def one(message: BaseMessage) -> int:
        return 2

    class Model:
        def get_num_tokens_from_messages(self, messages: list[BaseMessage]) -> int:
            return 2 * len(messages)

    assert ["t2", "h3"] == texts(trim_messages(HISTORY, max_tokens=5, token_counter=one))
    assert ["t2", "h3"] == texts(trim_messages(HISTORY, max_tokens=5, token_counter=Model()))
    assert ["h3"] == texts(trim_messages(HISTORY, max_tokens=6, token_counter="approximate"))
    with pytest.raises(InvalidInputError, match="counts no tokens"):
        trim_messages(HISTORY, max_tokens=5, token_counter=5)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "options",
    [{"strategy": "middle"}, {"strategy": "first", "start_on": "ai"}, {"strategy": "first", "include_system": True}],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        trim_messages(HISTORY, max_tokens=5, token_counter=len, **options)


def test_without_messages_there_comes_a_step_for_a_pipe() -> None:
    trim = trim_messages(max_tokens=1, token_counter=len)

    assert ["h3"] == texts(trim(HISTORY)) == texts(trim.invoke(HISTORY))


MIXED: list[BaseMessage] = [
    SystemMessage("s", name="x", id="1"),
    HumanMessage("h", name="y", id="2"),
    AIMessage("a", id="3", tool_calls=[CALL, tool_call(name="g", args={}, id="c2")]),
    ToolMessage("t1", tool_call_id="c1"),
    ToolMessage("t2", tool_call_id="c2"),
    AIMessage("z"),
]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["s", "h", "a", "t1", "t2", "z"]),
        ({"include_names": ["x"]}, ["s"]),
        ({"exclude_names": ["x"]}, ["h", "a", "t1", "t2", "z"]),
        ({"include_types": ["human", AIMessage]}, ["h", "a", "z"]),
        ({"exclude_types": ["ai"]}, ["s", "h", "t1", "t2"]),
        ({"include_ids": ["1"], "include_types": "human"}, ["s", "h"]),
        ({"exclude_tool_calls": True}, ["s", "h", "z"]),
        ({"exclude_tool_calls": ["c1"]}, ["s", "h", "a", "t2", "z"]),
        ({"exclude_tool_calls": ["c1", "c2"]}, ["s", "h", "z"]),
    ],
)
def test_a_history_is_filtered(options: dict[str, Any], expected: list[str]) -> None:
    assert expected == texts(filter_messages(MIXED, **options))


def test_an_excluded_call_leaves_the_others_and_the_given_message_alone() -> None:
    answer = filter_messages(MIXED, exclude_tool_calls=["c1"])[2]

    assert isinstance(answer, AIMessage)
    assert ["c2"] == [call["id"] for call in answer.tool_calls]
    assert MIXED[2] != answer


def test_runs_of_one_speaker_become_one_message() -> None:
    messages: list[BaseMessage] = [
        HumanMessage("a", id="1"),
        HumanMessage("b", id="2"),
        AIMessage("c", tool_calls=[CALL]),
        AIMessage([{"type": "text", "text": "d"}], tool_calls=[CALL]),
        ToolMessage("x", tool_call_id="c1"),
        ToolMessage("y", tool_call_id="c2"),
    ]

    assert [
        HumanMessage("a\nb", id="1"),
        AIMessage(["c", {"type": "text", "text": "d"}], tool_calls=[CALL, CALL]),
        *messages[4:],
    ] == merge_message_runs(messages)
    assert [HumanMessage("a|b", id="1")] == merge_message_runs(messages[:2], chunk_separator="|")
