"""The shipped laws on PostgreSQL. The database comes from a fixture, so the laws are opened by one too."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from pregel.checkpoint.conformance import JournalLaws
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from tests.behaviour.kept import Kept


@pytest.mark.acceptance("S1-35")
class Laws(JournalLaws):
    examples = 25
    dsn = ""

    @pytest.fixture(autouse=True)
    def opened(self, dsn: str, kept: Kept) -> Iterator[None]:
        self.dsn, self.kept = dsn, kept
        super().setup_method()
        yield
        super().teardown_method()

    def setup_method(self) -> None:
        """Too early: there is no database yet."""

    def teardown_method(self) -> None:
        """Done by the fixture."""


class TestPostgres(Laws):
    def open(self) -> Any:
        return self.kept.saver()


class TestPostgresAwaited(TestPostgres):
    awaited = True


class TestAsyncPostgres(Laws):
    awaited = True

    def open(self) -> Any:
        return self.lent()

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[AsyncPostgresSaver]:
        async with AsyncPostgresSaver.from_conn_string(self.dsn) as saver:
            self.kept.alend(saver)
            yield saver
