"""Copies of lists are equal, of the same classes, and share nothing that can be changed."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel.checkpoint.copies import Copies, NoCopyError
from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage

serde = JsonPlusSerializer()
plain: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        | st.builds(tuple, st.lists(inner, max_size=3))
        | st.frozensets(st.integers(), max_size=3)
    ),
    max_leaves=8,
)
message = st.one_of(
    st.builds(AIMessage, st.text(), id=st.text(), response_metadata=st.dictionaries(st.text(), plain, max_size=2)),
    st.builds(lambda artifact: ToolMessage("done", "c1", artifact=artifact), plain),
    st.builds(lambda value: HumanMessage([{"type": "x", "value": value}], other=value), plain),
    st.builds(AIMessageChunk, st.text()),
)


@settings(max_examples=40)
@given(st.lists(plain | message, max_size=6), st.lists(plain | message, max_size=3))
def test_copies_are_equal_and_of_the_same_classes(items: list[Any], more: list[Any]) -> None:
    kept = Copies.of(items)

    assert items == kept.copy()
    assert serde.dumps(items) == serde.dumps(kept.copy())  # what is stored tells classes apart
    assert [*items, *more] == kept.and_then(more).copy()


def test_a_copy_shares_nothing_with_the_next_one() -> None:
    kept = Copies.of([{"a": [1]}, AIMessage("hi", response_metadata={"use": {"in": 1}})])
    first = kept.copy()

    first[0]["a"].append(2)
    first[1].response_metadata["use"]["in"] = 2

    assert [{"a": [1]}, AIMessage("hi", response_metadata={"use": {"in": 1}})] == kept.copy()


class Own(AIMessage):
    """A class of a user's."""


@pytest.mark.parametrize(
    "item",
    [
        bytearray(b"x"),
        {"in": (1, [bytearray(b"x")])},
        datetime.date(2026, 1, 1),
        type("Listed", (list,), {})([1]),
        Own("hi"),
        AIMessage("hi", response_metadata={"at": datetime.date(2026, 1, 1)}),
    ],
)
def test_other_classes_are_not_copied(item: Any) -> None:
    with pytest.raises(NoCopyError):
        Copies.of([item])


def test_a_list_that_grows_one_by_one_has_few_parts() -> None:
    kept = Copies.of([])
    for number in range(500):
        kept = kept.and_then([number])

    assert list(range(500)) == kept.copy()
    assert kept.parts < 12
