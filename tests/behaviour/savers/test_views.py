"""What a person sees of threads in a database shell: views with the text of names, namespaces and ids."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.sqlite import SqliteSaver
from tests.behaviour.journals import Run
from tests.behaviour.savers.foreign import config, put

Ask = Callable[[str], list[Any]]


@pytest.fixture(params=["sqlite", "postgres"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[JournalSaver, Ask]]:
    """A saver, and what answers SQL beside it."""
    if request.param == "sqlite":
        path = tmp_path / "threads.db"
        connection = sqlite3.connect(path)
        with SqliteSaver.from_conn_string(path) as saver:
            yield saver, lambda text: connection.execute(text).fetchall()
        connection.close()
    else:
        dsn = request.getfixturevalue("dsn")
        with PostgresSaver.from_conn_string(dsn) as made, psycopg.connect(dsn, autocommit=True) as server:
            yield made, lambda text: server.execute(text.encode()).fetchall()


def test_views_show_texts(shell: tuple[JournalSaver, Ask]) -> None:
    saver, ask = shell
    run = Run(saver, "thread-1")
    first = run.save({"a": 1}, source="input")
    second = run.save({"a": "x" * 200, "b": 2}, metadata={"run_id": "run-1"})
    task = str(uuid.uuid4())
    run.write([("a", 1), ("b", 2)], task=task)
    run.release("interrupted", "asked")

    assert [("thread-1", "interrupted", "asked", second, False)] == [
        (*row[:4], bool(row[4]))
        for row in ask("SELECT thread, status, reason, last_checkpoint, held FROM pregel_view_threads")
    ]
    assert [
        ("thread-1", "", first, None, -1, "input", None),
        ("thread-1", "", second, first, 0, "loop", "run-1"),
    ] == ask("SELECT thread, ns, checkpoint, parent, step, source, run_id FROM pregel_view_checkpoints ORDER BY step")
    assert [("thread-1", "", "a", "value", "msgpack", 202)] == ask(
        "SELECT thread, ns, channel, kind, type, bytes FROM pregel_view_values"
    )
    assert [(second, task, 0, "n", "a"), (second, task, 1, "n", "b")] == ask(
        "SELECT checkpoint, task, idx, node, channel FROM pregel_view_writes ORDER BY idx"
    )
    (made,) = ask("SELECT max(created_at) FROM pregel_view_checkpoints")[0]
    made = made if isinstance(made, datetime) else datetime.fromisoformat(made)
    assert abs(datetime.now(UTC) - made) < timedelta(minutes=10)


@pytest.mark.parametrize("name", ["short", "fifteen letters", "sixteen  letters", "seventeen letters"])
def test_ids_of_other_engines_are_shown_as_they_are(shell: tuple[JournalSaver, Ask], name: str) -> None:
    saver, ask = shell
    where = put(saver, {"a": 1}, config("t", checkpoint_ns="", checkpoint_id=f"p {name}"), id=name)
    saver.put_writes(where, [("a", 2)], f"task {name}")

    assert [(name, f"p {name}")] == ask("SELECT checkpoint, parent FROM pregel_view_checkpoints")
    assert [(name, f"task {name}", "a")] == ask("SELECT checkpoint, task, channel FROM pregel_view_writes")


def test_a_database_of_the_first_format_gets_the_views(tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "threads-1.sql"
    path = tmp_path / "old.db"
    connection = sqlite3.connect(path)
    connection.executescript(golden.read_text("utf-8"))

    with SqliteSaver.from_conn_string(path) as saver:
        threads = {row.thread for row in saver.threads()}

    assert threads == {thread for (thread,) in connection.execute("SELECT thread FROM pregel_view_threads")}
    connection.close()
