"""What tests of stores need not make anew: connections that outlive a test, a SQLite file whose tables are there."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pregel.checkpoint.postgres import PostgresSaver
from pregel.checkpoint.postgres.aio import AsyncPostgresSaver
from pregel.checkpoint.postgres.connections import Own
from pregel.checkpoint.postgres.connections_async import AsyncOwn
from pregel.checkpoint.sqlite import SqliteSaver


class Lasting(Own):
    """Connections that a saver which is closed leaves to the next one."""

    def close(self) -> None:
        pass

    def doubt(self) -> None:
        super().close()


class AsyncLasting(AsyncOwn):
    """The same, awaited."""

    async def close(self) -> None:
        pass

    async def doubt(self) -> None:
        await super().close()


class Kept:
    """The connections to a database, for one saver after the other."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        target = PostgresSaver.at(dsn).connections.current().target  # type: ignore[attr-defined]  # by DSN, it is ours
        self.blocking, self.awaiting = Lasting(target, 10), AsyncLasting(target, 10)

    def close(self) -> None:
        """Close them."""
        self.blocking.doubt()
        asyncio.run(self.awaiting.doubt())

    def lend(self, saver: PostgresSaver) -> None:
        """Have a new saver use them."""
        saver.connections.source = self.blocking

    def alend(self, saver: AsyncPostgresSaver) -> None:
        """The same for one that awaits, and for its twin that does not."""
        saver.connections.source = self.awaiting
        self.lend(saver.blocking_twin)

    @contextmanager
    def saver(self) -> Iterator[PostgresSaver]:
        """A saver on the database for a `with` block."""
        with PostgresSaver.from_conn_string(self.dsn) as saver:
            self.lend(saver)
            yield saver


class Prepared:
    """A SQLite file with the tables of a saver: making them takes longer than most tests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
            saver.setup()

    def copied(self, directory: Path, name: str = "threads.db") -> str:
        """The path of a copy."""
        return str(shutil.copy(self.path, directory / name))
