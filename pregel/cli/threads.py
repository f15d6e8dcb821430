"""`pregel threads`: the threads of a database, and how each stands."""

from __future__ import annotations

import argparse
from typing import Any

from pregel.checkpoint.records import ThreadRow
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.standing import info_of
from pregel.cli.screen import Screen
from pregel.cli.usage import DONE, CallError, existing_database
from pregel.cli.values import as_json, counted

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


def described(row: ThreadRow) -> dict[str, Any]:
    """A thread in plain words."""
    info = info_of(row)
    written = None if info.updated_at is None else info.updated_at.isoformat()
    told = {"thread": info.thread_id, "status": info.status, "reason": info.reason, "updated_at": written}
    version = {} if info.version is None else {"version": info.version}
    return {**told, **version, "can_resume": info.can_resume}


def delete(options: argparse.Namespace, screen: Screen) -> int:
    """Erases threads with everything about them; a live run of one of them ends with ThreadDeleted."""
    with SqliteSaver.from_conn_string(existing_database(options.db)) as saver:
        if unknown := [thread for thread in options.thread if find_thread(saver, thread) is None]:
            raise CallError(
                f"There is no thread {unknown[0]!r} in {options.db}; none was deleted.",
                f"`pregel threads --db {options.db}` lists the threads.",
            )
        for thread in options.thread:
            saver.delete_thread(thread)
    screen.say(
        as_json({"deleted": options.thread}) if options.json else f"{counted(len(options.thread), 'thread')} deleted."
    )
    return DONE


def find_thread(saver: SqliteSaver, thread: str) -> ThreadRow | None:
    """The row of a thread."""
    row = saver.load(thread, []).thread
    return row if row.tno else None
