"""Connections, pools and DSNs of the user: what is taken, what is refused, what becomes of those that break."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.records import Page
from pregel.errors import InvalidInputError, StoreError
from tests.behaviour.journals import Run, everything


def test_a_connection_of_the_user_can_be_used_whatever_its_settings(dsn: str) -> None:
    with psycopg.connect(dsn, row_factory=dict_row) as connection:  # and not in autocommit mode
        saver = PostgresSaver(connection)
        Run(saver).save({"a": "x" * 100})
        saver.close()

        assert not connection.closed
        with PostgresSaver.from_conn_string(dsn) as other:
            assert [{"a": "x" * 100}] == [saved.values for _, saved in other.page("t", Page())]


def test_a_connection_of_the_user_is_made_anew_when_it_breaks(dsn: str, ask: Callable[..., list[Any]]) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        saver = PostgresSaver(connection)
        run = Run(saver)
        run.save({"a": 1})
        ask("SELECT pg_terminate_backend(%s)", connection.info.backend_pid)

        run.save({"a": 2})

        assert 2 == len(everything(saver))
        saver.close()


def test_a_connection_that_cannot_be_used_is_refused(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("SELECT 1")
        with pytest.raises(InvalidInputError, match="inside a transaction"):
            PostgresSaver(connection)
        connection.rollback()
        with pytest.raises(InvalidInputError, match="takes no pipeline"):
            PostgresSaver(connection, pipe=object())
        connection.autocommit = True
        with connection.pipeline(), pytest.raises(InvalidInputError, match="pipeline mode"):
            PostgresSaver(connection)
        connection.execute("SET client_encoding TO 'LATIN1'")
        with pytest.raises(InvalidInputError, match="UTF8"):
            PostgresSaver(connection)


@pytest.mark.parametrize("wrong", ["postgresql:///x", None, object()])
def test_something_else_than_a_connection_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError, match="from_conn_string"):
        PostgresSaver(wrong)


def test_a_pool_of_the_user_can_be_used_and_keeps_its_settings(dsn: str) -> None:
    with ConnectionPool(dsn, min_size=1, max_size=2) as pool:
        saver = PostgresSaver(pool)
        run = Run(saver)
        for i in range(10):
            run.save({"a": i})

        with pool.connection() as connection:
            assert not connection.autocommit
        assert 10 == len(everything(saver))


def test_a_pool_whose_connections_died_goes_on(dsn: str, ask: Callable[..., list[Any]]) -> None:
    conninfo = psycopg.conninfo.make_conninfo(dsn, application_name="victim")
    with ConnectionPool(conninfo, min_size=3, max_size=3, kwargs={"autocommit": True}) as pool:
        pool.wait()
        saver = PostgresSaver(pool)
        run = Run(saver)
        run.save({"a": 1})
        ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim'")

        run.save({"a": 2})

        assert 2 == len(everything(saver))


def test_a_dsn_that_leads_nowhere_is_a_named_error_at_once() -> None:
    dsn = "host=127.0.0.1 port=1 user=postgres dbname=x"
    with PostgresSaver.from_conn_string(dsn) as saver, pytest.raises(StoreError, match="cannot be reached"):
        saver.threads()
    with pytest.raises(StoreError), PostgresSaver.from_conn_string("this is no dsn"):
        pass


def test_more_threads_than_connections_take_turns(dsn: str) -> None:
    with PostgresSaver.from_conn_string(dsn, pool_size=2) as saver:

        def work(name: str) -> None:
            run = Run(saver, name)
            for i in range(10):
                run.save({"a": i})
            run.release()

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, [f"t{n}" for n in range(8)]))

        assert {f"t{n}": 11 for n in range(8)} == {row.thread: row.seq for row in saver.threads()}


def test_a_child_process_has_connections_of_its_own(saver: PostgresSaver) -> None:
    Run(saver).release()

    child = os.fork()
    if child == 0:
        status = 1
        try:
            Run(saver, "child").save({"a": "child"})
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    Run(saver, "parent").save({"a": "parent"})

    assert 0 == status
    assert {"t", "child", "parent"} == {row.thread for row in saver.threads()}
