"""A saver on PostgreSQL, a database without tables, and a way to ask the server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from pregel.checkpoint.postgres import PostgresSaver
from tests.postgres import Shared


@pytest.fixture
def saver(dsn: str) -> Iterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(dsn) as made:
        yield made


@pytest.fixture
def fresh(postgres: Shared) -> Iterator[str]:
    """The DSN of a database without tables."""
    with postgres.database(f"pregel_fresh_{os.getpid()}") as dsn:
        yield dsn


@pytest.fixture
def ask(dsn: str) -> Iterator[Callable[..., list[Any]]]:
    """Rows of a statement, on a connection of its own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield lambda statement, *args: _rows(connection, statement, args)


def _rows(connection: psycopg.Connection[Any], statement: str, args: tuple[Any, ...]) -> list[Any]:
    cursor = connection.execute(statement.encode(), args or None)
    return cursor.fetchall() if cursor.description else []
