"""A store's batch as flows over the wire, written once for both kinds of stores.

1. A batch that only reads sees one snapshot; the items that it read start their time anew in a transaction of its own.
2. A batch that puts is one transaction. It is sent again after an unclear answer only when it reads nothing: then
   putting twice does no harm.
"""

from __future__ import annotations

from psycopg import errors

from pregel.checkpoint.postgres.wire import SNAPSHOT, TRANSACTION, Ask, said, settled, transaction
from pregel.errors import StoreError
from pregel.flow import Flow
from pregel.store import flows
from pregel.store.base import Result
from pregel.store.postgres.words import SCHEMA, VECTORS, words_of
from pregel.store.vectors import Distance
from pregel.store.work import Work

LOCK = 0x70726567656C73  # the number of our advisory lock: "pregels"
MIGRATIONS = "pregel_store_migrations"


def batching(work: Work, distance: Distance | None) -> Flow[list[Result]]:
    """Do a batch. `distance` is that of the store's index, None without one."""
    words = words_of(distance)
    if not work.writes:
        if work.results:
            ids = yield from settled(lambda: transaction(SNAPSHOT, said(flows.read_flow(work, exact=False), words)))
            if ids:
                yield from settled(lambda: transaction(TRANSACTION, said(flows.refresh_flow(ids, work.now), words)))
        return work.results

    def write() -> Flow[None]:
        flow = flows.write_flow(work, exact=False, indexed=distance is not None)
        return transaction(TRANSACTION, said(flow, words))

    if work.gets or work.searches or work.lists:
        yield from write()
    else:
        yield from settled(write)
    return work.results


def sweeping(now: float) -> Flow[int]:
    """Remove what has lapsed."""
    return settled(lambda: transaction(TRANSACTION, said(flows.sweep_flow(now, cascades=True), words_of(None))))


# -- tables ------------------------------------------------------------------------------------------------------------


def missing_steps(*, vectors: bool) -> Flow[bool]:
    """Whether the database lacks some of our tables; StoreError when it has some that this version does not know."""
    return settled(lambda: _missing_any(vectors))


def _missing_any(vectors: bool) -> Flow[bool]:
    for part, steps in _parts(vectors):
        if (yield from _newest(part, alone=True)) < steps:
            return True
    return False


def _parts(vectors: bool) -> list[tuple[str, int]]:
    return [("store", len(SCHEMA)), *([("vectors", len(VECTORS))] if vectors else [])]


def _newest(part: str, *, alone: bool) -> Flow[int]:
    try:
        rows = yield Ask(f"SELECT coalesce(max(v), 0) FROM {MIGRATIONS} WHERE part = $1", [part], alone=alone)
    except errors.UndefinedTable:
        return 0
    newest: int = rows[0][0]
    known = dict(_parts(True))[part]
    if newest > known:
        raise StoreError(f"The store has format {newest}, this version knows up to {known}.", fix="Upgrade pregel.")
    return newest


def migrating(*, vectors: bool) -> Flow[None]:
    """Bring the tables to the newest version."""
    return settled(lambda: transaction(TRANSACTION, _migrated(vectors)))


def _migrated(vectors: bool) -> Flow[None]:
    yield Ask(f"SELECT pg_advisory_xact_lock({LOCK})")
    encoding = yield Ask("SHOW server_encoding")
    if encoding[0][0] != "UTF8":
        raise StoreError(f"The database is encoded in {encoding[0][0]}.", fix="Create it with ENCODING 'UTF8'.")
    yield Ask(f"CREATE TABLE IF NOT EXISTS {MIGRATIONS} (part text, v integer, PRIMARY KEY (part, v))")
    scripts = {"store": list(SCHEMA.values()), "vectors": list(VECTORS.values())}
    for part, _ in _parts(vectors):
        newest = yield from _newest(part, alone=False)
        for version in range(newest + 1, len(scripts[part]) + 1):
            for statement in scripts[part][version - 1].split(";\n"):
                yield Ask(statement)
            yield Ask(f"INSERT INTO {MIGRATIONS} (part, v) VALUES ($1, $2::integer)", [part, version])
