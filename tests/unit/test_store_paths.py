"""Paths to texts, and namespaces as texts."""

from __future__ import annotations

from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.store.base import get_text_at_path, tokenize_path
from pregel.store.namespaces import joined, split, under
from pregel.store.values import document, spelled, view

DOC: Any = {"a": {"b": [{"t": "x"}, {"t": "y"}], "c": None}, "n": 3, "t": True}


@pytest.mark.parametrize("kind", [UserDict, MappingProxyType])
def test_a_mapping_of_any_kind_is_read_as_a_dict(kind: Any) -> None:
    document = kind({"text": "words", "more": kind({"n": 1})})

    assert ['{"more": {"n": 1}, "text": "words"}'] == get_text_at_path(document, "$")
    assert ["words"] == get_text_at_path(document, "text")
    assert ['{"n": 1}'] == get_text_at_path(document, "more")
    assert ["1"] == get_text_at_path(document, "more.*")


@pytest.mark.parametrize(
    ("path", "parts", "texts"),
    [
        ("$", ["$"], ['{"a": {"b": [{"t": "x"}, {"t": "y"}], "c": null}, "n": 3, "t": true}']),
        ("", [], ['{"a": {"b": [{"t": "x"}, {"t": "y"}], "c": null}, "n": 3, "t": true}']),
        ("a.b[0].t", ["a", "b", "[0]", "t"], ["x"]),
        ("a.b[-1].t", ["a", "b", "[-1]", "t"], ["y"]),
        ("a.b[*].t", ["a", "b", "[*]", "t"], ["x", "y"]),
        ("*", ["*"], ['{"b": [{"t": "x"}, {"t": "y"}], "c": null}', "3", "True"]),
        ("a.*", ["a", "*"], ['[{"t": "x"}, {"t": "y"}]']),
        ("a.{b,c}", ["a", "{b,c}"], ['[{"t": "x"}, {"t": "y"}]']),
        ("{a.c,n}", ["{a.c,n}"], ["3"]),
        ("{n,t}", ["{n,t}"], ["3", "True"]),
        ("a.c", ["a", "c"], []),
        ("zz", ["zz"], []),
        ("a.b[9].t", ["a", "b", "[9]", "t"], []),
        ("a.b[x].t", ["a", "b", "[x]", "t"], []),
    ],
)
def test_a_path_leads_to_texts(path: str, parts: list[str], texts: list[str]) -> None:
    assert parts == tokenize_path(path)
    assert texts == get_text_at_path(DOC, path)
    assert texts == get_text_at_path(DOC, parts)


LABELS = st.lists(st.text("ab!/-é\U0010ffff", min_size=1, max_size=3), max_size=3).map(tuple)


@given(LABELS, LABELS)
def test_what_lies_under_a_prefix_is_one_range(namespace: tuple[str, ...], prefix: tuple[str, ...]) -> None:
    first, behind = (text.encode() for text in under(prefix))

    assert namespace == split(joined(namespace))
    assert (namespace[: len(prefix)] == prefix) == (first <= joined(namespace).encode() < behind)


@given(st.text("ab\0\x01\ud800\udfff01", max_size=6), st.text("ab\0\x01\ud800\udfff01", max_size=6))
def test_no_two_texts_are_spelled_alike(one: str, other: str) -> None:
    assert (one == other) == (spelled(one) == spelled(other))
    assert "\0" not in spelled(one)
    spelled(one).encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("ab\0\x01\ud800é", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\0", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=2), JSON, max_size=3))
def test_a_document_comes_back_exactly(value: dict[str, Any]) -> None:
    made = document(value)

    assert repr(value) == repr(made.value())
    assert view(value) == view(made.value())
