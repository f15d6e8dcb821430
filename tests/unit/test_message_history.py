"""Lists of messages: as a transcript, counted, trimmed, filtered and merged."""

from __future__ import annotations

from typing import Any

import pytest

from pregel.errors import InvalidInputError
from pregel.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    UsageMetadata,
    count_tokens_approximately,
    filter_messages,
    get_buffer_string,
    merge_message_runs,
    tool_call,
    trim_messages,
)
from tests.unit.few_messages import CALL, PNG

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
