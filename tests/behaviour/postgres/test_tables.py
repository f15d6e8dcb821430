"""The tables on a server: made once, found by index, sorted by bytes, empty of what was deleted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from pregel.checkpoint.postgres import PostgresSaver
from pregel.errors import StoreError
from tests.behaviour.journals import Run


def test_tables_are_made_on_first_use_and_ours_by_name(fresh: str) -> None:
    with PostgresSaver.from_conn_string(fresh) as saver:
        assert [] == saver.threads()
        saver.setup()
        saver.setup()

    with psycopg.connect(fresh) as connection:
        names = [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        assert 12 == len(names)
        assert all(name.startswith("pregel_") for name in names)
        assert [(1,), (2,), (3,), (4,), (5,)] == connection.execute("SELECT v FROM pregel_migrations").fetchall()


def test_processes_that_set_up_at_once_do_not_meet(fresh: str) -> None:
    savers = [PostgresSaver.at(fresh) for _ in range(6)]

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda saver: Run(saver, f"t{id(saver)}").save({"a": 1}), savers))

    assert 6 == len(savers[0].threads())
    for saver in savers:
        saver.close()


def test_a_format_of_the_future_is_refused(fresh: str) -> None:
    with PostgresSaver.from_conn_string(fresh) as saver:
        saver.setup()
    with psycopg.connect(fresh, autocommit=True) as connection:
        connection.execute("INSERT INTO pregel_migrations VALUES (99, 0)")

    with PostgresSaver.from_conn_string(fresh) as later, pytest.raises(StoreError, match="has format 99"):
        later.threads()


def test_setup_tells_of_a_server_that_may_lose_acknowledged_steps(fresh: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "pregel"), PostgresSaver.from_conn_string(fresh) as saver:
        saver.setup()

    assert "fsync is off" in caplog.text


def test_texts_sort_by_their_bytes_whatever_the_locale(saver: PostgresSaver, ask: Callable[..., list[Any]]) -> None:
    saver.setup()
    columns = ask(
        "SELECT table_name, column_name, collation_name FROM information_schema.columns "
        "WHERE table_name LIKE 'pregel%' AND data_type = 'text'"
    )

    own = [column for column in columns if "view" not in column[0] and "store" not in column[0]]
    assert 30 == len(own)
    assert [] == [column for column in own if column[2] != "C"]


def test_no_row_of_a_deleted_thread_is_left_in_any_table(saver: PostgresSaver, ask: Callable[..., list[Any]]) -> None:
    run = Run(saver, "secret-thread")
    run.save({"a": "x" * 200})
    run.write([("a", 1)])

    saver.delete_thread("secret-thread")

    tables = [name for (name,) in ask("SELECT tablename FROM pg_tables WHERE tablename LIKE 'pregel%'")]
    has_tno = (
        "SELECT table_name FROM information_schema.columns WHERE column_name = 'tno' AND table_name LIKE 'pregel%'"
    )
    with_tno = [name for (name,) in ask(has_tno)]
    assert 9 == len(with_tno)
    assert {0} == {ask(f"SELECT count(*) FROM {table}")[0][0] for table in with_tno}
    assert [] == [table for table in tables if "secret-thread" in str(ask(f"SELECT * FROM {table}"))]


def test_reads_and_appends_use_indexes_only(saver: PostgresSaver, ask: Callable[..., list[Any]]) -> None:
    from pregel.checkpoint.postgres.words import STATEMENTS

    saver.setup()
    ask("SET enable_seqscan = off")
    ask("SET plan_cache_mode = force_generic_plan")
    whole = {"threads", "page_all", "stale", "sweep_tombstones", "settings"}  # these are about everything
    for name, statement in STATEMENTS.items():
        if name in whole or "FROM t" in statement.text or "FROM unnest" in statement.text:
            continue
        ask(f"PREPARE one AS {statement.text}")
        nulls = f"({', '.join(['NULL'] * len(statement.places))})" if statement.places else ""
        plan = "; ".join(line for (line,) in ask(f"EXPLAIN EXECUTE one{nulls}"))
        ask("DEALLOCATE one")
        assert "Seq Scan" not in plan, (name, plan)


def test_appends_update_the_threads_row_in_place(saver: PostgresSaver, ask: Callable[..., list[Any]]) -> None:
    run = Run(saver)
    run.save({"a": 0})
    counters = "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'pregel_threads'"
    saver.close()  # a connection that ends tells its counters
    before = _stats(ask, counters)

    for i in range(40):
        run.save({"a": i})

    saver.close()
    after = _stats(ask, counters, before[0] + 40)
    assert 40 == after[0] - before[0]
    assert 38 <= after[1] - before[1]  # all but where a page was full


def _stats(ask: Callable[..., list[Any]], counters: str, at_least: int = 0) -> tuple[int, int]:
    """The counters, once they have come in."""
    for _ in range(2000):
        ask("SELECT pg_stat_clear_snapshot()")
        found: tuple[int, int] = ask(counters)[0]
        if found[0] >= at_least:
            break
    return found


def test_every_statement_of_sqlite_has_its_twin() -> None:
    from pregel.checkpoint.postgres.words import STATEMENTS
    from pregel.checkpoint.sql import statements

    here = {name.removesuffix("_rows") for name in STATEMENTS}
    assert set() == statements("sqlite.sql").keys() - here - {"standing_row"}  # its twin is `landed`
