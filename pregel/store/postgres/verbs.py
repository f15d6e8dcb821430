"""A store's batch as flows over the wire, written once for both kinds of stores.

1. A batch that only reads sees one snapshot; the items that it read start their time anew in a transaction of its own.
2. A batch that puts is one transaction. It is sent again after an unclear answer only when it reads nothing: then
   putting twice does no harm. After a deadlock nothing of it happened, so any is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import errors

from pregel.checkpoint.postgres.wire import SNAPSHOT, TRANSACTION, UNDONE, Ask, said, settled, transaction
from pregel.errors import StoreError
from pregel.flow import Flow
from pregel.store import flows
from pregel.store.base import Result
from pregel.store.flows import Engine
from pregel.store.postgres.approximate import Approximate
from pregel.store.postgres.words import SCHEMA, VECTORS, WORDS, words_of
from pregel.store.vectors import Index
from pregel.store.work import Work

LOCK = 0x70726567656C73  # the number of our advisory lock: "pregels"
MIGRATIONS = "pregel_store_migrations"
SCRIPTS = {
    part: list(scripts.values()) for part, scripts in (("store", SCHEMA), ("vectors", VECTORS), ("words", WORDS))
}
GOES_ON = (0, 8)  # the first pgvector whose scans go on while conditions turn rows away


def batching(work: Work, index: Index | None, near: Approximate | None) -> Flow[list[Result]]:
    """Do a batch of a store with this index, None without one."""
    words = words_of(index, near)
    engine = Engine(exact=False, indexed=index is not None, approximate=None if near is None else near.exact_below)
    if not work.writes:
        if work.results:
            ids = yield from settled(lambda: transaction(SNAPSHOT, said(flows.read_flow(work, engine), words)))
            if ids:
                yield from settled(lambda: transaction(TRANSACTION, said(flows.refresh_flow(ids, work.now), words)))
        return work.results

    def write() -> Flow[None]:
        return transaction(TRANSACTION, said(flows.write_flow(work, engine), words))

    if work.gets or work.searches or work.lists:
        yield from settled(write, UNDONE)
    else:
        yield from settled(write)
    return work.results


def sweeping(now: float) -> Flow[int]:
    """Remove what has lapsed."""
    return settled(lambda: transaction(TRANSACTION, said(flows.sweep_flow(now, cascades=True), words_of(None))))


# -- tables ------------------------------------------------------------------------------------------------------------


def missing_steps(index: Index | None, near: Approximate | None) -> Flow[bool]:
    """Whether the database lacks some of our tables; StoreError when it has some that this version does not know."""
    return settled(lambda: _missing_any(index, near))


def _missing_any(index: Index | None, near: Approximate | None) -> Flow[bool]:
    for part in _parts(index):
        if (yield from _newest(part, alone=True)) < len(SCRIPTS[part]):
            return True
    return near is not None and not (yield Ask("SELECT to_regclass($1) IS NOT NULL", [near.name], alone=True))[0][0]


def _parts(index: Index | None) -> Sequence[str]:
    return ("store",) if index is None else ("store", "vectors", "words") if index.hybrid else ("store", "vectors")


def _newest(part: str, *, alone: bool) -> Flow[int]:
    try:
        rows = yield Ask(f"SELECT coalesce(max(v), 0) FROM {MIGRATIONS} WHERE part = $1", [part], alone=alone)
    except errors.UndefinedTable:
        return 0
    newest: int = rows[0][0]
    known = len(SCRIPTS[part])
    if newest > known:
        raise StoreError(f"The store has format {newest}, this version knows up to {known}.", fix="Upgrade pregel.")
    return newest


def migrating(index: Index | None, near: Approximate | None) -> Flow[None]:
    """Bring the tables to the newest version, and make the approximate index."""
    return settled(lambda: transaction(TRANSACTION, _migrated(index, near)))


def _migrated(index: Index | None, near: Approximate | None) -> Flow[None]:
    yield Ask(f"SELECT pg_advisory_xact_lock({LOCK})")
    encoding = yield Ask("SHOW server_encoding")
    if encoding[0][0] != "UTF8":
        raise StoreError(f"The database is encoded in {encoding[0][0]}.", fix="Create it with ENCODING 'UTF8'.")
    yield Ask(f"CREATE TABLE IF NOT EXISTS {MIGRATIONS} (part text, v integer, PRIMARY KEY (part, v))")
    for part in _parts(index):
        newest = yield from _newest(part, alone=False)
        for version in range(newest + 1, len(SCRIPTS[part]) + 1):
            for statement in SCRIPTS[part][version - 1].split(";\n"):
                yield Ask(statement)
            yield Ask(f"INSERT INTO {MIGRATIONS} (part, v) VALUES ($1, $2::integer)", [part, version])
    if near is not None:
        yield from _near_made(near)


def _near_made(near: Approximate) -> Flow[None]:
    version: str = (yield Ask("SELECT extversion FROM pg_extension WHERE extname = 'vector'"))[0][0]
    if tuple(map(int, version.split(".")[:2])) < GOES_ON:
        raise StoreError(
            f"pgvector {version} stops an approximate search before filters are met.",
            fix="Upgrade it to 0.8 (then ALTER EXTENSION vector UPDATE), or use kind='flat'.",
        )
    yield Ask(near.creation())
