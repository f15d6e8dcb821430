"""Following a thread over a real SIGKILL of its worker: each chunk once, in order, and what was lost with it told."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pregel.types import FollowedChunk
from tests.kill.owners import saver_at
from tests.kill.phases import LINES, PHASES, job, place, start


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the threads are: a path or a DSN."""
    if request.param == "postgres":
        dsn: str = request.getfixturevalue("dsn")
        return dsn
    return str(tmp_path / "threads.db")


def until(chunks: Iterator[FollowedChunk], data: Any) -> list[FollowedChunk]:
    """The chunks up to the one with this data."""
    found = []
    for chunk in chunks:
        found.append(chunk)
        if chunk.data == data:
            return found
    raise AssertionError(f"{data!r} never came; {found}")


def lines_of(name: str, lines: int = LINES) -> list[str]:
    """What a phase tells."""
    return [f"{name} {number}" for number in range(lines)]


@pytest.mark.acceptance("S0-20", "S0-23")
def test_a_follower_sees_the_dead_attempt_and_the_next_one_in_one_stream(store: str) -> None:
    worker = start("work", store, "t", "die")
    assert worker.stdin is not None
    assert worker.stdout is not None
    assert worker.stdout.readline() == "told\n"
    with saver_at(store) as watching, saver_at(store) as saver:
        chunks = job(watching).follow(place("t"))
        before = until(chunks, "review 2")
        worker.communicate("die\n")
        assert -signal.SIGKILL == worker.returncode
        with ThreadPoolExecutor(1) as heir:
            heir.submit(job(saver).invoke, None, place("t")).result()
        after = list(chunks)
        again = list(job(saver).follow(place("t")))

        from_the_end = list(job(saver).follow(place("t"), offset=after[-1].next_offset))

    assert [("status", 2)] * 3 == [(one.mode, one.attempt) for one in (after[-1], again[-1], *from_the_end)]
    seen = [*before, *after]
    assert list(range(len(seen))) == [chunk.offset for chunk in seen]
    assert [1, 2] == [chunk.data["attempt"] for chunk in seen if chunk.mode == "attempt"]
    told = {chunk.offset: chunk.data for chunk in again if chunk.mode == "custom"}
    (spans,) = (chunk.data["superseded"] for chunk in seen if chunk.mode == "attempt" and chunk.attempt == 2)
    lost = [told[offset] for first, last in spans for offset in range(first, last + 1)]
    assert lines_of("review")[:3] == [line for line in lost if line != "the tail"]
    assert lost == [chunk.data for chunk in again if chunk.superseded]
    assert [("plan", 1), ("review", 2), ("report", 2)] == phases(again)
    kept = [chunk.data for chunk in again if chunk.mode == "custom" and chunk.landed]
    assert [line for name in PHASES for line in lines_of(name)] == kept


def phases(chunks: list[FollowedChunk]) -> list[tuple[str, int]]:
    """Each completed phase, and the attempt that completed it."""
    return [(name, chunk.attempt) for chunk in chunks if chunk.mode == "updates" for name in chunk.data]


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(3))
def test_a_follower_in_a_third_process_misses_nothing_over_many_deaths(store: str, turn: int) -> None:
    thread = f"t{turn}"
    watcher: subprocess.Popen[str] | None = None
    heard: list[dict[str, Any]] = []
    deaths = 0
    with ThreadPoolExecutor(1) as pool, ExitStack() as opened:
        for seed in count(100 * turn):
            worker = start("hammer", store, thread, seed)
            output, errors = worker.communicate(timeout=120)
            if watcher is None and has_begun(store, thread):
                watcher = opened.enter_context(start("watch", store, thread, 0))
                reading = pool.submit(read, watcher, heard)
            if output == "done\n":
                break
            assert -signal.SIGKILL == worker.returncode, errors
            deaths += 1
        assert watcher is not None
        reading.result(120)
    assert deaths

    assert list(range(len(heard))) == [chunk["offset"] for chunk in heard]
    with saver_at(store) as saver:
        chunks = list(job(saver).follow(place(thread)))
        assert [] == saver.verify(thread)
    assert [(one["offset"], one["mode"], one["data"]) for one in heard[:-1]] == [
        (one.offset, one.mode, one.data) for one in chunks[:-1]
    ]
    kept = [chunk.data for chunk in chunks if chunk.mode == "custom" and chunk.landed]
    assert [line for name in PHASES for line in lines_of(name, 400)] == kept
    for attempt in {chunk.attempt for chunk in chunks}:
        for name in PHASES:
            mine = [one.data for one in chunks if one.attempt == attempt and str(one.data).startswith(f"{name} ")]
            assert lines_of(name, 400)[: len(mine)] == mine  # a tail may be missing, nothing before it
    assert list(PHASES) == [name for name, _ in phases(chunks)]


def has_begun(store: str, thread: str) -> bool:
    with saver_at(store) as saver:
        return bool(saver.load(thread, []).thread.tno)


def read(watcher: subprocess.Popen[str], heard: list[dict[str, Any]]) -> None:
    assert watcher.stdout is not None
    for line in watcher.stdout:
        heard.append(json.loads(line))
    assert watcher.stderr is not None
    assert "" == watcher.stderr.read()
