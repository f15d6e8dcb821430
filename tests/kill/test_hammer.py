"""The hammer: eight processes on one thread and on fifty, killed and cut off at random, on both stores.

On PostgreSQL they come through a proxy, which cuts all of them off at once, or one of them before or after the server
has done what it was told.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.records import Page
from tests.proxy import Proxy, standing

from .owners import saver_at, start, two_nodes

SECONDS, PROCESSES, KILLS = 60.0, 8, 40


class Worker:
    """One of the processes and what it told; it is started anew after each kill."""

    def __init__(self, where: str, name: str, threads: int, until: float, told: list[list[str]]) -> None:
        self.where, self.name, self.threads, self.until, self.told = where, name, threads, until, told
        self.lives = 0
        self.begin()

    def begin(self) -> None:
        self.lives += 1
        self.process = start("hammer", self.where, f"{self.name}.{self.lives}", self.threads, self.until)
        self.reader = threading.Thread(target=self._read, args=(self.process,))
        self.reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.told.extend(line.split() for line in process.stdout if line.endswith("\n"))

    def kill(self) -> None:
        self.process.kill()
        self.end()
        self.begin()

    def end(self) -> None:
        self.process.wait()
        self.reader.join()
        assert self.process.stderr is not None
        assert self.process.stderr.read() == ""
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("threads", [1, 50])
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_every_acknowledged_update_is_there_exactly_once(
    request: pytest.FixtureRequest, tmp_path: Path, store: str, threads: int
) -> None:
    where = str(tmp_path / "threads.db") if store == "sqlite" else str(request.getfixturevalue("dsn"))
    with saver_at(where) as saver:
        saver.threads()  # the tables are there before eight processes make them at once
    chance = random.Random(threads)
    told: list[list[str]] = []
    until = time.time() + SECONDS
    with ExitStack() as stack:
        proxy = stack.enter_context(standing(Proxy(where))) if store == "postgres" else None
        through = where if proxy is None else proxy.dsn
        workers = [Worker(through, f"w{number}", threads, until, told) for number in range(PROCESSES)]
        pause = threading.Event()
        cuts = 0
        while time.time() < until - 3:
            pause.wait(SECONDS / KILLS)
            chance.choice(workers).kill()
            if proxy is not None:
                cuts += 1
                if chance.random() < 0.25:
                    proxy.cut_all()
                else:
                    proxy.cut(chance.randrange(1, 50), chance.choice(("before", "after")))
        for worker in workers:
            worker.end()

    acked = {(thread, token): float(seconds) for kind, thread, token, seconds in told if kind == "acked"}
    unclear = Counter(what for kind, _, _, what in told if kind == "unclear")
    with saver_at(where) as saver:
        app = two_nodes(saver, lambda: "")
        found: Counter[tuple[str, str]] = Counter()
        for row in saver.threads():
            config: Any = {"configurable": {"thread_id": row.thread}}
            found.update((row.thread, token) for token in app.get_state(config).values.get("a", []))
            ids = {saved.id for _, saved in saver.page(row.thread, Page())}
            assert saver.verify(row.thread) == []
            assert all(saved.parent is None or saved.parent in ids for _, saved in saver.page(row.thread, Page()))
    waits = sorted(acked.values())  # shown, not judged: a busy machine lets everybody wait
    print(
        f"{store}, {threads} threads: {len(acked)} acknowledged, {len(found)} stored, {cuts} cuts, "
        f"{sum(worker.lives for worker in workers)} lives, "
        f"median {waits[len(waits) // 2]:.3f} s, slowest {waits[-1]:.3f} s, {dict(unclear)}"
    )
    assert [key for key in acked if found[key] != 1] == []
    assert max(found.values()) == 1
    assert len(acked) > KILLS  # thousands; how many is a matter of the machine
    assert not set(unclear) - {"AuthorityLost"}
