"""A question overnight: its worker is gone, other code is deployed, and another worker goes on in the morning."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .owners import ROOT

CODE = """
import operator
from typing import Annotated, TypedDict
from pregel import START, StateGraph, interrupt

class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]

def note(line):
    with open("log", "a") as log:
        log.write(line + "\\n")
    return {"log": [line]}

def quote(state):
    return note("quoted by VERSION")

def ask(state):
    return {"log": [interrupt("order it?")]}

def ship(state):
    return note("shipped by VERSION")

graph = StateGraph(State).add_sequence([quote, ask, ship]).add_edge(START, "quote")
"""
MORE = """
def thank(state):
    return note("thanked by VERSION")

graph.add_node("thank", thank).add_edge("ship", "thank")
"""
WORKER = """
import json, os, signal, sys, time
where, hours, answer = sys.argv[1:]
real, real_ns = time.time, time.time_ns
time.time = lambda: real() + 3600 * int(hours)
time.time_ns = lambda: real_ns() + 3600 * int(hours) * 10**9
from pregel import Command
from tests.kill.owners import saver_at
import order

with saver_at(where) as saver:
    app = order.graph.compile(checkpointer=saver)
    given = Command(resume=answer) if answer else {"log": []}
    print(json.dumps(app.invoke(given, {"configurable": {"thread_id": "order"}})["log"]), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that several processes share."""
    return str(tmp_path / "threads.db") if request.param == "sqlite" else str(request.getfixturevalue("dsn"))


def worker(directory: Path, where: str, hours: int, answer: str = "") -> list[str]:
    """What a thread holds after a worker had it; the worker is killed then."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(directory), str(ROOT)))}
    command = [sys.executable, "-c", WORKER, where, str(hours), answer]
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert -signal.SIGKILL == done.returncode, done.stderr
    told: list[str] = json.loads(done.stdout)
    return told


@pytest.mark.acceptance("S5-6")
def test_another_worker_goes_on_in_the_morning_with_the_code_of_a_deploy(where: str, tmp_path: Path) -> None:
    (tmp_path / "order.py").write_text(CODE.replace("VERSION", "v1"))
    evening = worker(tmp_path, where, 0)
    (tmp_path / "order.py").write_text((CODE + MORE).replace("VERSION", "v2"))

    morning = worker(tmp_path, where, 12, "yes")

    assert ["quoted by v1"] == evening
    assert ["quoted by v1", "yes", "shipped by v2", "thanked by v2"] == morning
    assert ["quoted by v1", "shipped by v2", "thanked by v2"] == (tmp_path / "log").read_text().splitlines()
