"""How values are shown by the command: as JSON for scripts, as lines for people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date

import pytest
from pydantic import BaseModel

from pregel.cli.values import as_json, as_lines, plain


@dataclass
class Point:
    x: int
    y: object


class Model(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        ({"a": (1, 2.5, True)}, {"a": [1, 2.5, True]}),
        ({1: "one", (2, 3): "two"}, {"1": "one", "(2, 3)": "two"}),
        ({3, 1, 2}, [1, 2, 3]),
        (Point(1, Point(2, None)), {"x": 1, "y": {"x": 2, "y": None}}),
        ([Model(name="m")], [{"name": "m"}]),
        (float("inf"), "inf"),
        (b"bytes", "b'bytes'"),
        (date(2026, 11, 29), "datetime.date(2026, 11, 29)"),
        (Point, "<class 'tests.unit.test_cli_values.Point'>"),
    ],
)
def test_a_value_has_a_form_in_json(value: object, shown: object) -> None:
    assert shown == plain(value)
    assert shown == json.loads(as_json(value))


def test_people_see_a_line_for_each_key() -> None:
    values = {"total": 3, "text": "one line", "list": [1, {"a": None}], "empty": ""}

    assert ["total: 3", "text: one line", 'list: [1, {"a": null}]', "empty: "] == list(as_lines(values))


def test_people_see_long_values_as_blocks() -> None:
    lines = list(as_lines({"text": "one\ntwo", "list": ["x" * 60, "y" * 60]}))

    assert ["text:", "  one", "  two", "list:", "  [", f'    "{"x" * 60}",'] == lines[:6]


def test_people_see_a_bare_value_as_it_is() -> None:
    assert ["one", "two"] == list(as_lines("one\ntwo"))
    assert ["[1]"] == list(as_lines([1]))
