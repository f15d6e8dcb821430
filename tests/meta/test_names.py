"""The names table tells the truth: what is built can be imported, what cannot has a reason."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.meta.names_table import BUILT, NOT_PLANNED, PLANNED, Row, rows


@pytest.fixture(autouse=True)
def _deprecated_names_warn_when_they_are_imported() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.mark.parametrize("row", [row for row in rows() if row.status == BUILT], ids=str)
def test_a_name_that_is_built_is_importable(row: Row) -> None:
    assert row.importable()


def test_a_name_that_is_importable_is_not_called_missing() -> None:
    planned = [row for row in rows() if row.status != BUILT]

    landed = [str(row) for row in planned if row.importable()]

    assert [] == landed, "run `python -m tests.meta.names_table`"


def test_what_is_not_built_has_a_reason() -> None:
    statuses = [row.status for row in rows() if row.status != BUILT]

    reasons = [status.removeprefix(NOT_PLANNED).removeprefix(PLANNED) for status in statuses]
    assert [] == [
        reason for reason, status in zip(reasons, statuses, strict=True) if len(reason) < 10 or reason == status
    ]


def test_the_table_holds_each_name_once() -> None:
    twice = {row: count for row, count in Counter(str(row) for row in rows()).items() if count > 1}

    assert ({}, True) == (twice, len(rows()) >= 250)
