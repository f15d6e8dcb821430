"""Long-term memory in PostgreSQL."""

from pregel.extras import extra

with extra("postgres", "PostgreSQL"):
    from pregel.store.postgres.aio import AsyncPostgresStore
    from pregel.store.postgres.approximate import ANNIndexConfig, PostgresIndexConfig
    from pregel.store.postgres.store import PoolConfig, PostgresStore

__all__ = ["ANNIndexConfig", "AsyncPostgresStore", "PoolConfig", "PostgresIndexConfig", "PostgresStore"]
