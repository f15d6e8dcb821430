"""An index of ids gives what `add_messages` gives, or no answer."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pregel.channels import BinaryOperatorAggregate
from pregel.messages import REMOVE_ALL_MESSAGES, AIMessage, BaseMessage, HumanMessage, RemoveMessage
from pregel.messages.index import MessageIndex
from pregel.messages.reducer import add_messages, with_ids

ids = st.sampled_from([f"m{n}" for n in range(12)])
message: st.SearchStrategy[BaseMessage] = st.one_of(
    st.builds(lambda i, t: AIMessage(t, id=i), ids, st.text(max_size=2)),
    st.builds(lambda i: RemoveMessage(id=i), ids),
    st.just(RemoveMessage(id=REMOVE_ALL_MESSAGES)),
)
writes = st.one_of(st.lists(message, max_size=3), message)


def said(*numbers: int) -> list[BaseMessage]:
    return [HumanMessage("hi", id=f"m{n}") for n in numbers]


def index() -> MessageIndex:
    return MessageIndex(with_ids)


def outcome(old: list[Any], write: Any) -> object:
    try:
        return add_messages(old, write)
    except ValueError as error:
        return type(error)


@given(steps=st.lists(st.tuples(writes, st.lists(writes, max_size=2)), max_size=12))
@example(steps=[([HumanMessage("hi", id="m2")], []), ([HumanMessage("ho", id="m2")], [])])  # the last one, anew
def test_whatever_is_previewed_and_written_the_answer_is_that_of_the_reducer(
    steps: list[tuple[Any, list[Any]]],
) -> None:
    known, old = index(), said(0, 1)
    for write, previews in steps:
        for preview in previews:
            assert known.extended(old, preview) in (None, outcome(old, preview))
        found, expected = known.extended(old, write), outcome(old, write)
        assert found in (None, expected)
        if isinstance(expected, list):
            old = expected if found is None else found


def test_new_messages_go_to_the_end_of_a_new_list() -> None:
    known, old = index(), said(0, 1)
    before = list(old)

    longer = known.extended(old, said(2))
    assert longer is not None
    assert [*before, *said(2)] == longer
    assert before == old
    assert [*longer, *said(3, 4)] == known.extended(longer, said(3, 4))


def test_the_list_that_a_preview_started_from_is_still_known() -> None:
    known, old = index(), said(0)
    preview = known.extended(old, said(1))

    assert preview == known.extended(old, said(1))
    assert known.extended(old, said(0)) is None


def test_a_message_that_was_given_another_id_in_place_has_no_answer() -> None:
    known = index()
    longer = known.extended(said(0), said(1))
    assert longer is not None
    longer[0].id = "new"

    assert known.extended(longer, [longer[0]]) is None


def test_a_message_without_an_id_is_given_one() -> None:
    longer = index().extended(said(0), HumanMessage("hi"))

    assert longer is not None
    assert longer[1].id


def test_what_it_cannot_tell_apart_has_no_answer() -> None:
    known = index()

    assert known.extended([*said(0), HumanMessage("no id")], said(1)) is None
    assert known.extended([*said(0), *said(0)], said(1)) is None
    assert known.extended(said(0), [*said(1), *said(1)]) is None
    assert known.extended(tuple(said(0)), said(1)) is None


def test_a_channel_of_a_thread_has_an_index_of_its_own_and_shares_it_with_its_previews() -> None:
    reducer: Any = add_messages
    prototype = BinaryOperatorAggregate[Any](list, reducer)
    channel, other = prototype.from_checkpoint(said(0)), prototype.from_checkpoint(said(0))

    assert channel.index is not None
    assert channel.index is channel.copy().index
    assert channel.index is not other.index


def test_a_reducer_with_a_format_has_none() -> None:
    assert BinaryOperatorAggregate(list, add_messages(format="langchain-openai")).index is None
    assert BinaryOperatorAggregate(list, add_messages()).index is not None
