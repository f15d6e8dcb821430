"""The journal in SQLite."""

from pregel.checkpoint.sqlite.saver import SqliteSaver

__all__ = ["SqliteSaver"]
