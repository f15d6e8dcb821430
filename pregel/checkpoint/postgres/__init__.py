"""The journal in PostgreSQL."""

from pregel.checkpoint.postgres.saver import PostgresSaver

__all__ = ["PostgresSaver"]
