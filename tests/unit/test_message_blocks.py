"""The content of a message as standard blocks, whoever wrote it."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.messages import AIMessage, HumanMessage
from tests.unit.few_messages import CALL, PNG


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
