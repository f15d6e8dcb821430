"""The words of texts, and what a word of a query weighs."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pregel import flow as runner
from pregel.errors import InvalidInputError
from pregel.store.memory import InMemoryStore
from pregel.store.sqlite.store import tables
from pregel.store.words import BYTES, LENGTH, scopes, weights, words


def test_a_word_is_a_run_of_letters_and_digits_without_case_accents_and_width() -> None:
    assert words(["Zürich, STRASSE_42 don't", "ＴＥＡ tea"]) == ["zurich", "strasse", "42", "don", "t", "tea"]


@settings(max_examples=40, deadline=None)
@given(st.text())
def test_a_word_holds_nothing_that_means_something_to_a_database(text: str) -> None:
    found = words([text])

    assert all(word and not set(word) & set("'\"\\_ \0*&|!:()") for word in found)
    assert found == words([text.upper() if text.isascii() else text])


def test_long_words_are_cut_and_long_texts_end() -> None:
    assert words(["x" * 100]) == ["x" * LENGTH]
    found = words([" ".join(f"word{number}" for number in range(100_000))])

    assert BYTES - 20 < sum(map(len, found)) <= BYTES


def test_weights_add_up_to_one_and_a_rare_word_weighs_more() -> None:
    found = weights(["the", "tea", "unheard"], 100, {"the": 90, "tea": 3})

    assert round(sum(found.values()), 9) == 1.0
    assert found["the"] < found["tea"] < found["unheard"]


def test_the_scopes_of_a_namespace_are_those_of_its_prefixes() -> None:
    assert scopes(".a.b.")[0] == scopes(".a.")[0]
    assert len({*scopes(".a.b."), *scopes(".ab."), *scopes(".a.c.")}) == 4


def test_an_sqlite_without_fts5_says_so() -> None:
    with pytest.raises(InvalidInputError, match="FTS5"):
        runner.run(tables(words=True), _without_fts5)


def _without_fts5(statement: tuple[str, object]) -> list[tuple[int]]:
    if "fts5" in statement[0]:
        raise sqlite3.OperationalError("no such module: fts5")
    return [(1,)] if statement[0].startswith("SELECT coalesce") else []


@pytest.mark.parametrize("more", [{"hybrid": 2}, {"hybrid": "0.5"}, {"hybrid": True}, {"distance_type": "l2"}])
def test_a_hybrid_index_that_is_wrong_is_refused(more: object) -> None:
    index: object = {"dims": 1, "embed": lambda texts: [[1.0]], "hybrid": 0.5, **more}  # type: ignore[dict-item]
    with pytest.raises(InvalidInputError):
        InMemoryStore(index=index)  # type: ignore[arg-type]
