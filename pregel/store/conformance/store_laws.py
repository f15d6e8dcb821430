"""The laws of any store: addresses, values, batches, listings, time; filters and random calls beside them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pregel.checkpoint.conformance.drawn import drawn
from pregel.errors import InvalidInputError
from pregel.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from pregel.store.conformance.filter_laws import FilterLaws
from pregel.store.conformance.model import WORDS, Walk

NASTY = (
    "a*",
    "a%",
    "a_",
    "[a]",
    "a\\",
    "a'--",
    '"',
    "a:b",
    "a,b",
    "a/b",
    "ä",
    "\U0001f600",
    " ",
    "*",
    "%",
    "{a}",
    "$a",
)
KEYS = ("", "k", "K", "k.", "k\0", "\0", "k%", "k'", "ä", "\ud800", "0", "x" * 2_000)
VALUES: tuple[Any, ...] = (
    {},
    {"a": None, "b": True, "c": 1, "d": 1.5, "e": "text", "f": [1, [2, {"g": {}}]], "": ""},
    {"nul": "a\0b", "one": "\x01", "half": "\ud800", "\0key": 1, "quote": "\"'\\", "emoji": "\U0001f600"},
    {"big": 2**80, "int": 2**63 - 1, "float": 1e22, "tiny": 5e-324, "inf": float("inf"), "minus": -0.0, "one": 1.0},
    {"tuple": (1, 2), "bytes": b"\0\xff", "when": datetime(2020, 1, 2, 3, 4, tzinfo=UTC), "set": {1, 2}},
    {"b": 1, "a": 2},
)


class StoreLaws(FilterLaws):
    """The laws of any store. See the package."""

    # -- items -------------------------------------------------------------------------------------------------------

    def test_a_value_comes_back(self) -> None:
        for number, value in enumerate(VALUES):
            self.put(("a", "b"), str(number), value)
            found = self.value(("a", "b"), str(number))

            assert repr(_sorted(value)) == repr(_sorted(found))

    def test_an_item_says_what_it_is(self) -> None:
        self.put(("a", "b"), "k", {"x": 1})
        found = self.get(("a", "b"), "k")

        assert found is not None
        assert (found.namespace, found.key, found.value) == (("a", "b"), "k", {"x": 1})
        assert found.created_at == found.updated_at
        assert found.created_at.tzinfo is not None

    def test_what_is_not_there_is_none(self) -> None:
        self.put(("a",), "k", {})

        assert self.get(("a",), "l") is None
        assert self.get(("a", "k"), "k") is None
        assert self.get((), "k") is None

    def test_created_at_stays_when_an_item_is_put_again(self) -> None:
        self.put(("a",), "k", {"x": 1})
        first = self.get(("a",), "k")
        self.pass_time(10.0)
        self.put(("a",), "k", {"x": 2})
        second = self.get(("a",), "k")

        assert first is not None
        assert second is not None
        assert first.created_at == second.created_at
        assert 10.0 <= (second.updated_at - first.updated_at).total_seconds() < 11.0
        assert second.value == {"x": 2}

    def test_an_item_that_was_deleted_is_created_anew(self) -> None:
        self.put(("a",), "k", {"x": 1})
        self.pass_time(10.0)
        self.store.call("delete", ("a",), "k")
        assert self.get(("a",), "k") is None
        self.put(("a",), "k", {"x": 1})
        found = self.get(("a",), "k")

        assert found is not None
        assert found.created_at == found.updated_at

    def test_to_delete_what_is_not_there_is_no_error(self) -> None:
        self.store.call("delete", ("a",), "k")

        assert self.namespaces() == []

    def test_reads_change_nothing(self) -> None:
        self.put(("a",), "k", {"x": 1})
        before = self.get(("a",), "k")
        self.get(("b",), "k")
        self.search(("c",))
        self.pass_time(5.0)
        self.search(())

        assert before == self.get(("a",), "k")
        assert self.namespaces() == [("a",)]

    def test_what_is_done_to_a_value_later_does_not_reach_the_store(self) -> None:
        value: dict[str, Any] = {"x": [1], "t": (1, [2])}
        self.put(("a",), "k", value)
        value["x"].append(2)
        value["t"][1].append(3)
        found = self.get(("a",), "k")
        assert found is not None
        found.value["x"].append(3)
        self.search(("a",))[0].value["x"].append(4)

        assert self.value(("a",), "k") == {"x": [1], "t": (1, [2])}

    def test_keys_are_any_text_and_others_are_made_one(self) -> None:
        for number, key in enumerate(KEYS):
            self.put(("a",), key, {"n": number})
        assert list(range(len(KEYS))) == [self.value(("a",), key)["n"] for key in KEYS]
        assert sorted(KEYS) == self.keys()
        self.store.call("put", ("b",), 7, {"n": 7})

        assert self.value(("b",), "7") == {"n": 7}

    def test_a_value_that_is_no_dict_is_refused(self) -> None:
        for value in (1, "text", [1], None, ("a", 1)):
            assert isinstance(self.refused("put", ("a",), "k", value), InvalidInputError)
        assert isinstance(self.refused("put", ("a",), "k", {"x": object()}), TypeError)

        assert self.namespaces() == []

    # -- namespaces --------------------------------------------------------------------------------------------------

    def test_a_prefix_is_compared_label_by_label(self) -> None:
        for namespace in (("a",), ("a", "b"), ("a", "bc"), ("ab",), ("b", "a")):
            self.put(namespace, "/".join(namespace), {})

        assert self.keys(("a",)) == ["a", "a/b", "a/bc"]
        assert self.keys(("a", "b")) == ["a/b"]
        assert self.keys(("ab",)) == ["ab"]
        assert self.keys(("a", "b", "c")) == []
        assert len(self.keys(())) == 5

    def test_nothing_in_a_label_is_a_pattern(self) -> None:
        for label in (*NASTY, "a", "aa"):
            self.put((label, "x"), label, {})
        for label in NASTY:
            assert [label] == self.keys((label,))
            assert [label] == self.keys((label, "x"))
            assert self.value((label, "x"), label) == {}

    def test_a_namespace_that_is_none_is_refused(self) -> None:
        bad: Any = (("",), ("a", ""), ("a.b",), ("a\0",), (1,), "a", ("\ud800",), None)
        for namespace in bad:
            for verb, args in (("put", ("k", {})), ("get", ("k",)), ("search", ()), ("delete", ("k",))):
                assert isinstance(self.refused(verb, namespace, *args), InvalidNamespaceError)
        reserved: tuple[tuple[str, ...], ...] = ((), ("langgraph",), ("langgraph", "a"))
        for namespace in reserved:
            assert isinstance(self.refused("put", namespace, "k", {}), InvalidNamespaceError)
            assert isinstance(self.refused("batch", [PutOp(namespace, "k", {})]), InvalidNamespaceError)

        assert self.namespaces() == []

    def test_none_is_no_key(self) -> None:
        for verb, more in (("put", ({},)), ("get", ()), ("delete", ())):
            assert isinstance(self.refused(verb, ("a",), None, *more), InvalidInputError)
        key: Any = None
        for op in (PutOp(("a",), key, {}), GetOp(("a",), key)):
            assert isinstance(self.refused("batch", [op]), InvalidInputError)

        assert self.namespaces() == []

    def test_namespaces_are_listed_sorted_once_each(self) -> None:
        given = [("b",), ("a", "c"), ("a",), ("a!", "b"), ("a", "b", "c")]
        for namespace in given:
            self.put(namespace, "k", {})
            self.put(namespace, "l", {})
        self.store.call("delete", ("b",), "k")
        self.store.call("delete", ("b",), "l")

        assert sorted(given[1:]) == self.namespaces()
        assert sorted(given[1:])[1:3] == self.namespaces(limit=2, offset=1)
        assert self.namespaces(limit=0) == []

    def test_namespaces_are_matched_by_both_ends(self) -> None:
        for namespace in (("a", "b", "c"), ("a", "x", "c"), ("a", "x"), ("c",), ("b", "a", "c"), ("*", "c")):
            self.put(namespace, "k", {})

        assert self.namespaces(prefix=("a",)) == [("a", "b", "c"), ("a", "x"), ("a", "x", "c")]
        assert self.namespaces(prefix=("*", "x")) == [("a", "x"), ("a", "x", "c")]
        assert self.namespaces(suffix=("c",)) == [("*", "c"), ("a", "b", "c"), ("a", "x", "c"), ("b", "a", "c"), ("c",)]
        assert self.namespaces(prefix=("a", "*"), suffix=("*", "c")) == [("a", "b", "c"), ("a", "x", "c")]
        assert self.namespaces(prefix=("a",), max_depth=2) == [("a", "b"), ("a", "x")]
        assert self.namespaces(prefix=("a", "b", "c", "*")) == []
        conditions = (MatchCondition("prefix", ("a",)), MatchCondition("prefix", ("*", "b")))
        assert self.batch(ListNamespacesOp(conditions)) == [[("a", "b", "c")]]

    # -- pages -------------------------------------------------------------------------------------------------------

    def test_a_search_has_an_order_and_pages(self) -> None:
        for number in range(25):
            self.put(("a", str(number % 3)), str(number), {"n": number})
        whole = [item.value["n"] for item in self.search((), limit=100)]

        assert len(whole) == 25
        assert whole[:10] == [item.value["n"] for item in self.search(())]
        assert whole[20:] == [item.value["n"] for item in self.search((), limit=10, offset=20)]
        assert self.search((), limit=0) == []
        assert self.search((), offset=25) == []
        odd = [n for n in whole if n > 11]
        assert odd[2:7] == [i.value["n"] for i in self.search((), filter={"n": {"$gt": 11}}, limit=5, offset=2)]

    def test_the_order_is_that_of_the_puts(self) -> None:
        for key in "bac":
            self.put(("a",), key, {})
        found = [item.key for item in self.search(("a",))]

        assert (["c", "a", "b"] if self.newest_first else ["b", "a", "c"]) == found

    def test_a_page_that_is_none_is_refused(self) -> None:
        for options in ({"limit": -1}, {"offset": -1}, {"limit": 1.5}, {"limit": None}):
            assert isinstance(self.refused("search", ("a",), **options), InvalidInputError)
            assert isinstance(self.refused("list_namespaces", **options), InvalidInputError)

    def test_a_page_may_be_larger_than_everything(self) -> None:
        self.put(("a",), "k", {})

        for most in ((1 << 63) - 1, 1 << 70):
            assert [item.key for item in self.search(("a",), limit=most)] == ["k"]
            assert self.namespaces(limit=most) == [("a",)]
            assert self.search(("a",), limit=most, offset=most) == []

    def test_a_search_shows_items_without_a_score(self) -> None:
        self.put(("a",), "k", {"x": 1})

        assert [item.score for item in self.search(("a",), query="anything")] == [None]

    # -- batches -----------------------------------------------------------------------------------------------------

    def test_reads_of_a_batch_see_the_state_before_its_puts(self) -> None:
        results = self.batch(
            PutOp(("a",), "k", {"n": 1}),
            GetOp(("a",), "k"),
            PutOp(("a",), "k", {"n": 2}),
            SearchOp(("a",)),
            ListNamespacesOp(),
        )

        assert results == [None, None, None, [], []]
        assert self.value(("a",), "k") == {"n": 2}

    def test_the_last_put_of_a_key_counts(self) -> None:
        self.batch(PutOp(("a",), "k", None), PutOp(("a",), "k", {"n": 1}))
        assert self.value(("a",), "k") == {"n": 1}
        self.batch(PutOp(("a",), "k", {"n": 2}), PutOp(("a",), "k", None))

        assert self.get(("a",), "k") is None

    def test_a_batch_lands_whole_or_not_at_all(self) -> None:
        bad = (PutOp(("a",), "l", {"x": object()}), PutOp(("a.b",), "l", {}), PutOp(("a",), "l", {}, None, -1.0))
        for op in (*bad, SearchOp(("a",), {"x": {"$in": []}}), SearchOp(("a",), limit=-1), "nonsense"):
            assert self.refused("batch", [PutOp(("a",), "k", {"n": 1}), op]) is not None

        assert self.namespaces() == []

    def test_an_empty_batch_is_none(self) -> None:
        assert self.batch() == []

    def test_a_large_batch(self) -> None:
        self.batch(*(PutOp(("a", str(n % 7)), str(n), {"n": n}) for n in range(1_500)))
        found = self.batch(*(GetOp(("a", str(n % 7)), str(n)) for n in range(1_500)))

        assert list(range(1_500)) == [item.value["n"] for item in found]

    # -- time --------------------------------------------------------------------------------------------------------

    def test_an_item_is_gone_when_its_time_is_over(self) -> None:
        self.put(("a",), "short", {}, ttl=1)
        self.put(("b",), "long", {}, ttl=100.5)
        self.put(("b",), "ever", {})
        self.pass_time(90.0)

        assert self.get(("a",), "short") is None
        assert self.keys(()) == ["ever", "long"]
        assert self.namespaces() == [("b",)]

    def test_reading_starts_the_time_anew(self) -> None:
        for key in "abcd":
            self.put(("a",), key, {}, ttl=1)
        self.pass_time(40.0)
        self.get(("a",), "a")
        self.get(("a",), "b", refresh_ttl=False)
        self.search(("a",), filter={}, limit=4, refresh_ttl=False)
        self.pass_time(40.0)

        assert self.keys(("a",)) == ["a"]
        self.pass_time(40.0)
        self.search(("a",))
        self.pass_time(40.0)
        assert self.keys(("a",)) == ["a"]

    def test_a_put_starts_the_time_anew(self) -> None:
        self.put(("a",), "k", {}, ttl=1)
        self.put(("a",), "l", {}, ttl=1)
        self.put(("a",), "k", {})
        self.pass_time(90.0)

        assert self.keys() == ["k"]

    def test_an_item_that_lapsed_is_created_anew(self) -> None:
        self.put(("a",), "k", {}, ttl=1)
        self.pass_time(90.0)
        self.put(("a",), "k", {}, ttl=1)
        found = self.get(("a",), "k")

        assert found is not None
        assert found.created_at == found.updated_at

    def test_the_sweep_removes_what_has_lapsed(self) -> None:
        for key in "abc":
            self.put(("a",), key, {}, ttl=1)
        self.put(("a",), "ever", {})
        assert self.store.call("sweep_ttl") == 0
        self.pass_time(90.0)

        assert self.store.call("sweep_ttl") == 3
        assert self.store.call("sweep_ttl") == 0
        assert self.keys() == ["ever"]

    def test_a_ttl_that_is_no_time_is_refused(self) -> None:
        for ttl in (0, -1, float("nan"), float("inf"), "1", True):
            assert isinstance(self.refused("put", ("a",), "k", {}, ttl=ttl), InvalidInputError)

    # -- at random ---------------------------------------------------------------------------------------------------

    def test_random_calls_do_what_they_do_to_a_dict(self) -> None:
        names = iter(range(1_000_000))
        drawn(WORDS, lambda calls: Walk(self, f"walk-{next(names)}").run(calls), examples=self.examples)


def _sorted(value: Any) -> Any:
    """A value whose dicts are in one order."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
