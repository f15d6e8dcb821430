"""Threads that earlier versions stored load, go on from where they stood, and can be kept in order."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.flows import owner_text
from pregel.checkpoint.lease import this_owner
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.messages import AIMessage, HumanMessage
from pregel.types import Command

from .conftest import Runner
from .golden import NOTE, Order, build, config

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("threads-*.sql"))
ASKED = HumanMessage("tea?", id="m1")


def log(thread: str, *more: str) -> list[str]:
    """What the nodes left behind up to the question; the subgraph gives what it was given once more."""
    before = [f"in {thread}", "left", "right", *more]
    return [*before, *before, "check"]


@pytest.fixture(params=GOLDEN, ids=lambda file: file.stem)
def app(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """The graph over a database as that version left it; the process that was killed was one of this machine."""
    connection = sqlite3.connect(tmp_path / "threads.db")
    connection.executescript(request.param.read_text("utf-8"))
    dead = this_owner()._replace(ticks=this_owner().ticks + 1)
    connection.execute("UPDATE pregel_threads SET owner = ? WHERE owner IS NOT NULL", [owner_text(dead)])
    connection.commit()
    connection.close()
    with SqliteSaver.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as saver:
        yield build().compile(checkpointer=saver)


def test_there_is_a_file_of_each_format() -> None:
    assert ["threads-1"] == [file.stem for file in GOLDEN]


def test_what_was_done_reads_as_it_was(run: Runner, app: Any) -> None:
    state = run.state(app, config("done"))

    messages = [ASKED, AIMessage("yes", id="m2")]
    values = {"kind": "done", "log": [*log("done"), "ask yes"], "messages": messages, "note": NOTE}
    assert {**values, "order": Order("tea", 2)} == state.values
    assert ((), 2**53, "Zoë") == (state.next, state.metadata["long"], state.metadata["who"])
    history = run.history(app, config("done"))
    assert [("loop", 3), ("loop", 2), ("loop", 1), ("loop", 0), ("input", -1)] == [
        (entry.metadata["source"], entry.metadata["step"]) for entry in history
    ]
    assert [[], ["ask"], ["sub"], ["left", "right"], ["__start__"]] == [list(entry.next) for entry in history]
    assert log("answered") == run.state(app, config("answered")).values["log"][:-1]


def test_a_question_is_open_and_takes_its_answer(run: Runner, app: Any) -> None:
    state = run.state(app, config("asked"))
    assert [{"buy": "tea"}] == [one.value for one in state.interrupts]

    result = run.invoke(app, Command(resume="no"), config("asked"))

    assert ([*log("asked"), "ask no"], AIMessage("no", id="m2")) == (result["log"], result["messages"][-1])


def test_what_failed_is_run_again_alone(run: Runner, app: Any) -> None:
    tasks = run.state(app, config("failed")).tasks
    assert {"left": None, "right": "ValueError('no tea')"} == {task.name: task.error for task in tasks}

    assert log("failed") == run.invoke(app, None, config("failed"))["log"]


def test_what_a_dead_process_ran_is_taken_over(run: Runner, app: Any) -> None:
    assert ("left", "right") == run.state(app, config("killed")).next

    assert log("killed") == run.invoke(app, None, config("killed"))["log"]


def test_a_branch_that_an_update_began_goes_on(run: Runner, app: Any) -> None:
    state = run.state(app, config("updated"))
    assert ["in updated", "left", "right", "by hand"] == state.values["log"]

    assert log("updated", "by hand") == run.invoke(app, None, config("updated"))["log"]


def test_what_another_engine_put_comes_back_word_for_word(app: Any) -> None:
    found = app.checkpointer.get_tuple({"configurable": {"thread_id": "foreign"}})

    checkpoint = found.checkpoint
    assert ({"log": ["theirs"], "note": NOTE}, {"log": 2, "note": 3}) == (
        checkpoint["channel_values"],
        checkpoint["channel_versions"],
    )
    assert {"source": "input", "step": -1} == found.metadata
    assert [("task-1", "log", "more"), ("task-1", "order", Order("tea", 1))] == found.pending_writes


def test_old_threads_can_be_kept_in_order(app: Any) -> None:
    saver, threads = app.checkpointer, ["done", "asked", "failed", "answered", "updated", "foreign"]
    before = app.get_state(config("asked"))
    saver.copy_thread("asked", "copy")

    saver.prune(threads)

    assert [] == [finding for thread in [*threads, "copy", "killed"] for finding in saver.verify(thread)]
    for thread in ("asked", "copy"):
        state = app.get_state(config(thread))
        assert (before.values, before.next, before.interrupts) == (state.values, state.next, state.interrupts)
    for thread in threads:
        saver.delete_thread(thread)
    assert {"copy", "killed"} == {row.thread for row in saver.threads()}
