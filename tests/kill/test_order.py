"""An order that is charged over several processes, one superstep each, and one that is killed after a record."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import os, signal, sys
from pathlib import Path
from typing import TypedDict

from pregel import START, StateGraph
from pregel.checkpoint.sqlite import SqliteSaver

here, call = Path(sys.argv[1]), sys.argv[2]
durability = sys.argv[3] if len(sys.argv) > 3 else "sync"


class Order(TypedDict, total=False):
    subtotal: int
    total: int
    receipt: str


def effect(name):
    with open(here / "effects", "a") as log:
        log.write(name + "\\n")


def read_subtotal(order):
    effect("read")
    return {"subtotal": 100}


def add_shipping(order):
    if call == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"total": order["subtotal"] + 10}


def charge(order):
    effect(f"charge {order['total']}")
    return {"receipt": "receipt-7"}


graph = StateGraph(Order)
graph.add_sequence([read_subtotal, add_shipping, charge])
graph.add_edge(START, "read_subtotal")
with SqliteSaver.from_conn_string(here / "orders.db") as saver:
    pauses = "*" if call in ("first", "next") else None
    app = graph.compile(checkpointer=saver, interrupt_after=pauses)
    config = {"configurable": {"thread_id": "order"}}
    result = app.invoke({} if call in ("first", "killed") else None, config, durability=durability)
    print(result.get("receipt"), app.get_state(config).next)
"""


def process(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(here), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def effects(here: Path) -> list[str]:
    return (here / "effects").read_text().splitlines()


@pytest.mark.acceptance("S4-2")
def test_an_order_takes_three_activations_and_each_effect_happens_once(tmp_path: Path) -> None:
    shown = [process(tmp_path, call).stdout.strip() for call in ("first", "next", "next")]

    assert shown == ["None ('add_shipping',)", "None ('charge',)", "receipt-7 ()"]
    assert effects(tmp_path) == ["read", "charge 110"]


@pytest.mark.acceptance("S4-15", "S5-3")
def test_a_crash_after_a_record_repeats_nothing_that_was_recorded(tmp_path: Path) -> None:
    killed = process(tmp_path, "killed")
    resumed = process(tmp_path, "resume")

    assert killed.returncode == -signal.SIGKILL
    assert resumed.stdout.strip() == "receipt-7 ()", resumed.stderr
    assert effects(tmp_path) == ["read", "charge 110"]
