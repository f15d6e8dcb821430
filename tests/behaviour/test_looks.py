"""What a look at a thread asks of its saver, what it costs, and whose the things are that it shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.records import Append, Load, Opened, Page, Receipt, Saved
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import MissingThreadError
from pregel.types import interrupt
from tests.counted import calls

from .conftest import Runner
from .marks import Saver, State, Thread, chain


class Watched(InMemorySaver):
    """Notes which verbs the engine uses; awaited ones come to these as well."""

    def __init__(self) -> None:
        super().__init__()
        self.used: list[str] = []

    def look(self, thread: str, ns: str, checkpoint: str | None = None) -> Saved | None:
        self.used.append("look")
        return super().look(thread, ns, checkpoint)

    def page(self, thread: str | None, page: Page) -> list[tuple[str, Saved]]:
        self.used.append("page")
        return super().page(thread, page)

    def load(self, thread: str, loads: Sequence[Load], names: Iterable[str] = ()) -> Opened:
        self.used.append("load")
        return super().load(thread, loads, names)

    def append(self, append: Append) -> Receipt:
        self.used.append("append")
        return super().append(append)


def test_a_look_asks_the_saver_once_and_changes_nothing(run: Runner, thread: Thread) -> None:
    saver = Watched()
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": ["in"]}, thread("1"))

    saver.used.clear()
    state = run.state(app, thread("1"))
    assert ["look"] == saver.used
    assert state == run.state(app, state.config)
    assert ["look", "look"] == saver.used

    saver.used.clear()
    assert 4 == len(run.history(app, thread("1")))
    assert ["page"] == saver.used


def test_what_a_look_shows_is_its_callers(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y", y=lambda state: {"a": [interrupt({"of": ["y"]})]}).compile(checkpointer=saver)
    run.invoke(app, {"a": ["in"]}, thread("1"))
    state, history = run.state(app, thread("1")), run.history(app, thread("1"))

    for shown in (run.state(app, thread("1")), *run.history(app, thread("1"))):
        shown.values.setdefault("a", []).append("mine")
        shown.metadata["parents"]["mine"] = shown.metadata["mine"] = 1
        shown.config["configurable"]["mine"] = 1
        for task in shown.tasks:
            (task.result or {}).setdefault("a", []).append("mine")
            for question in task.interrupts:
                question.value["of"].append("mine")

    assert state == run.state(app, thread("1"))
    assert history == run.history(app, thread("1"))


def test_a_long_history_is_read_as_far_as_somebody_looks(thread: Thread) -> None:
    saver = Watched()
    app = chain("x").compile(checkpointer=saver)
    for number in range(120):
        app.invoke({"a": [str(number)]}, thread("1"))
    whole = list(app.get_state_history(thread("1")))

    saver.used.clear()
    first = next(app.get_state_history(thread("1")))
    assert ["page"] == saver.used

    saver.used.clear()
    every = list(app.get_state_history(thread("1")))
    assert ["page"] * 4 == saver.used  # 360 checkpoints
    assert first == every[0]
    assert [*range(358, -2, -1)] == [(entry.metadata or {})["step"] for entry in every]
    assert every[:250] == list(app.get_state_history(thread("1"), limit=250))
    assert every[101:] == list(app.get_state_history(thread("1"), before=every[100].config))
    assert every == whole


def test_entries_of_one_history_share_nothing_that_can_be_changed(run: Runner, saver: Saver, thread: Thread) -> None:
    app = chain("x", "y").compile(checkpointer=saver)
    run.invoke(app, {"a": ["in"]}, thread("1"))
    newest, *others = run.history(app, thread("1"))
    before = [entry.values.get("a", [])[:] for entry in others]

    newest.values["a"].append("mine")
    newest.metadata["parents"]["mine"] = 1

    assert before == [entry.values.get("a", []) for entry in others]
    assert all("mine" not in entry.metadata["parents"] for entry in others)


def test_a_node_looks_at_the_thread_it_runs_on_and_has_to_say_which(run: Runner, thread: Thread) -> None:
    seen: list[Any] = []

    def look(state: State) -> dict[str, Any]:
        seen.append(app.get_state(thread("1")).values)
        with pytest.raises(MissingThreadError):
            app.get_state({"tags": ["no thread"]})
        return {"a": ["look"]}

    app = chain("x", "look", look=look).compile(checkpointer=InMemorySaver())
    run.invoke(app, {"a": ["in"]}, thread("1"))

    assert [{"a": ["in", "x"]}] == seen


def test_the_history_of_a_persistent_subgraph_is_where_its_state_is(run: Runner, thread: Thread) -> None:
    app = chain("s", s=chain("k").compile(checkpointer=True)).compile(checkpointer=InMemorySaver())
    run.invoke(app, {"a": ["in"]}, thread("1"))
    place = {"configurable": {"thread_id": "1", "checkpoint_ns": "s:of-a-call"}}

    newest, *older = run.history(app, place)

    assert (run.state(app, place).values, ["in", "k"]) == (newest.values, newest.values["a"])
    assert 2 == len(older)


def test_a_process_that_knows_no_names_reads_a_thread(run: Runner, tmp_path: Path, thread: Thread) -> None:
    path = str(tmp_path / "threads.db")
    app = chain("x", "y")
    with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
        run.invoke(app.compile(checkpointer=saver), {"a": ["in"], "b": "a long text " * 20}, thread("1"))
        known = run.history(app.compile(checkpointer=saver), thread("1"))

    with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
        again = app.compile(checkpointer=saver)
        assert known[0] == run.state(again, thread("1"))
    with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
        assert known == run.history(app.compile(checkpointer=saver), thread("1"))


@pytest.mark.parametrize("kept", ["memory", "sqlite"])
def test_a_look_is_a_few_calls_however_long_the_thread_is(kept: str, tmp_path: Path, thread: Thread) -> None:
    with SqliteSaver.from_conn_string(tmp_path / "threads.db", synchronous="NORMAL") as file:
        graph = chain("x", x=lambda state: {"b": "short"})
        app = graph.compile(checkpointer=file if kept == "sqlite" else InMemorySaver())
        made = []
        for turns in (1, 10):
            for _ in range(turns):
                app.invoke({"b": "in"}, thread("1"))
            app.get_state(thread("1"))
            made.append(calls(lambda: app.get_state(thread("1")), kinds=("call",)))

    assert made[0] == made[1]
    assert made[0] < 60  # 300 when a look was made like a run
