"""The journal in PostgreSQL."""

from pregel.extras import extra

with extra("postgres", "PostgreSQL"):
    from pregel.checkpoint.postgres.saver import Conn, PostgresSaver

__all__ = ["Conn", "PostgresSaver"]
