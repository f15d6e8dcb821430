"""SIGKILL of a writer and of the server: what was acknowledged is there, once, and the next one goes on from it."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pregel.checkpoint.lease import is_dead
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.records import Load, Page
from pregel.errors import AuthorityLost
from tests import postgres as servers
from tests.behaviour.journals import Run

ROOT = Path(__file__).parents[2]

WRITER = """
import sys
from pregel.checkpoint.lease import is_dead
from pregel.checkpoint.postgres import PostgresSaver
from tests.behaviour.journals import Run

with PostgresSaver.from_conn_string(sys.argv[1]) as saver:
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


def start(dsn: str) -> subprocess.Popen[str]:
    """A process that appends until it is killed, and tells each append that landed."""
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, dsn], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def heard_from(lines: list[str]) -> list[tuple[int, str]]:
    """The acknowledged appends; the last line may be cut short."""
    whole = (line.split() for line in lines if line.endswith("\n"))
    return [(int(number), checkpoint) for number, checkpoint in whole]


def check_history(saver: PostgresSaver, acknowledged: list[tuple[int, str]], unheard: int) -> None:
    """Every acknowledged append is stored, in one unbroken chain; at most so many more landed unheard."""
    history = [saved for _, saved in saver.page("t", Page())][::-1]
    stored = [(saved.values["a"], saved.id) for saved in history]
    assert set(acknowledged) <= set(stored)
    assert list(range(len(stored))) == [number for number, _ in stored]
    assert [None, *(saved.id for saved in history)][: len(history)] == [saved.parent for saved in history]
    assert len(stored) <= len(acknowledged) + unheard


def test_no_acknowledged_append_is_lost_with_its_process(dsn: str) -> None:
    chance = random.Random(0)
    acknowledged: list[tuple[int, str]] = []

    for _ in range(4):  # each heir goes on where the killed one was
        with start(dsn) as worker:
            assert worker.stdout is not None
            heard = [worker.stdout.readline() for _ in range(chance.randrange(1, 60))]
            worker.send_signal(signal.SIGKILL)
            acknowledged += heard_from(heard + worker.stdout.readlines())

    with PostgresSaver.from_conn_string(dsn) as saver:
        check_history(saver, acknowledged, unheard=4)
        row = Run(saver).opened.thread
        assert row.owner is not None
        assert row.run is not None
        assert is_dead(row.owner, row.run)


def test_a_stopped_process_is_refused_when_it_wakes(dsn: str) -> None:
    with start(dsn) as worker, PostgresSaver.from_conn_string(dsn) as saver:
        assert worker.stdout is not None
        assert worker.stderr is not None
        worker.stdout.readline()
        heir = None
        while heir is None or not heir.claim(dead=True).landed:  # its last append may land after we have looked
            worker.send_signal(signal.SIGSTOP)
            heir = Run(saver)
        heir.save({"a": "heir"})
        worker.send_signal(signal.SIGCONT)
        _, errors = worker.communicate()

        assert "refused\n" == errors
        assert "heir" == saver.load("t", [Load()]).saved[0].values["a"]  # type: ignore[union-attr]
        assert heir.send(heir.blank()).landed


@pytest.fixture
def server() -> Iterator[servers.Server]:
    """A server that may be killed."""
    binaries = servers.from_wheel() or servers.from_system()
    if binaries is None:
        pytest.skip(servers.MISSING)
    own = servers.Server(binaries)
    yield own
    own.stop()


def test_no_acknowledged_append_is_lost_with_the_server(server: servers.Server) -> None:
    chance = random.Random(1)
    heard: list[str] = []
    rounds = 3

    with start(server.dsn()) as worker:
        assert worker.stdout is not None
        for _ in range(rounds):  # one writer goes on over all of them
            heard += [worker.stdout.readline() for _ in range(chance.randrange(20, 80))]
            server.kill()
            server.start()
        heard += [worker.stdout.readline() for _ in range(5)]
        worker.send_signal(signal.SIGKILL)
        heard += worker.stdout.readlines()

    with PostgresSaver.from_conn_string(server.dsn()) as saver:
        check_history(saver, heard_from(heard), unheard=1)


def test_two_owners_with_a_failing_server_never_mix(server: servers.Server) -> None:
    """Take-overs of a live run while connections break: of each step one owner's record is stored."""
    chance = random.Random(2)
    acknowledged: list[str] = []
    with PostgresSaver.from_conn_string(server.dsn()) as one, PostgresSaver.from_conn_string(server.dsn()) as two:
        current = Run(one)
        for round in range(60):
            if chance.random() < 0.3:
                stale, current = current, Run(two if current.saver is one else one)
                assert current.claim(dead=True).landed
                append = stale.blank()
                stale.add_save(append, {"a": "stale"})
                assert not stale.saver.append(append).landed
            if chance.random() < 0.1:
                server.kill()
                server.start()
            with suppress(AuthorityLost):
                acknowledged.append(current.save({"a": round}))

        history = [saved.id for _, saved in one.page("t", Page())][::-1]
    assert acknowledged == history
