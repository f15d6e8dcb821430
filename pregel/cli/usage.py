"""What the user typed, checked: each wrong argument is a CallError that says how to put it right."""

from __future__ import annotations

import json
import sys
from pathlib import Path

DONE, FAILED, WRONG, PAUSED = 0, 1, 2, 3
BUSY = 75  # EX_TEMPFAIL of sysexits.h: nothing is wrong, try again later
SQLITE_HEADER = b"SQLite format 3\0"


class CallError(Exception):
    """The command cannot do what was asked; nothing ran and nothing was written."""

    def __init__(self, message: str, fix: str = "") -> None:
        super().__init__(f"{message}\nFix: {fix}" if fix else message)


def read_json(text: str, option: str) -> object:
    """The value of an option that is JSON, or ``@FILE``, or ``-`` for stdin."""
    source = option
    if text == "-":
        source, text = "stdin", sys.stdin.read()
    elif text.startswith("@"):
        source = text[1:]
        try:
            text = Path(source).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise CallError(f"Cannot read {source} for {option}: {reason}.") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        message = f"{source} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
        raise CallError(
            message, f"""Quote it for the shell, e.g. {option} '{{"total": 10}}' or {option} '"yes"'."""
        ) from None


def existing_database(path: str) -> str:
    """A database file to read; it must be there, and hold a database."""
    if not Path(path).exists():
        raise CallError(f"There is no database {path}.", "Name the one that `pregel run` wrote: --db FILE.")
    return writable_database(path)


def writable_database(path: str) -> str:
    """A database file to run on; it is created when it is not there yet."""
    file = Path(path)
    if file.is_dir():
        raise CallError(f"{path} is a directory.", "Name a file: --db FILE.")
    if not file.parent.is_dir():
        raise CallError(f"There is no directory {file.parent} for the database {file.name}.", f"mkdir -p {file.parent}")
    if file.exists() and file.stat().st_size:
        with file.open("rb") as opened:
            if opened.read(len(SQLITE_HEADER)) != SQLITE_HEADER:
                raise CallError(f"{path} is not a SQLite database.", "Name another file: --db FILE.")
    return path
