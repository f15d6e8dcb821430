"""`pregel start` and `pregel worker`: a run is admitted by one command, and run by the other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any
from urllib.request import urlopen

import pytest

import pregel
from pregel.checkpoint.sqlite import SqliteSaver

SHOP = """
    from typing import TypedDict

    from pregel.graph import START, StateGraph

    class Order(TypedDict, total=False):
        item: str
        shipped: bool

    builder = StateGraph(Order).add_node("ship", lambda order: {"shipped": True}).add_edge(START, "ship")
    orders = builder.compile(name="orders")

    async def ship(order):
        return {"shipped": True}

    awaited = StateGraph(Order).add_node("ship", ship).add_edge(START, "ship").compile(name="awaited")
"""


class Shop:
    """A directory of a user, with graphs in shop.py."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "shop.py").write_text(dedent(SHOP))
        source = str(Path(pregel.__file__).parents[1])
        self.environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(directory), source])}

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "pregel", *words]

    def __call__(self, *words: str) -> tuple[int, str]:
        """The exit code, and what was printed."""
        done = subprocess.run(
            self.command(*words),
            cwd=self.directory,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def standing(self) -> dict[str, str]:
        with SqliteSaver.from_conn_string(self.directory / "pregel.db") as saver:
            return {row.thread: row.status for row in saver.threads()}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def start(shop: Shop, item: str = "book", graph: str = "shop:orders") -> tuple[int, str]:
    return shop("start", graph, "--input", json.dumps({"item": item}), "--key", "o-1", "--json")


@pytest.mark.parametrize("graph", ["shop:orders", "shop:awaited"])
def test_what_one_command_starts_another_runs(shop: Shop, graph: str) -> None:
    (first, told), (second, again) = start(shop, graph=graph), start(shop, graph=graph)
    admitted, known = json.loads(told), json.loads(again)

    assert (0, 0, "o-1", "pending") == (first, second, admitted["thread"], admitted["status"])
    assert (False, True, admitted["run"]) == (admitted["existing"], known["existing"], known["run"])
    assert {"o-1": "pending"} == shop.standing()
    assert (0, "") == shop("worker", graph, "--once")
    assert {"o-1": "idle"} == shop.standing()


def test_a_key_of_something_else_and_a_graph_without_a_name_are_refused(shop: Shop) -> None:
    start(shop)
    other, conflict = start(shop, "lamp")
    unnamed, why = start(shop, graph="shop:builder")

    assert (2, 2) == (other, unnamed)
    assert "was not started with this graph, input and config" in conflict
    assert "has no name" in why
    assert {"o-1": "pending"} == shop.standing()


def test_a_worker_tells_how_threads_stand_and_ends_when_it_is_told_to(shop: Shop) -> None:
    start(shop)
    command = shop.command("worker", "shop:orders", "--http", "0")
    with subprocess.Popen(
        command, cwd=shop.directory, env=shop.environment, stdout=subprocess.PIPE, text=True
    ) as worker:
        assert worker.stdout is not None
        page = worker.stdout.readline().split()[-1]
        while (told := status(page)) != "idle":
            assert told in ("pending", "running")
        worker.send_signal(signal.SIGTERM)
        assert 0 == worker.wait(60)

    assert {"o-1": "idle"} == shop.standing()


def status(page: str) -> Any:
    with urlopen(page.replace("ID", "o-1")) as answer:
        return json.load(answer)["status"]
