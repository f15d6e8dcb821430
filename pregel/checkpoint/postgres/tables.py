"""Making and migrating the tables: numbered steps, one process at a time, while others go on with their work."""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import errors

from pregel.checkpoint.postgres.wire import TRANSACTION, Ask, settled, transaction
from pregel.checkpoint.postgres.words import SCHEMA
from pregel.errors import StoreError
from pregel.flow import Flow

STEPS = list(SCHEMA.values())
LOCK = 0x70726567656C  # the number of our advisory lock: "pregel"


def missing_steps() -> Flow[int]:
    """How many steps the database lacks; StoreError when it has some that this version does not know."""
    return settled(lambda: _missing(STEPS))


def _missing(steps: Sequence[str]) -> Flow[int]:
    try:
        rows = yield Ask("SELECT coalesce(max(v), 0) FROM pregel_migrations", alone=True)
    except errors.UndefinedTable:
        return len(steps)
    newest: int = rows[0][0]
    if newest > len(steps):
        raise StoreError(
            f"The database has format {newest}, this version knows up to {len(steps)}.", fix="Upgrade pregel."
        )
    return len(steps) - newest


def migrating() -> Flow[None]:
    """Bring the tables to the newest version."""
    return settled(lambda: transaction(TRANSACTION, _migrated(STEPS)))


def _migrated(steps: Sequence[str]) -> Flow[None]:
    yield Ask(f"SELECT pg_advisory_xact_lock({LOCK})")
    encoding = yield Ask("SHOW server_encoding")
    if encoding[0][0] != "UTF8":
        raise StoreError(f"The database is encoded in {encoding[0][0]}.", fix="Create it with ENCODING 'UTF8'.")
    yield Ask("CREATE TABLE IF NOT EXISTS pregel_migrations (v integer PRIMARY KEY, applied_at float8 NOT NULL)")
    missing = yield from _missing(steps)
    for version in range(len(steps) - missing + 1, len(steps) + 1):
        for statement in steps[version - 1].split(";\n"):
            yield Ask(statement)
        yield Ask(
            "INSERT INTO pregel_migrations (v, applied_at) VALUES ($1, extract(epoch FROM clock_timestamp()))",
            [version],
        )
