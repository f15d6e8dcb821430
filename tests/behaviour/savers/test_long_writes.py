"""A long write is stored once, with the checkpoint that applied it, and read back from there."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

from pregel.channels import DeltaChannel
from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.config import RunnableConfig
from pregel.graph import START, StateGraph
from pregel.types import Command, interrupt

LONG = "a long text " * 40


def merged(old: dict[str, str], writes: list[dict[str, str]]) -> dict[str, str]:
    for write in writes:
        old = {**old, **write}
    return old


class State(TypedDict, total=False):
    text: str
    notes: Annotated[dict[str, str], DeltaChannel(merged)]
    other: str


def config(thread: str = "t", **more: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}, **more}  # type: ignore[typeddict-item]  # a run_id


def app(saver: JournalSaver, *, asks: bool = False) -> Any:
    def write(state: State) -> State:
        answer = interrupt("well?") if asks else ""
        return {"text": f"{LONG}{answer}", "notes": {"written": LONG}}

    graph = StateGraph(State).add_node("write", write).add_node("end", lambda state: {"other": "short"})
    return graph.add_edge(START, "write").add_edge("write", "end").compile(checkpointer=saver)


def shown(graph: Any, thread: str = "t") -> list[Any]:
    """Values, and what the tasks came to, of each checkpoint."""
    return [(one.values, [task.result for task in one.tasks]) for one in graph.get_state_history(config(thread))]


def test_what_was_written_is_read_in_every_checkpoint(saver: JournalSaver) -> None:
    graph = app(saver)
    given: State = {"text": f"given {LONG}", "notes": {"given": LONG}}
    graph.invoke(given, config())
    wrote = {"text": LONG, "notes": {"written": LONG}}
    after = {"text": LONG, "notes": {"given": LONG, "written": LONG}}
    expected = [
        ({**after, "other": "short"}, []),
        (after, [{"other": "short"}]),
        (given, [wrote]),
        ({"notes": {}}, [given]),
    ]

    assert expected == shown(graph)
    assert [] == saver.verify("t")
    saver.copy_thread("t", "copy")
    assert expected == shown(graph, "copy")
    saver.prune(["t"])
    assert expected[:1] == shown(graph)
    assert [] == saver.verify("t")
    assert after["text"] == graph.invoke({"other": "x"}, config())["text"]


def test_a_write_stays_whole_when_the_run_that_applied_it_is_deleted(saver: JournalSaver) -> None:
    graph = app(saver, asks=True)
    first, second = UUID(int=1), UUID(int=2)
    graph.invoke({"text": "given"}, config(run_id=first))
    graph.invoke(Command(resume="yes"), config(run_id=second))

    saver.delete_for_runs([str(second)])

    assert [] == saver.verify("t")
    (task,) = graph.get_state(config()).tasks
    assert {"text": f"{LONG}yes", "notes": {"written": LONG}} == task.result
    assert {"text": f"{LONG}yes", "notes": {"written": LONG}, "other": "short"} == graph.invoke(None, config())


def test_a_file_holds_a_long_write_once(tmp_path: Path) -> None:
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        app(saver).invoke({"text": "given"}, config())

    with closing(sqlite3.connect(tmp_path / "threads.db")) as database:
        rows = database.execute("SELECT blob FROM pregel_writes UNION ALL SELECT blob FROM pregel_channel_values")
        blobs = [row[0] for row in rows]
    assert 2 == sum(bytes(blob).count(LONG.encode()) for blob in blobs)  # the text, and the note
