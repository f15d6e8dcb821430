"""The garbage collector pauses while a long list is made, and is afterwards as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from pregel.checkpoint.collected import MANY, uncollected


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    yield
    gc.enable()


def test_it_pauses_for_many_items_also_when_they_cannot_be_made() -> None:
    seen: list[bool] = []

    def decode() -> None:
        with uncollected(MANY):
            seen.append(gc.isenabled())
            raise ValueError("damaged")

    with pytest.raises(ValueError, match="damaged"):
        decode()

    assert ([False], True) == (seen, gc.isenabled())


def test_it_goes_on_for_few() -> None:
    with uncollected(MANY - 1):
        assert gc.isenabled()


def test_one_that_somebody_else_has_paused_stays_paused() -> None:
    gc.disable()
    with uncollected(MANY):
        pass

    assert not gc.isenabled()
