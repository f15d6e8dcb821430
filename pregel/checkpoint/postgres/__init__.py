"""The journal in PostgreSQL."""

from pregel.checkpoint.postgres.saver import Conn, PostgresSaver

__all__ = ["Conn", "PostgresSaver"]
