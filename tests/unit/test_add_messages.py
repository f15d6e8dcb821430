"""How messages join a list of messages, case by case. The laws are in properties/test_messages_laws.py."""

from __future__ import annotations

import copy
import dataclasses
import uuid
from functools import partial
from typing import Any, get_type_hints

import pytest

from pregel.errors import InvalidInputError, NotBuiltError, OutsideRunError
from pregel.graph.message import REMOVE_ALL_MESSAGES, MessageGraph, MessagesState, add_messages, push_message
from pregel.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    is_message,
    messages_delta_reducer,
    with_ids,
)


def human(text: str, id: str | None = None) -> HumanMessage:
    return HumanMessage(text, id=id)


def shown(messages: list[BaseMessage]) -> list[tuple[str | None, str]]:
    return [(message.id, message.text) for message in messages]


A, B = human("a", "1"), human("b", "2")


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([A], [B], [("1", "a"), ("2", "b")]),
        ([A, B], [human("new", "1")], [("1", "new"), ("2", "b")]),
        ([], [human("x", "1"), human("y", "2"), human("z", "1")], [("1", "z"), ("2", "y")]),
        ([A, B], [RemoveMessage("1")], [("2", "b")]),
        ([A], [B, RemoveMessage("2")], [("1", "a")]),
        ([A], [B, RemoveMessage("2"), RemoveMessage("2")], [("1", "a")]),
        ([A, B], [RemoveMessage("1"), human("c", "3"), human("back", "1")], [("1", "back"), ("2", "b"), ("3", "c")]),
        ([A], [], [("1", "a")]),
        ([], [], []),
    ],
)
def test_messages_are_merged_by_id(left: Any, right: Any, expected: Any) -> None:
    assert expected == shown(add_messages(left, right))


def test_removing_an_unknown_id_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="no message '9' to remove") as caught:
        add_messages([A], [RemoveMessage("9")])

    assert "['1']" in str(caught.value)


def test_a_removal_that_has_no_id_cannot_be_made() -> None:
    with pytest.raises(InvalidInputError, match="needs an id"):
        RemoveMessage()


# -- ids -------------------------------------------------------------------------------------------------------------


def test_a_message_without_an_id_gets_one_on_a_copy() -> None:
    left, right = HumanMessage("a"), HumanMessage("b")
    merged = add_messages([left], [right])

    assert [None, None] == [left.id, right.id]
    assert 2 == len({uuid.UUID(message.id) for message in merged})
    assert ["a", "b"] == [message.text for message in merged]


def test_neither_list_is_changed_and_the_result_is_a_new_one() -> None:
    left: list[BaseMessage] = [A, B]
    right: list[BaseMessage] = [human("new", "1"), HumanMessage("c"), RemoveMessage("2")]
    before = copy.deepcopy((left, right))

    assert add_messages(left, []) is not left
    add_messages(left, right)

    assert before == (left, right)


def test_messages_that_have_ids_stay_the_objects_they_are() -> None:
    left: list[BaseMessage] = [human(str(at), str(at)) for at in range(1000)]
    new = human("new", "new")

    merged = add_messages(left, [new])

    assert all(one is other for one, other in zip(merged, [*left, new], strict=True))


def test_ids_are_given_once_and_then_kept() -> None:
    written = with_ids(["a", ("ai", "b"), {"role": "user", "content": "c", "id": "3"}])

    assert with_ids(written) is written
    assert "3" == written[2].id
    assert all(message.id for message in written)


# -- removing all ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ([], []),
        ([human("x", "7")], [("7", "x")]),
        ([human("x", "7"), human("y", "8"), human("z", "7")], [("7", "z"), ("8", "y")]),
        ([human("x", "7"), human("y", "8"), RemoveMessage("7")], [("8", "y")]),
        ([human("again", "1")], [("1", "again")]),
    ],
)
def test_what_follows_the_removal_of_all_is_merged_like_any_write(tail: Any, expected: Any) -> None:
    assert expected == shown(add_messages([A, B], [human("dropped", "5"), RemoveMessage(REMOVE_ALL_MESSAGES), *tail]))


def test_the_last_removal_of_all_counts() -> None:
    clear = RemoveMessage(REMOVE_ALL_MESSAGES)

    assert [("2", "b")] == shown(add_messages([A], [clear, human("x", "7"), clear, B]))


def test_a_removal_after_the_removal_of_all_knows_only_what_follows_it() -> None:
    with pytest.raises(InvalidInputError, match="no message '1'"):
        add_messages([A], [RemoveMessage(REMOVE_ALL_MESSAGES), RemoveMessage("1")])


def test_the_tail_is_formatted_and_gets_ids() -> None:
    written: list[Any] = [
        RemoveMessage(REMOVE_ALL_MESSAGES),
        HumanMessage([{"type": "text", "text": "x"}]),
        ("ai", "y"),
    ]
    merged = add_messages([A], written, format="langchain-openai")

    assert ["x", "y"] == [message.content for message in merged]
    assert all(message.id for message in merged)


# -- what may be passed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "right", ["b", ("user", "b"), {"role": "user", "content": "b"}, HumanMessage("b"), ["b"], (HumanMessage("b"),)]
)
def test_one_message_like_thing_or_a_list_of_them_may_be_passed(right: Any) -> None:
    assert [("human", "b")] == [(message.type, message.text) for message in add_messages([], right)]


def test_pieces_become_whole_messages_on_both_sides() -> None:
    merged = add_messages([AIMessageChunk("a", id="1")], [AIMessageChunk("b", id="2", chunk_position="last")])

    assert [AIMessage("a", id="1"), AIMessage("b", id="2")] == merged


@pytest.mark.parametrize(("lists", "given"), [({"left": []}, "left"), ({"right": []}, "right")])
def test_one_list_alone_is_an_error_that_says_which(lists: Any, given: str) -> None:
    with pytest.raises(ValueError, match=f"only '{given}'"):
        add_messages(**lists)


def test_without_lists_it_is_a_reducer_with_its_format() -> None:
    reducer = add_messages(format="langchain-openai")

    assert isinstance(reducer, partial)
    assert [("1", "x")] == shown(reducer([], [HumanMessage([{"type": "text", "text": "x"}], id="1")]))
    with pytest.raises(ValueError, match="'other'"):
        add_messages([], [], format="other")  # type: ignore[call-overload]


def test_the_format_changes_contents_and_nothing_else() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AA=="}
    given = AIMessage(
        [{"type": "image", "source": source}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"x": 1}}],
        id="1",
        name="bob",
        usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
    )
    (message,) = add_messages([], [given], format="langchain-openai")

    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    call = {"name": "f", "args": {"x": 1}, "id": "c1", "type": "tool_call"}
    assert given.model_copy(update={"content": [picture], "tool_calls": [call]}) == message


# -- foreign messages ------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class AlienMessage:
    """A message class of another library."""

    content: str
    id: str | None = None
    type: str = "human"


@dataclasses.dataclass
class AlienMessageChunk(AlienMessage):
    type: str = "AlienMessageChunk"


class CopyingMessage:
    """A message class of another library that copies as pydantic's models do."""

    def __init__(self, content: str, type: str, id: str | None = None) -> None:
        self.content, self.type, self.id = content, type, id

    def model_copy(self, *, update: dict[str, Any]) -> CopyingMessage:
        return CopyingMessage(**{"content": self.content, "type": self.type, "id": self.id, **update})


def test_foreign_messages_are_kept_and_get_ids_on_copies() -> None:
    known, unknown, other = AlienMessage("a", id="1"), AlienMessage("b"), CopyingMessage("c", "ai")
    merged: list[Any] = add_messages([known], [unknown, other])

    assert merged[0] is known
    assert [AlienMessage, AlienMessage, CopyingMessage] == [type(message) for message in merged]
    assert (None, None) == (unknown.id, other.id)
    assert all(message.id for message in merged)


def test_foreign_removals_are_honoured_beside_our_messages() -> None:
    removal: Any = CopyingMessage("", "remove", "1")
    clear: Any = CopyingMessage("", "remove", REMOVE_ALL_MESSAGES)

    assert [("2", "b")] == shown(add_messages([A, B], [removal]))
    assert [("2", "b")] == shown(add_messages([A], [clear, B]))


def test_a_foreign_piece_becomes_the_message_it_is_a_piece_of() -> None:
    merged: list[Any] = add_messages([], [AlienMessageChunk("a", id="1")])

    assert [AlienMessage("a", id="1")] == merged


@pytest.mark.parametrize("value", ["x", {"type": "human", "content": "x", "id": "1"}, 5, None, HumanMessage])
def test_what_only_looks_like_a_message_is_none(value: Any) -> None:
    assert not is_message(value)


# -- the fold of a delta channel -------------------------------------------------------------------------------------


def test_the_delta_reducer_merges_writes_in_order_and_gives_no_ids() -> None:
    merged = messages_delta_reducer(
        [A], [[human("new", "1"), HumanMessage("x")], [HumanMessage("x"), RemoveMessage("9")]]
    )

    assert [("1", "new"), (None, "x"), (None, "x")] == shown(merged)


def test_the_delta_reducer_comes_out_the_same_however_writes_are_batched() -> None:
    writes: list[Any] = [[A, B], [RemoveMessage("1")], [human("back", "1")], [human("c", "3")]]
    steps: list[BaseMessage] = []
    for write in writes:
        steps = messages_delta_reducer(steps, [write])

    assert steps == messages_delta_reducer([], writes)


# -- the rest of the module ------------------------------------------------------------------------------------------


def test_a_state_of_messages_names_its_reducer() -> None:
    hint = get_type_hints(MessagesState, include_extras=True)["messages"]

    assert (add_messages,) == hint.__metadata__


def test_what_is_not_built_says_what_to_use() -> None:
    with pytest.raises(NotBuiltError, match="StateGraph"):
        MessageGraph()


def test_a_pushed_message_needs_an_id_and_a_running_node() -> None:
    with pytest.raises(ValueError, match="has an id"):
        push_message(HumanMessage("a"))
    with pytest.raises(OutsideRunError):
        push_message(A)
