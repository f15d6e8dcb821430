"""Pieces of messages, as a model streams them, and how they add up."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from pregel.messages import (
    AIMessage,
    AIMessageChunk,
    ChatMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    ToolMessageChunk,
    UsageMetadata,
    message_chunk_to_message,
    tool_call_chunk,
)
from pregel.messages.calls import parse_partial_json
from tests.unit.few_messages import CALL


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
