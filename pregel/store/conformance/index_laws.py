"""The laws of a store with an index: what is near comes first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pregel.errors import InvalidInputError
from pregel.store.base import IndexConfig, PutOp, SearchOp
from pregel.store.conformance.laws import Laws, Namespace

WORDS = ("cat", "dog", "fish", "car")


class Embedding:
    """A vector counts words. What was embedded is remembered."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> Sequence[Sequence[float]]:
        """A vector for each text."""
        self.asked.append(list(texts))
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> Sequence[float]:
        """The vector of one text."""
        return [float(text.count(word)) for word in WORDS]


class IndexLaws(Laws):
    """Subclass it, define `open` with ``index=self.index`` and `pass_time`."""

    embedding: Embedding
    index: IndexConfig

    def setup_method(self) -> None:
        """Open the store of one test. pytest calls it."""
        self.prepare()
        super().setup_method()

    def prepare(self) -> None:
        """Make the index of one test."""
        self.embedding = Embedding()
        self.index = {"dims": len(WORDS), "embed": self.embedding, "fields": ["text", "notes[*].text"]}

    def scores(self, query: str, prefix: Namespace = ("a",), **options: Any) -> list[tuple[str, float | None]]:
        """(key, score) of what is found, scores to 4 places."""
        found = self.search(prefix, query=query, **options)
        return [(item.key, None if item.score is None else round(item.score, 4)) for item in found]

    def test_the_nearest_come_first(self) -> None:
        for key in ("car", "dog", "cat", "cat dog"):
            self.put(("a",), key, {"text": key})

        assert self.scores("cat", limit=2) == [("cat", 1.0), ("cat dog", 0.7071)]
        assert self.scores("cat cat dog", limit=2) == [("cat dog", 0.9487), ("cat", 0.8944)]
        assert self.scores("cat cat dog", limit=2, offset=1)[0] == ("cat", 0.8944)

    def test_an_item_is_as_near_as_the_nearest_of_its_texts(self) -> None:
        self.put(("a",), "k", {"text": "car", "notes": [{"text": "dog"}, {"text": "cat dog"}]})

        assert self.scores("cat") == [("k", 0.7071)]
        assert self.scores("dog") == [("k", 1.0)]
        assert self.scores("car") == [("k", 1.0)]

    def test_items_without_a_vector_come_last_and_only_fill_up(self) -> None:
        self.put(("a",), "none", {"text": "cat"}, index=False)
        self.put(("a",), "other", {"body": "cat"})
        self.put(("a",), "car", {"text": "car"})

        assert self.scores("cat", limit=1) == [("car", 0.0)]
        found = self.scores("cat")
        assert found[0] == ("car", 0.0)
        assert sorted(found[1:]) == [("none", None), ("other", None)]
        assert found[1:2] == self.scores("cat", limit=1, offset=1)

    def test_an_item_may_name_its_own_texts(self) -> None:
        self.put(("a",), "k", {"text": "dog", "body": "cat"}, index=["body"])
        self.put(("a",), "l", {"text": "dog", "deep": {"body": "cat"}}, index=["deep"])

        assert sorted(self.scores("cat")) == [("k", 1.0), ("l", 1.0)]

    def test_vectors_of_an_old_value_are_gone(self) -> None:
        self.put(("a",), "k", {"text": "cat", "notes": [{"text": "cat"}]})
        self.put(("a",), "k", {"text": "dog"})
        assert self.scores("cat") == [("k", 0.0)]
        self.put(("a",), "k", {"text": "dog"}, index=False)
        assert self.scores("dog") == [("k", None)]
        self.put(("a",), "k", {"text": "cat"})
        self.store.call("delete", ("a",), "k")
        self.put(("a",), "k", {"body": "cat"})

        assert self.scores("cat") == [("k", None)]

    def test_a_filter_and_a_prefix_hold_with_a_query_too(self) -> None:
        for number in range(30):
            self.put(("a", str(number % 3)), str(number), {"text": "cat", "n": number})
        self.put(("b",), "near", {"text": "cat", "n": 5})

        assert self.scores("cat", ("a", "1"), filter={"n": {"$gt": 26}}) == [("28", 1.0)]
        assert sorted(key for key, _ in self.scores("cat", filter={"n": {"$gt": 26}})) == ["27", "28", "29"]

    def test_each_text_is_embedded_once_a_batch(self) -> None:
        self.batch(
            PutOp(("a",), "k", {"text": "cat"}),
            PutOp(("a",), "l", {"text": "cat", "notes": [{"text": "dog"}, {"text": "cat"}]}),
            PutOp(("a",), "k", {"text": "cat"}),
            SearchOp(("a",), query="cat"),
        )

        assert [sorted(texts) for texts in self.embedding.asked] == [["cat", "dog"]]
        assert sorted(self.scores("cat")) == [("k", 1.0), ("l", 1.0)]

    def test_a_vector_without_length_is_near_to_nothing(self) -> None:
        self.put(("a",), "k", {"text": "nothing"})

        assert self.scores("cat") == [("k", 0.0)]
        assert self.scores("nothing") == [("k", 0.0)]

    def test_a_wrong_embedding_is_refused_before_anything_is_written(self) -> None:
        for vectors in ([[1.0] * (len(WORDS) + 1)], [], [[1.0] * len(WORDS)] * 2, [[math.nan] * len(WORDS)]):
            self.embedding.embed_documents = lambda texts, found=vectors: found  # type: ignore[method-assign, misc]
            assert isinstance(self.refused("put", ("a",), "k", {"text": "cat"}), InvalidInputError)

        assert self.get(("a",), "k") is None

    def test_a_search_by_meaning_starts_the_time_anew(self) -> None:
        self.put(("a",), "k", {"text": "cat"}, ttl=1)
        self.pass_time(40.0)
        self.scores("cat")
        self.pass_time(40.0)
        assert self.scores("cat", refresh_ttl=False) == [("k", 1.0)]
        self.pass_time(40.0)

        assert self.scores("cat") == []
