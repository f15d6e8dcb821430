"""`saver`: the tests of savers run on every journal there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pregel.checkpoint.journal_saver import JournalSaver
from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.sqlite import SqliteSaver


@pytest.fixture(params=["memory", "sqlite", "sqlite-memory", "postgres"])
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[JournalSaver]:
    """The saver."""
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "postgres":
        with PostgresSaver.from_conn_string(request.getfixturevalue("dsn")) as made:
            yield made
    else:
        path = ":memory:" if request.param == "sqlite-memory" else tmp_path / "threads.db"
        with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as made:
            yield made
