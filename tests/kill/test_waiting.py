"""Threads that wait while their processes are killed: an event is taken once, a reminder sent at most once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from .points import thinned
from .test_agents import play
from .waiting import NOON


class Life:
    """One thread over many processes."""

    def __init__(self, directory: Path, store: str) -> None:
        self.directory, self.store = directory, store

    def __call__(self, *words: object, kill_at: str = "") -> Any:
        """What a process said; None when it died."""
        return play(self.directory, self.store, *map(str, words), kill_at=kill_at, program="waiting")

    @property
    def log(self) -> Counter[str]:
        return Counter((self.directory / "log").read_text().splitlines())


@pytest.fixture(params=["sqlite", "postgres"])
def life(request: pytest.FixtureRequest, tmp_path: Path) -> Life:
    store = str(tmp_path / "threads.db") if request.param == "sqlite" else request.getfixturevalue("dsn")
    return Life(tmp_path, store)


@pytest.mark.parametrize(
    "point", thinned(["before the rest", "after the rest", "before the taking", "after the taking", "got 1"])
)
def test_an_event_is_taken_once_wherever_the_process_dies(life: Life, point: str) -> None:
    died = [life("review", kill_at=point) is None]
    if died == [True]:
        life("review")
    assert [(False, True), (True, False)] == [
        (sent["repeated"], sent["awaited"]) for sent in (life("send", "e1", "a"), life("send", "e1", "again"))
    ]
    died += [life("review", 30, kill_at=point) is None for _ in range(2)]
    assert "e2" == life("send", "e2", "b")["id"]
    told = life("review", 20)

    assert (1, {"got": ["a", "b"], "status": "idle", "due": []}) == (sum(died), told)


@pytest.mark.acceptance("S2-5", "S6-9")
@pytest.mark.parametrize("point", ["after the rest", "before the taking"])
def test_a_deadline_does_not_move_over_restarts(life: Life, point: str) -> None:
    first = life("review", kill_at=point) or life("review")
    told = [life("review", 25) for _ in range(2)]
    assert [[NOON + 60]] * 2 == [one["due"] for one in told]
    assert (first is None) or first["due"] == [NOON + 60]

    life("send", "e1", "in time")
    life("review", 15, kill_at=point)
    second = life("review")
    assert {"got": [], "status": "waiting"} == {key: second[key] for key in ("got", "status")}
    (due,) = second["due"]
    assert {"got": ["in time", None], "status": "idle", "due": []} == life("review", due - NOON)


@pytest.mark.acceptance("S2-23")
@pytest.mark.parametrize(
    ("point", "sent"), thinned([("after the rest", 1), ("woken", 1), ("before the mail", 0), ("after the mail", 1)])
)
def test_a_reminder_is_sent_at_most_once_over_restarts(life: Life, point: str, sent: int) -> None:
    (life.directory / "status").write_text("Declined")
    life("reminder", kill_at=point)
    assert "waiting" == life("reminder", 3599, kill_at=point)["status"]
    assert not (life.directory / "log").exists()

    for _ in range(3):
        life("reminder", 1, kill_at=point)
    assert sent == life.log["sent cycle:reminder-1"]
    assert (life.directory / "died").exists()


@pytest.mark.acceptance("S2-23")
def test_nobody_is_reminded_who_has_paid(life: Life) -> None:
    (life.directory / "status").write_text("Declined")
    life("reminder")
    (life.directory / "status").write_text("Paid")

    assert ["nothing to remind of"] == life("reminder", 3600)["got"]
    assert not (life.directory / "log").exists()
