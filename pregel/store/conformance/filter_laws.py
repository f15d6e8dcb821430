"""The laws of filters: one meaning in every store."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from pregel.errors import InvalidInputError
from pregel.store.conformance.laws import Laws

DOCUMENTS: dict[str, dict[str, Any]] = {
    "int": {"x": 1},
    "float": {"x": 1.0},
    "half": {"x": 1.5},
    "ten": {"x": 10},
    "big": {"x": 2**53 + 1},
    "bool": {"x": True},
    "text": {"x": "1"},
    "word": {"x": "b"},
    "none": {"x": None},
    "missing": {"y": 1},
    "list": {"x": [1, {"a": 1, "b": 2}]},
    "dict": {"x": {"a": 1, "b": {"c": [1, 2]}}},
    "empty": {"x": {}},
    "nul": {"x": "a\0b"},
    "tuple": {"x": (1, 2)},
    "bytes": {"x": b"1"},
    "date": {"x": date(2020, 1, 2)},
    "when": {"x": datetime(2020, 1, 2, tzinfo=UTC)},
    "dotted": {"x.a": 1, "a'b": 1, "$x": 1, "x%": 1, "": 1, "ä\0": 1, '"': {"\\": "q"}},
}
OTHERS = sorted(DOCUMENTS.keys() - {"missing", "none", "dotted"})  # their x is not None

EXPECTED: list[tuple[dict[str, Any], list[str]]] = [
    ({}, sorted(DOCUMENTS)),
    ({"x": 1}, ["float", "int"]),
    ({"x": 1.0}, ["float", "int"]),
    ({"x": True}, ["bool"]),
    ({"x": "1"}, ["text"]),
    ({"x": None}, ["dotted", "missing", "none"]),
    ({"x": {"$eq": None}}, ["dotted", "missing", "none"]),
    ({"x": {"$ne": None}}, OTHERS),
    ({"x": {"$ne": 1}}, sorted(DOCUMENTS.keys() - {"int", "float"})),
    ({"x": {"$gt": 1}}, ["big", "half", "ten"]),
    ({"x": {"$gte": 1}}, ["big", "float", "half", "int", "ten"]),
    ({"x": {"$lt": 10}}, ["float", "half", "int"]),
    ({"x": {"$lte": 10, "$gt": 1}}, ["half", "ten"]),
    ({"x": {"$gt": 2**53}}, ["big"]),
    ({"x": 2**53 + 1}, ["big"]),
    ({"x": {"$gt": "1"}}, ["date", "nul", "when", "word"]),
    ({"x": {"$gte": "b"}}, ["word"]),
    ({"x": {"$lt": "2"}}, ["text"]),
    ({"x": {"$gt": None}}, []),
    ({"x": {"$gt": True}}, []),
    ({"zz": {"$gt": 2}}, []),
    ({"zz": {"$ne": 2}}, sorted(DOCUMENTS)),
    ({"x": {"a": 1}}, ["dict"]),
    ({"x": {"b": {"c": [1, 2]}}}, ["dict"]),
    ({"x": {"b": {"c": [1]}}}, []),
    ({"x": {"a": {"$gte": 1}, "b": {"c": {"$ne": 1}}}}, ["dict"]),
    ({"x": {}}, ["dict", "empty"]),
    ({"x": {"$eq": {}}}, ["empty"]),
    ({"x": {"$eq": {"a": 1, "b": {"c": [1, 2]}}}}, ["dict"]),
    ({"x": {"$eq": {"a": 1}}}, []),
    ({"x": [1, {"a": 1}]}, ["list"]),
    ({"x": [1, {"a": 1, "zz": None}]}, ["list"]),
    ({"x": [1, {"a": 1}, 2]}, []),
    ({"x": [1]}, []),
    ({"x": {"$eq": [1, {"a": 1}]}}, []),
    ({"x": [1, 2]}, ["tuple"]),
    ({"x": "a\0b"}, ["nul"]),
    ({"x": "a"}, []),
    ({"x": date(2020, 1, 2)}, ["date"]),
    ({"x": datetime(2020, 1, 2, tzinfo=UTC)}, ["when"]),
    ({"x.a": 1}, ["dotted"]),
    ({"a'b": 1, "$x": 1, "x%": 1, "": 1, "ä\0": 1}, ["dotted"]),
    ({'"': {"\\": "q"}}, ["dotted"]),
    ({"x": 1, "y": None}, ["float", "int"]),
    ({"x": None, "y": 1}, ["missing"]),
    ({"x' OR 1=1 --": 1}, []),
    ({"x": "' OR 1=1 --"}, []),
]


def nested(kind: type, depth: int) -> Any:
    """A dict in a dict, or a list in a list, so many times."""
    value: Any = 1
    for _ in range(depth):
        value = {"x": value} if kind is dict else [value]
    return value


REFUSED: list[Any] = [
    {"x": {"$in": [1]}},
    {"x": {"$gt": 1, "a": 1}},
    {"$gt": 1},
    {1: 1},
    {"x": b"1"},
    {"x": {"$eq": object()}},
    {"x": float("nan")},
    ["x"],
    {"x": {"x": nested(dict, 300)}},
    {"x": nested(dict, 5_000)},
    {"x": nested(list, 300)},
    {"x": {"$eq": nested(dict, 300)}},
]


class FilterLaws(Laws):
    """What filters mean."""

    def test_a_filter_means_the_same_everywhere(self) -> None:
        for key, value in DOCUMENTS.items():
            self.put(("f",), key, value)

        assert [
            (given, expected, found)
            for given, expected in EXPECTED
            if (found := self.keys(("f",), filter=given)) != expected
        ] == []

    def test_a_filter_that_is_none_is_refused(self) -> None:
        assert [InvalidInputError] * len(REFUSED) == [type(self.refused("search", (), filter=one)) for one in REFUSED]
