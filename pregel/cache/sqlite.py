"""SqliteCache: a cache in an SQLite file that several processes may share."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence

from pregel.cache.base import FullKey, Namespace, Serde, ValueT
from pregel.cache.encoded import Encoded, EncodedCache, Entry
from pregel.checkpoint.sqlite.database import Database
from pregel.checkpoint.sqlite.saver import explained

# Another format would be another table: entries of an old version are never read as those of a new one.
TABLES = (
    """CREATE TABLE IF NOT EXISTS pregel_cache_1 (
    ns TEXT NOT NULL, key BLOB NOT NULL, expires REAL, type TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (ns, key)
) WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS pregel_cache_1_expires ON pregel_cache_1 (expires) WHERE expires IS NOT NULL",
)
LOAD = "SELECT type, value FROM pregel_cache_1 WHERE ns = ? AND key = ? AND (expires IS NULL OR expires > ?)"
KEEP = "INSERT OR REPLACE INTO pregel_cache_1 (ns, key, expires, type, value) VALUES (?, ?, ?, ?, ?)"
LAPSED = "DELETE FROM pregel_cache_1 WHERE expires <= ?"
DROP = "DELETE FROM pregel_cache_1 WHERE ns = ?"
DROP_ALL = "DELETE FROM pregel_cache_1"


class SqliteCache(EncodedCache[ValueT]):
    """Keeps values in the file at `path` (or ``:memory:``), which may be that of a saver or a store as well.

    Entries that lapsed are removed whenever something is set. A killed process loses nothing that was set; a power cut
    may lose the last entries. `clock` gives unix seconds. `close` it in the end, or use it in a `with` block.
    """

    def __init__(
        self,
        *,
        path: str | os.PathLike[str],
        serde: Serde | None = None,
        busy_timeout: float = 30.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(serde=serde)
        name = os.fspath(path)
        self.database = Database(
            "" if name == ":memory:" else os.path.abspath(name),
            timeout=busy_timeout,
            synchronous="NORMAL",
            prepare=_prepare,
        )
        self._clock = clock

    def load(self, keys: Sequence[FullKey]) -> Mapping[FullKey, Encoded]:
        if not keys:
            return {}
        now = self._clock()
        with explained(), self.database.reading() as connection:
            rows = {key: connection.execute(LOAD, (*_address(key), now)).fetchone() for key in keys}
        return {key: row for key, row in rows.items() if row is not None}

    def keep(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        now = self._clock()
        rows = [(*_address(key), None if ttl is None else now + ttl, *encoded) for key, encoded, ttl in entries]
        with explained(), self.database.writing() as connection:
            connection.execute(LAPSED, (now,))
            connection.executemany(KEEP, rows)

    def drop(self, namespaces: Sequence[Namespace] | None) -> None:
        with explained(), self.database.writing() as connection:
            if namespaces is None:
                connection.execute(DROP_ALL)
            else:
                connection.executemany(DROP, [(_text(namespace),) for namespace in namespaces])

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def __enter__(self) -> SqliteCache[ValueT]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _prepare(connection: sqlite3.Connection) -> None:
    for statement in TABLES:
        connection.execute(statement)


def _address(key: FullKey) -> tuple[str, bytes]:
    return _text(key[0]), key[1].encode("utf-8", "surrogatepass")


def _text(namespace: Namespace) -> str:
    """A namespace as one text that no other one has; JSON escapes what SQLite cannot keep."""
    return json.dumps(namespace)
