"""Laws of messages: joining a list by id, adding up pieces, reading JSON that ends anywhere, coming back equal."""

from __future__ import annotations

import copy
import json
import pickle
from functools import reduce
from operator import add
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pregel.messages import (
    REMOVE_ALL_MESSAGES,
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
    add_messages,
    messages_from_dict,
    messages_to_dict,
    tool_call_chunk,
)
from pregel.messages.calls import parse_partial_json
from pregel.messages.reducer import merge_messages

IDS = st.sampled_from("abcdefg")
TEXTS = st.text(max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)
ARGS = st.dictionaries(st.text(max_size=5), JSON, max_size=4)
CALLS = st.lists(
    st.fixed_dictionaries({"name": st.text(max_size=5), "args": ARGS, "id": st.none() | st.text(max_size=3)}),
    max_size=2,
)


def texts_with(ids: st.SearchStrategy[Any]) -> st.SearchStrategy[BaseMessage]:
    """Messages that differ in id and text: all that a list of messages looks at."""
    return st.builds(lambda id, text: HumanMessage(text, id=id), ids, st.sampled_from(["x", "y", "z"]))


def of_kinds(ids: st.SearchStrategy[Any]) -> st.SearchStrategy[BaseMessage]:
    """Messages of the three kinds that make up a conversation, with all that they may hold."""
    extras = ARGS.filter(lambda args: "tool_calls" not in args)
    return st.one_of(
        st.builds(HumanMessage, TEXTS, id=ids, name=st.none() | TEXTS),
        st.builds(AIMessage, TEXTS, id=ids, tool_calls=CALLS, additional_kwargs=extras),
        st.builds(ToolMessage, TEXTS, id=ids, tool_call_id=IDS, artifact=JSON),
    )


MESSAGES = st.lists(texts_with(IDS), max_size=8)
REMOVALS = st.builds(RemoveMessage, IDS | st.just(REMOVE_ALL_MESSAGES))
WRITES = st.lists(texts_with(IDS) | REMOVALS, max_size=8)


def unique(messages: list[BaseMessage]) -> list[BaseMessage]:
    return add_messages([], messages)


def model(left: list[BaseMessage], right: list[BaseMessage]) -> list[BaseMessage]:
    """The rule of the list, told slowly: one message of the write after the other."""
    places = [message.id for message in left]
    found = {message.id: message for message in left}
    for message in right:
        if message.id == REMOVE_ALL_MESSAGES:
            places, found = [], {}
        elif isinstance(message, RemoveMessage):
            found.pop(message.id, None)  # the place is kept: the id may come back in this write
        else:
            places += [] if message.id in places else [message.id]
            found[message.id] = message
    return [found[id] for id in places if id in found]


@given(MESSAGES, WRITES)
def test_a_write_is_merged_as_if_told_message_by_message(left: list[BaseMessage], right: list[BaseMessage]) -> None:
    assert model(unique(left), right) == merge_messages(unique(left), right, strict=False)


@given(MESSAGES, MESSAGES)
def test_a_write_that_comes_again_changes_nothing(left: list[BaseMessage], right: list[BaseMessage]) -> None:
    once = add_messages(left, right)

    assert once == add_messages(once, right)


@given(MESSAGES, MESSAGES, MESSAGES)
def test_two_writes_in_one_batch_come_out_as_in_two_steps(
    left: list[BaseMessage], first: list[BaseMessage], second: list[BaseMessage]
) -> None:
    assert add_messages(add_messages(left, first), second) == add_messages(left, [*first, *second])


@given(MESSAGES, WRITES, MESSAGES)
def test_nothing_before_the_removal_of_all_is_left(
    left: list[BaseMessage], before: list[BaseMessage], after: list[BaseMessage]
) -> None:
    written = [*before, RemoveMessage(REMOVE_ALL_MESSAGES), *after]

    assert add_messages([], after) == add_messages(left, written)


@given(MESSAGES, MESSAGES)
def test_the_order_is_that_of_first_appearance_and_each_id_is_there_once(
    left: list[BaseMessage], right: list[BaseMessage]
) -> None:
    first_appearance = list(dict.fromkeys(message.id for message in [*unique(left), *right]))

    assert first_appearance == [message.id for message in add_messages(unique(left), right)]


@given(MESSAGES, st.lists(IDS, max_size=4))
def test_what_is_removed_is_gone_and_the_rest_stands_as_it_stood(messages: list[BaseMessage], ids: list[str]) -> None:
    left = unique(messages)
    removals = [RemoveMessage(message.id) for message in left if message.id in ids]

    assert [message for message in left if message.id not in ids] == add_messages(left, removals)


@given(st.lists(texts_with(st.none() | IDS), max_size=6), st.lists(texts_with(st.none() | IDS) | REMOVALS, max_size=6))
def test_nothing_that_comes_in_is_changed(left: list[BaseMessage], right: list[BaseMessage]) -> None:
    before = copy.deepcopy((left, right))

    try:
        merged = add_messages(left, right)
    except ValueError:  # the removal of an unknown id
        merged = []

    assert before == (left, right)
    assert all(message.id for message in merged)


@given(st.lists(of_kinds(st.none() | IDS), max_size=5))
def test_messages_come_back_equal_from_dicts_and_from_storage(messages: list[BaseMessage]) -> None:
    assert messages == messages_from_dict(json.loads(json.dumps(messages_to_dict(messages))))
    assert messages == [type(message).from_fields(message.to_fields()) for message in messages]
    assert messages == pickle.loads(pickle.dumps(messages))


# -- pieces ----------------------------------------------------------------------------------------------------------


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    ends = sorted({cut % (len(text) + 1) for cut in cuts} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@settings(max_examples=20)
@given(ARGS, st.text(max_size=20), st.lists(st.integers(0, 200), max_size=6))
def test_a_message_cut_anywhere_adds_up_to_itself(args: dict[str, Any], text: str, cuts: list[int]) -> None:
    written = pieces_of(json.dumps(args), cuts)
    stream = [AIMessageChunk(piece) for piece in pieces_of(text, cuts)]
    stream += [AIMessageChunk("", tool_call_chunks=[tool_call_chunk(name="f", args=written[0], id="c", index=0)])]
    stream += [AIMessageChunk("", tool_call_chunks=[tool_call_chunk(args=piece, index=0)]) for piece in written[1:]]

    whole = reduce(add, stream)

    assert text == whole.content
    assert [{"name": "f", "args": args, "id": "c", "type": "tool_call"}] == [dict(call) for call in whole.tool_calls]
    assert whole == stream[0] + stream[1:]


@given(ARGS, st.integers(1, 400))
def test_the_beginning_of_an_object_is_read_as_an_object_with_no_other_keys(args: dict[str, Any], end: int) -> None:
    found = parse_partial_json(json.dumps(args)[:end])

    assert isinstance(found, dict)
    assert list(args)[: len(found)] == list(found)


@given(JSON)
def test_whole_json_is_read_as_it_is(value: Any) -> None:
    assert value == parse_partial_json(json.dumps(value))
