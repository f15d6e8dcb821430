"""Small workflows whose processes are killed: what was recorded, accepted, drawn or asked stays so."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.sqlite import SqliteSaver

from .test_agents import play
from .works import CHILDREN


def work(directory: Path, name: str, *answered: object, kill_at: str = "") -> Any:
    """What the workflow came to; None when it died before it had said so."""
    return play(directory, name, *map(str, answered), kill_at=kill_at, program="works")


def lines(directory: Path) -> list[str]:
    return (directory / "log").read_text().splitlines()


@pytest.mark.acceptance("S2-16")
@pytest.mark.parametrize(("point", "submissions"), [("accepted", 2), ("polled", 2), ("recorded", 1)])
def test_an_operation_is_found_again_by_its_key_and_a_recorded_one_is_not_asked_for(
    tmp_path: Path, point: str, submissions: int
) -> None:
    assert work(tmp_path, "provision", kill_at=point) is None

    told = work(tmp_path, "provision", kill_at=point)

    log = Counter(lines(tmp_path))
    assert {"submitted": submissions, "database created": 1, "polled": 3} == log
    (operation,) = (tmp_path / "operations").iterdir()
    assert [operation.name, "announced"] == told["log"]


@pytest.mark.acceptance("S2-10")
@pytest.mark.parametrize(
    ("program", "outcome"), [("post", "posted 10"), ("careless_post", "refused: another request under this key")]
)
def test_a_posting_offers_the_same_key_with_the_same_request(tmp_path: Path, program: str, outcome: str) -> None:
    (tmp_path / "price").write_text("10")
    assert work(tmp_path, program, kill_at="posted") is None
    (tmp_path / "price").write_text("12")

    told = work(tmp_path, program)

    assert [outcome] == told["log"]
    assert ["posted 10"] == lines(tmp_path)


@pytest.mark.acceptance("S4-5")
def test_what_was_scheduled_is_delivered_again_and_not_scheduled_again(tmp_path: Path) -> None:
    assert work(tmp_path, "sends", kill_at="in 1") is None

    told = work(tmp_path, "sends", kill_at="in 1")

    assert ["0", "1", "2"] == told["log"]
    done = [line.split() for line in lines(tmp_path)]
    assert ["0", "1", "1", "2"] == [number for number, _, _ in done]
    assert 3 == len({task for _, task, _ in done})
    assert ["1", "2"] == [attempt for number, _, attempt in done if number == "1"]
    with SqliteSaver.from_conn_string(tmp_path / "threads.db") as saver:
        counted = {
            task: value[:2]
            for found in saver.list({"configurable": {"thread_id": "work"}})
            for task, channel, value in found.pending_writes or ()
            if channel == "__attempt__"
        }
    assert [1, 0] == counted[done[1][1]]  # one delivery more, and no failure


@pytest.mark.acceptance("S4-9")
def test_clock_id_and_chance_are_drawn_once(tmp_path: Path) -> None:
    assert work(tmp_path, "draws", kill_at="drawn") is None

    told = work(tmp_path, "draws", kill_at="drawn")

    before, after = lines(tmp_path)
    assert before == after == "drew " + " ".join(told["log"])


@pytest.mark.acceptance("S4-21")
def test_many_waiting_children_go_on_after_all_processes_were_killed(tmp_path: Path) -> None:
    everybody = list(range(CHILDREN))
    asked = work(tmp_path, "children", kill_at="waiting")
    assert everybody == asked["asked"]
    (tmp_path / "died").unlink()

    assert work(tmp_path, "children", *everybody[:8], kill_at="posted 5") is None
    some = work(tmp_path, "children")
    assert everybody[8:] == some["asked"]
    told = work(tmp_path, "children", *everybody[8:])

    assert ([], [f"{number} yes" for number in everybody]) == (told["asked"], told["log"])
    expected = [f"{what} {number}" for what in ("prepared", "posted") for number in everybody]
    assert dict.fromkeys(expected, 1) == Counter(lines(tmp_path))
