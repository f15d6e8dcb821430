"""The shipped laws on PostgreSQL. The database comes from a fixture, so the laws are opened by one too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pregel.store.conformance import HybridLaws, IndexLaws, StoreLaws
from pregel.store.conformance.laws import Laws
from pregel.store.postgres import AsyncPostgresStore, PostgresStore

from .test_conformance import Clock, Timed


class OnServer(Timed, Laws):
    dsn = ""

    @pytest.fixture(autouse=True)
    def opened(self, dsn: str) -> Iterator[None]:
        self.dsn, self.clock = dsn, Clock()
        super().setup_method()
        yield
        super().teardown_method()

    def setup_method(self) -> None:
        """Too early: there is no database yet."""

    def teardown_method(self) -> None:
        """Done by the fixture."""


class TestPostgres(OnServer, StoreLaws):
    examples = 15

    def open(self) -> Any:
        return PostgresStore.from_conn_string(self.dsn, ttl=self.ttl, clock=self.clock)


class TestAsyncPostgres(OnServer, StoreLaws):
    awaited = True
    examples = 8

    def open(self) -> Any:
        return AsyncPostgresStore.from_conn_string(self.dsn, ttl=self.ttl, clock=self.clock)


class TestPostgresIndex(OnServer, IndexLaws):
    def open(self) -> Any:
        return PostgresStore.from_conn_string(self.dsn, ttl=self.ttl, clock=self.clock, index=self.index)


class TestAsyncPostgresIndex(OnServer, IndexLaws):
    awaited = True

    def open(self) -> Any:
        return AsyncPostgresStore.from_conn_string(self.dsn, ttl=self.ttl, clock=self.clock, index=self.index)


class TestPostgresHybrid(OnServer, HybridLaws):
    def open(self) -> Any:
        return PostgresStore.from_conn_string(self.dsn, ttl=self.ttl, clock=self.clock, index=self.index)


class TestAsyncPostgresHybrid(OnServer, HybridLaws):
    awaited = True

    def open(self) -> Any:
        return AsyncPostgresStore.from_conn_string(self.dsn, ttl=self.ttl, clock=self.clock, index=self.index)


class TestPostgresApproximate(OnServer, IndexLaws):
    def open(self) -> Any:
        index: Any = {**self.index, "ann_index_config": {"kind": "hnsw", "exact_below": 0}}
        return PostgresStore.from_conn_string(self.dsn, ttl=self.ttl, clock=self.clock, index=index)
