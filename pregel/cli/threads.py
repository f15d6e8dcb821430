"""`pregel threads`: the threads of a database, and how each stands."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime

from pregel.checkpoint.lease import is_dead
from pregel.checkpoint.records import ThreadRow
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.screen import Screen
from pregel.cli.usage import existing_database
from pregel.cli.values import as_json

COLUMNS = ("thread", "status", "reason", "updated_at")


def threads(options: argparse.Namespace, screen: Screen) -> int:
    """Lists every thread, the one that was written last first."""
    with SqliteSaver.from_conn_string(existing_database(options.db)) as saver:
        rows = [described(row) for row in saver.threads()]
    if options.json:
        screen.say(as_json(rows))
    elif rows:
        screen.table([name.replace("_", " ") for name in COLUMNS], [[row[name] for name in COLUMNS] for row in rows])
    else:
        screen.say(f"{options.db} holds no thread yet.")
    return 0


def described(row: ThreadRow) -> dict[str, str]:
    """A thread in plain words."""
    written = datetime.fromtimestamp(row.updated_at, UTC).isoformat()
    return {"thread": row.thread, "status": standing(row), "reason": row.reason, "updated_at": written}


def standing(row: ThreadRow) -> str:
    """The status of a thread: `abandoned` when it says `running` but nothing that could run it is alive."""
    if row.status != "running":
        return row.status
    dead = row.owner is not None and row.run is not None and is_dead(row.owner, row.run)
    return "abandoned" if row.lapsed or dead else "running"


def find_thread(saver: SqliteSaver, thread: str) -> ThreadRow | None:
    """The row of a thread."""
    return next((row for row in saver.threads() if row.thread == thread), None)
