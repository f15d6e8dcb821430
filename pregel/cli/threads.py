"""`pregel threads`: the threads of a database, and how each stands."""

from __future__ import annotations

import argparse

from pregel.checkpoint.sqlite import SqliteSaver
from pregel.cli.screen import Screen
from pregel.cli.usage import existing_database
from pregel.cli.values import as_json

COLUMNS = ("thread", "status", "reason", "step", "updated_at")


def threads(options: argparse.Namespace, screen: Screen) -> int:
    """Lists every thread, the one that was written last first."""
    with SqliteSaver.from_conn_string(existing_database(options.db)) as saver:
        rows = [{name: getattr(one, name) for name in COLUMNS} for one in saver.threads()]
    if options.json:
        screen.say(as_json(rows))
    elif rows:
        screen.table(COLUMNS, [["" if row[name] is None else str(row[name]) for name in COLUMNS] for row in rows])
    else:
        screen.say(f"{options.db} holds no thread yet.")
    return 0
