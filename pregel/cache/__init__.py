"""Caches of node and task results: in memory, in an SQLite file, in Redis."""
