"""Long-term memory in PostgreSQL."""

from pregel.store.postgres.aio import AsyncPostgresStore
from pregel.store.postgres.store import PoolConfig, PostgresStore

__all__ = ["AsyncPostgresStore", "PoolConfig", "PostgresStore"]
