"""The serialiser's one law, over drawn values: what goes in comes back equal and of its type, at every depth."""

from __future__ import annotations

from collections import deque
from datetime import UTC
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pregel.checkpoint.serde.jsonplus import JsonPlusSerializer
from pregel.messages import AIMessage, HumanMessage
from pregel.types import Interrupt, Overwrite, Send

serde = JsonPlusSerializer()

hashable = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters())  # surrogates and NUL included
    | st.binary()
    | st.uuids()
    | st.decimals(allow_nan=False)
    | st.fractions()
    | st.complex_numbers(allow_nan=False)
    | st.datetimes()
    | st.datetimes(timezones=st.just(UTC))
    | st.datetimes(timezones=st.timezones())
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.ip_addresses()
)
leaf = hashable | st.binary().map(bytearray)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(hashable | st.tuples(hashable, hashable), inner, max_size=4)
        | st.sets(hashable, max_size=4)
        | st.frozensets(hashable, max_size=4)
        | st.lists(inner, max_size=4).map(deque)
        | st.builds(Send, st.text(), inner)
        | st.builds(Interrupt, inner, st.text())
        | st.builds(Overwrite, inner)
        | st.builds(HumanMessage, st.text(), id=st.none() | st.text(), artifact=inner)
        | st.builds(AIMessage, st.text(), response_metadata=st.dictionaries(st.text(), inner, max_size=2))
    )


values = st.recursive(leaf, containers, max_leaves=12)


def shape(value: Any) -> Any:
    """The types in a value, at every depth; equality alone takes 1 for True and 1.0."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, [(shape(key), shape(part)) for key, part in value.items()]
    if isinstance(value, list | tuple | deque):
        return kind, [shape(part) for part in value]
    if isinstance(value, set | frozenset):
        return kind, sorted(str(shape(part)) for part in value)
    if isinstance(value, Send):
        return kind, shape(value.arg)
    if isinstance(value, Interrupt | Overwrite):
        return kind, shape(value.value)
    return kind


@given(values)
def test_a_value_comes_back_equal_and_of_its_type(value: Any) -> None:
    back = serde.loads_typed(serde.dumps_typed(value))

    assert value == back
    assert shape(value) == shape(back)


@given(values)
def test_the_same_value_is_stored_as_the_same_bytes(value: Any) -> None:
    stored = serde.dumps_typed(value)

    assert stored == serde.dumps_typed(serde.loads_typed(stored))
