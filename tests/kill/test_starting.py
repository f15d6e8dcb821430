"""Starts and workers that are killed: what was admitted runs, once, and whoever is left takes up what others left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pregel.durable import Worker

from .outside import Outside
from .owners import ROOT, row_at, saver_at
from .points import thinned
from .starting import shop as shop_of
from .test_agents import play


class Shop:
    """One store over many processes."""

    def __init__(self, directory: Path, store: str) -> None:
        self.directory, self.store = directory, store

    def __call__(self, *words: str, kill_at: str = "") -> Any:
        """What a process said; None when it died."""
        return play(self.directory, self.store, *words, kill_at=kill_at, program="starting")

    @property
    def done(self) -> dict[str, int]:
        log = self.directory / "log"
        return Counter(log.read_text().splitlines()) if log.exists() else {}


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Shop:
    store = str(tmp_path / "threads.db") if request.param == "sqlite" else request.getfixturevalue("dsn")
    return Shop(tmp_path, store)


@pytest.mark.acceptance("S2-12")
@pytest.mark.parametrize(
    "point", thinned(["before the admission", "after the admission", "before the claim", "after the claim"])
)
def test_what_was_admitted_runs_once_wherever_a_process_dies(shop: Shop, point: str) -> None:
    told = shop("start", "o-1", kill_at=point)
    if told is None and point == "before the admission":
        assert 0 == shop("work")  # nothing of it was stored
    works = [shop("work", kill_at=point) for _ in range(2)]
    again = shop("start", "o-1", kill_at=point)
    works += [shop("work") for _ in range(2)]

    assert point != "before the admission" or not again["existing"]
    assert point == "before the admission" or again["existing"]
    assert {"packed": 1, "shipped": 1} == shop.done
    assert 1 == sum(told or 0 for told in works)
    assert (shop.directory / "died").exists()


@pytest.mark.acceptance("S0-5")
def test_another_worker_goes_on_with_what_one_left_and_nobody_tells_it_to(shop: Shop) -> None:
    shop("start", "o-1")

    assert shop("work", kill_at="in a node") is None

    assert {"o-1": "idle"} == shop("serve")
    assert {"packed": 1, "shipped": 1} == shop.done


@pytest.mark.acceptance("S0-5")
def test_a_worker_that_froze_is_replaced_once_its_lease_is_over(shop: Shop) -> None:
    """No sooner, and with nothing of the frozen one in the way when it comes back."""
    shop("start", "o-1")
    command = [sys.executable, "-m", "tests.kill.starting", str(shop.directory), shop.store, "stall"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as frozen,
        saver_at(shop.store) as saver,
    ):
        assert frozen.stdout is not None
        assert "shipping" == frozen.stdout.readline().strip()
        frozen.send_signal(signal.SIGSTOP)
        worker = Worker(shop_of(Outside(shop.directory), saver))
        lapsed = False
        while not worker.run_once():
            assert not lapsed  # the first look after it has lapsed takes the run up
            lapsed = row_at(saver, "o-1").lapsed
        done = row_at(saver, "o-1")
        frozen.send_signal(signal.SIGCONT)
        told, _ = frozen.communicate("go on\n", timeout=60)

        assert ("0", 0) == (told.strip(), frozen.returncode)  # what it did after that was not its run any more
        assert ("idle", done) == (done.status, row_at(saver, "o-1"))
    assert 1 == shop.done["packed"]
