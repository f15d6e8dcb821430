"""Durability `async`: a step waits for the next one's append, but not for long."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.records import Append, Page, Receipt
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import StoreError
from pregel.testing import crash_matrix

from .conftest import Runner
from .marks import Thread, chain, mark

ROOT = Path(__file__).parents[2]


class Told(SqliteSaver):
    """Tells of each append that it has landed."""

    def heard(self) -> list[int]:
        """The steps of the checkpoints that landed, by append."""
        self.landed: list[list[int]] = []
        self.first_is_stored = threading.Event()
        return []

    def append(self, append: Append) -> Receipt:
        receipt = super().append(append)
        self.landed.append([row.step for row in append.checkpoints])
        if any(1 in steps for steps in self.landed):
            self.first_is_stored.set()
        return receipt


@pytest.mark.acceptance("S1-43")
def test_a_step_is_stored_while_the_next_one_runs(run: Runner, tmp_path: Path, thread: Thread) -> None:
    with Told.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as saver:
        saver.heard()
        stored: list[bool] = []

        def slow(state: Any) -> dict[str, Any]:
            stored.append(saver.first_is_stored.wait(60))
            return {"a": ["slow"]}

        async def aslow(state: Any) -> dict[str, Any]:
            return await asyncio.to_thread(slow, state)

        app = chain("one", "slow", slow=slow if run.name == "sync" else aslow).compile(checkpointer=saver)

        assert ["one", "slow"] == run.invoke(app, {"a": []}, thread("t"), durability="async")["a"]

    assert [True] == stored


def test_steps_that_follow_at_once_share_a_transaction(run: Runner, tmp_path: Path, thread: Thread) -> None:
    names = [f"n{i}" for i in range(20)]
    with Told.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as saver:
        saver.heard()
        app = chain(*names).compile(checkpointer=saver)

        run.invoke(app, {"a": []}, thread("t"), durability="async")

        history = [saved.step for _, saved in saver.page("t", Page())]
        assert [] == saver.verify("t")
    assert list(range(20, -2, -1)) == history
    assert sorted(history) == [step for steps in saver.landed for step in steps]
    assert all(len(steps) <= 2 for steps in saver.landed)  # how many are alone is a matter of the machine


def test_whatever_dies_at_most_one_finished_step_is_lost() -> None:
    report = crash_matrix(chain("a", "b", "c").compile(), {"a": []}, durability="async")

    assert ["done"] == [end.status for end in report.ends]


class Failing(SqliteSaver):
    """Fails from an append on."""

    left = 3

    def append(self, append: Append) -> Receipt:
        self.left -= 1
        if self.left < 0:
            raise StoreError("no disk")
        return super().append(append)


def test_a_step_that_was_held_back_and_could_not_be_stored_fails_the_run(
    run: Runner, tmp_path: Path, thread: Thread
) -> None:
    calls: list[str] = []
    names = [f"n{i}" for i in range(9)]
    with Failing.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as saver:
        app = chain(*names, **{name: mark(name, calls) for name in names}).compile(checkpointer=saver)

        with pytest.raises(StoreError, match="no disk"):
            run.invoke(app, {"a": []}, thread("t"), durability="async")

        stored = max(saved.step for _, saved in saver.page("t", Page()))
        assert len(calls) <= stored + 2
        Failing.left, saver.left = 99, 99
        calls_before, calls[:] = list(calls), []
        assert names == run.invoke(app, None, thread("t"), durability="async")["a"]
        assert len(calls_before) + len(calls) <= len(names) + 2
        Failing.left = 3


EXIT = """
import sys
from pregel.checkpoint.sqlite import SqliteSaver
from tests.behaviour.marks import chain

saver = SqliteSaver.at(sys.argv[1])
app = chain("one", "two", "three").compile(checkpointer=saver)
kept = app.stream({"a": []}, {"configurable": {"thread_id": "t"}}, durability="async", stream_mode="updates")
print(next(kept))
"""


def test_what_is_held_back_is_stored_when_the_interpreter_ends(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    child = subprocess.run(
        [sys.executable, "-c", EXIT, str(path)], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert ("{'one': {'a': ['one']}}\n", "") == (child.stdout, child.stderr)
    with SqliteSaver.from_conn_string(path) as saver:
        assert ["one"] in [saved.values.get("a") for _, saved in saver.page("t", Page())]
