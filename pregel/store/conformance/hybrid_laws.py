"""The laws of a store whose searches weigh words beside meaning: the same scores in every store."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pregel.store.base import IndexConfig, PutOp, SearchOp
from pregel.store.conformance.laws import Laws, Namespace


class HybridLaws(Laws):
    """Subclass it, define `open` with ``index=self.index`` and `pass_time`."""

    index: IndexConfig

    def setup_method(self) -> None:
        """Open the store of one test. pytest calls it."""
        self.prepare()
        super().setup_method()

    def prepare(self) -> None:
        """Make the index of one test: all words are one in meaning, so that only words tell."""
        self.index = {"dims": 1, "embed": same, "fields": ["text", "notes[*]"], "hybrid": 0.75}

    def scores(self, query: str, prefix: Namespace = ("a",), **options: object) -> dict[str, float | None]:
        """The score of what is found, to 4 places, in its order."""
        found = self.search(prefix, query=query, **options)
        return {item.key: None if item.score is None else round(item.score, 4) for item in found}

    def test_items_with_the_words_of_a_query_come_first(self) -> None:
        self.put(("a",), "both", {"text": "strong tea"})
        self.put(("a",), "one", {"text": "tea and biscuits"})
        self.put(("a",), "none", {"text": "coffee"})

        assert self.scores("strong tea") == {"both": 1.0, "one": _mixed([2], [1], 3), "none": 0.25}
        assert list(self.scores("strong tea", limit=1, offset=1)) == ["one"]

    def test_a_rare_word_weighs_more(self) -> None:
        for key, text in {"a": "the tea", "b": "the cup", "c": "the pot", "d": "tea"}.items():
            self.put(("a",), key, {"text": text})
        found = self.scores("the pot")

        assert found == {"c": 1.0, "a": _mixed([3], [1], 4), "b": _mixed([3], [1], 4), "d": 0.25}

    def test_case_accents_and_width_do_not_count(self) -> None:
        self.put(("a",), "k", {"text": "ZÜRICH, Straße 42! don't"})

        for query in ("zurich", "Zürich", "STRASSE", "\uff34\uff11 42", "don t", "Zu\u0308rich"):
            assert self.scores(query)["k"] == (1.0 if query[0] != "\uff34" else _mixed([1], [0], 1)), query

    def test_words_are_searched_for_as_they_are(self) -> None:
        self.put(("a",), "k", {"text": "tea for two, near"})

        for query in ('"', "'", "te*", "te", "_", "NOT", "* OR *", "a:b", "& | !", "\x00", "\ud800", "{score}"):
            assert self.scores(query) == {"k": 0.25}, query
        assert self.scores("tea NEAR") == {"k": 1.0}

    def test_all_texts_of_an_item_count(self) -> None:
        self.put(("a",), "k", {"text": "tea", "notes": ["strong", "hot"], "body": "sweet"})

        assert self.scores("hot strong tea") == {"k": 1.0}
        assert self.scores("sweet") == {"k": 0.25}

    def test_words_of_an_old_value_are_gone(self) -> None:
        self.put(("a",), "k", {"text": "tea"})
        self.put(("a",), "k", {"text": "coffee"})
        assert self.scores("tea") == {"k": 0.25}
        self.store.call("delete", ("a",), "k")
        self.put(("a",), "k", {"body": "coffee"})

        assert self.scores("coffee") == {"k": None}

    def test_what_lies_elsewhere_or_has_lapsed_changes_no_score(self) -> None:
        self.put(("a", "x"), "tea", {"text": "tea", "n": 1})
        self.put(("a", "x"), "both", {"text": "strong tea", "n": 2})
        before = self.scores("strong tea", ("a", "x"))
        for number in range(5):
            self.put(("a", "xy"), str(number), {"text": "strong"})
            self.put(("b",), str(number), {"text": "strong coffee"})
        self.put(("a", "x"), "gone", {"text": "strong"}, ttl=1)
        self.pass_time(61.0)

        assert self.scores("strong tea", ("a", "x")) == before
        assert self.scores("strong tea", ("a", "x"), filter={"n": {"$lt": 2}}) == {"tea": before["tea"]}
        assert len(self.search((), query="strong tea", limit=20)) == 12

    def test_a_batch_that_puts_and_searches_sees_what_was_there(self) -> None:
        self.put(("a",), "k", {"text": "tea"})
        found = self.batch(
            SearchOp(("a",), query="tea"), PutOp(("a",), "k", {"text": "pot"}), PutOp(("a",), "l", {"text": "tea"})
        )

        assert [(item.key, item.score) for item in found[0]] == [("k", 1.0)]
        assert self.scores("tea") == {"l": 1.0, "k": 0.25}

    def test_a_long_text_is_kept_and_its_words_are_found(self) -> None:
        self.put(("a",), "k", {"text": " ".join(f"word{number}" for number in range(5_000)) + "x" * 5_000})

        assert self.scores("word17") == {"k": 1.0}


def same(texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """One vector for all texts."""
    return [[1.0] for _ in texts]


def _mixed(has: Sequence[int], has_not: Sequence[int], total: int) -> float:
    """The score of an item that has words which so many items have, and lacks words which so many have."""

    def rare(count: int) -> float:
        return math.log1p((total - count + 0.5) / (count + 0.5))

    part = sum(map(rare, has))
    return round(0.25 + 0.75 * part / (part + sum(map(rare, has_not))), 4)
