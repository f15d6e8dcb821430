"""Work that is done elsewhere while processes are killed: an item is neither lost nor made twice, a result is kept."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .points import thinned
from .test_agents import play

WAITING = {"status": "waiting", "shipped": None, "backlog": [["ShipOrder", "1", 1, 0]]}
DONE = {"status": "idle", "shipped": "book", "backlog": []}
POINTS = {
    f"{when} {what}": 2 if (what, when) == ("the end", "before") else 1
    for what in ("the rest", "the claim", "the end", "the taking")
    for when in ("before", "after")
} | {"in the code": 2}  # point -> how often the code runs


class Shop:
    """One order over many processes."""

    def __init__(self, directory: Path, store: str) -> None:
        self.directory, self.store = directory, store

    def __call__(self, step: str, kill_at: str = "") -> Any:
        """What a process said; None when it died."""
        return play(self.directory, self.store, step, kill_at=kill_at, program="shipping")

    @property
    def log(self) -> Counter[str]:
        return Counter(line.split(" ")[0] for line in self.lines)

    @property
    def lines(self) -> list[str]:
        return (self.directory / "log").read_text().splitlines()


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    store = str(tmp_path / "threads.db") if request.param == "sqlite" else request.getfixturevalue("dsn")
    return Shop(tmp_path, store)


@pytest.mark.acceptance("S3-3", "S3-7")
@pytest.mark.parametrize("point", thinned(POINTS))
def test_an_order_is_shipped_wherever_a_process_dies(shop: Shop, point: str) -> None:
    assert WAITING == (shop("order", point) or shop("order"))
    for step in ("ship", "go"):
        if shop(step, point) is None:
            shop(step)

    assert DONE == shop("go")
    assert (shop.directory / "died").exists()
    assert {"shipping": POINTS[point], "shipped": 1} == shop.log
    assert 1 == len({line for line in shop.lines if line.startswith("shipping")})


@pytest.mark.parametrize("point", thinned(["before the end", "after the end", "before the taking"]))
def test_a_failure_fails_the_run_wherever_a_process_dies(shop: Shop, point: str) -> None:
    shop("order")
    for step in ("refuse", "go"):
        if shop(step, point) is None:
            shop(step)
    assert {"status": "failed", "shipped": None, "backlog": []} == shop("go")

    assert WAITING == shop("order")
    assert [DONE["status"]] == [(shop("ship"), shop("go"))[1]["status"]]


def test_a_failure_that_nobody_was_told_of_is_asked_for_once_more(shop: Shop) -> None:
    shop("order")
    shop("refuse")
    assert shop("go", "after the taking") is None

    assert WAITING == shop("go")
