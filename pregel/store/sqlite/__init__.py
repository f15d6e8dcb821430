"""Long-term memory in SQLite."""

from pregel.store.sqlite.aio import AsyncSqliteStore
from pregel.store.sqlite.store import SqliteStore

__all__ = ["AsyncSqliteStore", "SqliteStore"]
