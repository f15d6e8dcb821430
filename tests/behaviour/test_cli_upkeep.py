"""`pregel prune` and `pregel verify` on a database with threads in it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli import main
from tests.behaviour.journals import Run

Captured = pytest.CaptureFixture[str]
LONG = "x" * 200


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a database of two threads of three checkpoints."""
    monkeypatch.chdir(tmp_path)
    with SqliteSaver.from_conn_string("pregel.db", synchronous="NORMAL") as saver:
        for thread in ("one", "two"):
            run = Run(saver, thread)
            for number in range(3):
                run.save({"a": [LONG, number]})
            run.release()
    return tmp_path


def counts() -> dict[str, int]:
    """How many checkpoints each thread has."""
    with SqliteSaver.from_conn_string("pregel.db") as saver:
        return {
            row.thread: len(list(saver.list({"configurable": {"thread_id": row.thread}}))) for row in saver.threads()
        }


def told(capsys: Captured) -> Any:
    return json.loads(capsys.readouterr().out)


@pytest.mark.usefixtures("here")
def test_prune_leaves_the_newest_state_of_a_thread(capsys: Captured) -> None:
    assert 0 == main(["prune", "--thread", "one"])

    assert {"one": 1, "two": 3} == counts()
    assert "1 thread reduced to the newest state.\n" == capsys.readouterr().out


@pytest.mark.usefixtures("here")
def test_prune_deletes_threads(capsys: Captured) -> None:
    assert 0 == main(["prune", "--thread", "one", "two", "--delete", "--json"])

    assert {} == counts()
    assert {"threads": ["one", "two"], "strategy": "delete", "problem": ""} == told(capsys)


@pytest.mark.usefixtures("here")
def test_prune_takes_the_threads_that_are_old(capsys: Captured) -> None:
    assert 0 == main(["prune", "--idle-for", "1h", "--json"])
    assert [] == told(capsys)["threads"]

    assert 0 == main(["prune", "--idle-for", "0s", "--json"])
    assert ["one", "two"] == told(capsys)["threads"]
    assert {"one": 1, "two": 1} == counts()


@pytest.mark.usefixtures("here")
def test_prune_names_a_thread_that_is_held(capsys: Captured) -> None:
    with SqliteSaver.from_conn_string("pregel.db") as saver:
        Run(saver, "one").claim()

        assert 75 == main(["prune", "--thread", "one", "two"])

    assert "'one': held by a live run" in capsys.readouterr().out
    assert {"one": 3, "two": 1} == counts()


@pytest.mark.usefixtures("here")
def test_verify_finds_whole_threads_whole(capsys: Captured) -> None:
    assert 0 == main(["verify"])
    assert "2 threads: whole." in capsys.readouterr().out

    assert 0 == main(["verify", "--thread", "one", "--json"])
    assert {"threads": 1, "findings": []} == told(capsys)


@pytest.mark.usefixtures("here")
def test_verify_tells_what_is_damaged(capsys: Captured) -> None:
    with sqlite3.connect("pregel.db") as connection:
        connection.execute("DELETE FROM pregel_channel_values WHERE tno = 1 AND at = 2")
    connection.close()

    assert 1 == main(["verify", "--json"])
    found = told(capsys)
    assert [("damaged", "one")] == [(one["kind"], one["thread"]) for one in found["findings"]]
    assert 1 == main(["verify"])
    out = capsys.readouterr().out
    assert "is gone" in out
    assert "2 threads read, 1 finding.\n" in out


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["delete", "--thread", "one"], "1 thread deleted."),
        (["delete", "--thread", "one", "two"], "2 threads deleted."),
        (["prune", "--thread", "one", "--delete"], "1 thread deleted."),
        (["prune", "--idle-for", "1h"], "0 threads reduced to the newest state."),
        (["verify", "--thread", "one"], "1 thread: whole."),
    ],
)
def test_what_was_done_is_counted_in_words_that_fit(call: list[str], said: str, capsys: Captured) -> None:
    main(call)

    assert f"{said}\n" == capsys.readouterr().out
