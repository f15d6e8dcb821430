"""Metadata: one JSON object that any store takes, filters can look into, and that gives the metadata back."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.checkpoint.serde.base import CannotStore
from pregel.checkpoint.serde.metadata import EXACT, UNKNOWN, filter_form, metadata_blob, metadata_of
from pregel.errors import SerializationError

plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters())
values = st.recursive(
    plain | st.binary() | st.dates(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(st.characters()) | st.integers(), inner, max_size=3)
    ),
    max_leaves=6,
)
metadatas = st.dictionaries(st.text(st.characters()), values, max_size=4)


@given(metadatas)
def test_metadata_comes_back_equal_and_of_its_types(metadata: dict[str, Any]) -> None:
    back = metadata_of(metadata_blob(metadata))

    assert repr(metadata) == repr(back)


@given(metadatas)
def test_every_store_takes_it(metadata: dict[str, Any]) -> None:
    text = metadata_blob(metadata).decode("utf-8")  # strict: no lone surrogate

    assert "\0" not in json.dumps(json.loads(text), ensure_ascii=False)
    assert isinstance(json.loads(text, parse_constant=pytest.fail), dict)


@given(st.text(st.characters()), values)
def test_a_filter_value_stands_in_the_projection_as_it_is_asked_for(key: str, value: Any) -> None:
    shown = json.loads(metadata_blob({key: value, "more": (1,)}))
    form = filter_form(value)

    if form is UNKNOWN or key == "more":
        return
    assert form == shown[filter_form(key)]


@given(st.text(st.characters()), st.text(st.characters()))
def test_different_texts_stay_different_in_projections(one: str, other: str) -> None:
    assert (one == other) == (filter_form(one) == filter_form(other))


def test_plain_metadata_is_nothing_but_json() -> None:
    metadata = {"source": "loop", "step": 3, "tags": ["a", 1.5, None, True], "deep": {"é": {}}}

    assert metadata == json.loads(metadata_blob(metadata))


def test_what_json_cannot_say_stands_beside_what_it_can() -> None:
    shown = json.loads(metadata_blob({"who": ("a", "b"), "since": date(2026, 1, 2), 'nul"\0': "\ud800", "n": 2**70}))

    assert {"who": ["a", "b"], 'nul"\x1a0000': "\x1ad800"} == {key: shown[key] for key in shown if key != EXACT}


def test_metadata_that_cannot_come_back_is_refused_with_the_path() -> None:
    with pytest.raises(CannotStore, match=r"cannot store metadata\['a'\]\[0\]: objects of type object"):
        metadata_blob({"a": [object()]})


@pytest.mark.parametrize("blob", [b"", b"[", b'{"\\u001a": "#"}', b'{"\\u001a": 1}', b'{"\\u001a": "wQ=="}'])
def test_damaged_metadata_is_a_named_error(blob: bytes) -> None:
    with pytest.raises(SerializationError, match="cannot be read"):
        metadata_of(blob)


def test_metadata_of_older_savers_is_read() -> None:
    assert {"step": 1, "parents": {}} == metadata_of('{"step": 1, "parents": {}}')
