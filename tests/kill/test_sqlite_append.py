"""SIGKILL of a writer: what was acknowledged is there, and the next process goes on from it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pregel.checkpoint.lease import is_dead
from pregel.checkpoint.records import Load, Page
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import StoreError
from tests.behaviour.journals import Run

ROOT = Path(__file__).parents[2]

WRITER = """
import sys
from pregel.checkpoint.lease import is_dead
from pregel.checkpoint.sqlite import SqliteSaver
from tests.behaviour.journals import Run

path, synchronous = sys.argv[1:]
with SqliteSaver.from_conn_string(path, synchronous=synchronous) as saver:
    run = Run(saver)
    row = run.opened.thread
    dead = row.run is not None and row.owner is not None and is_dead(row.owner, row.run)
    assert run.claim(dead=dead).landed
    start = run.step + 2
    for i in range(start, 100_000):
        append = run.blank()
        run.add_writes(append, [("a", i)]) if run.checkpoint else None
        checkpoint = run.add_save(append, {"a": i, "b": "x" * (i % 150)})
        if not run.send(append).landed:
            sys.exit("refused")
        print(i, checkpoint, flush=True)
"""


def start(path: Path, synchronous: str) -> subprocess.Popen[str]:
    """A process that appends until it is killed, and tells each append that landed."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, path, synchronous],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("synchronous", ["NORMAL", "FULL"])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_no_acknowledged_append_is_lost(tmp_path: Path, seed: int, synchronous: str) -> None:
    chance = random.Random(seed)
    path = tmp_path / "threads.db"
    acknowledged: list[tuple[int, str]] = []

    for _ in range(4):  # each heir goes on where the killed one was
        with start(path, synchronous) as worker:
            assert worker.stdout is not None
            heard = [worker.stdout.readline() for _ in range(chance.randrange(1, 60))]
            worker.send_signal(signal.SIGKILL)
            heard += worker.stdout.readlines()  # acknowledged before the kill; the last line may be cut short
        for line in heard:
            if line.endswith("\n"):
                number, checkpoint = line.split()
                acknowledged.append((int(number), checkpoint))

    with SqliteSaver.from_conn_string(path) as saver:
        history = [saved for _, saved in saver.page("t", Page())][::-1]
        heir = Run(saver)
    stored = [(saved.values["a"], saved.id) for saved in history]
    assert set(acknowledged) <= set(stored)
    assert list(range(len(stored))) == [number for number, _ in stored]
    assert [None, *(saved.id for saved in history)][: len(history)] == [saved.parent for saved in history]
    assert len(stored) <= len(acknowledged) + 4  # at most one that landed unheard for each kill
    row = heir.opened.thread
    assert row.owner is not None
    assert row.run is not None
    assert is_dead(row.owner, row.run)
    assert heir.opened.heads == {"": stored[-1][1]}


def test_a_stopped_process_is_refused_when_it_wakes(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    with start(path, "NORMAL") as worker, SqliteSaver.from_conn_string(path, busy_timeout=0.2) as saver:
        assert worker.stdout is not None
        assert worker.stderr is not None
        heir = None
        while heir is None:  # stopped in the middle of a write it holds the lock: then it goes on for a moment
            worker.stdout.readline()
            worker.send_signal(signal.SIGSTOP)
            heir = heir_of(saver)
            if heir is None:
                worker.send_signal(signal.SIGCONT)
        heir.save({"a": "heir"})
        worker.send_signal(signal.SIGCONT)
        _, errors = worker.communicate()

        assert "refused\n" == errors
        assert "heir" == saver.load("t", [Load()]).saved[0].values["a"]  # type: ignore[union-attr]
        assert heir.send(heir.blank()).landed


def heir_of(saver: SqliteSaver) -> Run | None:
    """A run that took the thread of a stopped process, as if its lease had lapsed."""
    try:
        heir = Run(saver)
        row = heir.opened.thread
        assert row.owner is not None
        assert row.run is not None
        assert not is_dead(row.owner, row.run)
        return heir if heir.claim(dead=True).landed else None
    except StoreError:
        return None
