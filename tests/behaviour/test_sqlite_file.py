"""What is particular to a file that several connections and processes share."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.flows import Sql
from pregel.checkpoint.records import EventRow, ItemRow, Load, Page, Release, WaitRow, WriteRow
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import InvalidInputError, JournalDamaged, StoreError, StoreMoved
from pregel.flow import Flow
from tests.behaviour.journals import Run, everything, newest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "threads.db"


@pytest.fixture
def saver(path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as made:
        yield made


@pytest.mark.parametrize(
    ("name", "fix"), [("missing/threads.db", "a directory that exists"), ("notes.txt", "this file is none")]
)
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, name: str, fix: str) -> None:
    (tmp_path / "notes.txt").write_text("not a database. " * 100)
    path = tmp_path / name

    with pytest.raises(StoreError, match=fix) as caught, SqliteSaver.from_conn_string(path) as saver:
        saver.setup()

    assert repr(str(path)) in str(caught.value)
    assert ["notes.txt"] == os.listdir(tmp_path)


@pytest.fixture
def impatient(path: Path) -> Iterator[SqliteSaver]:
    with SqliteSaver.from_conn_string(path, synchronous="NORMAL", busy_timeout=0.05) as made:
        yield made


class Raw(sqlite3.Connection):
    """A connection that is closed when a test lets it go; CPython 3.13 warns of others."""

    def __del__(self) -> None:
        self.close()


def raw(path: Path | str, **kwargs: Any) -> sqlite3.Connection:
    return sqlite3.connect(path, factory=Raw, **{"isolation_level": None, "check_same_thread": False, **kwargs})


# -- tables ------------------------------------------------------------------------------------------------------------


def test_all_tables_are_ours_by_name_and_made_on_first_use(saver: SqliteSaver, path: Path) -> None:
    saver.load("nobody", [Load()])

    names = [name for (name,) in raw(path).execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert names
    assert all(name.startswith("pregel_") for name in names)


def test_setup_twice_applies_each_migration_once(saver: SqliteSaver, path: Path) -> None:
    saver.setup()
    saver.setup()
    with SqliteSaver.from_conn_string(path) as again:
        again.setup()

    assert [(1,), (2,), (3,), (4,), (5,), (6,)] == raw(path).execute("SELECT v FROM pregel_migrations").fetchall()


def test_a_format_of_the_future_is_refused(saver: SqliteSaver, path: Path) -> None:
    saver.setup()
    raw(path).execute("INSERT INTO pregel_migrations VALUES (99, 0)")

    with SqliteSaver.from_conn_string(path) as later, pytest.raises(StoreError, match="has format 99"):
        later.setup()


def test_no_row_of_a_deleted_thread_is_left_in_any_table(saver: SqliteSaver, path: Path) -> None:
    run = Run(saver, "secret-thread")
    run.save({"a": "x" * 200})
    run.write([("a", 1)])
    saver.send("secret-thread", EventRow("1", "paid", None, 0.0, "null", b""))
    append = run.blank()
    items = [ItemRow("i", "Ship", "1", 0.0, "null", b"")]
    append.release = Release("waiting", "", [WaitRow("w", "other", None, None)], items)
    run.send(append)
    db = raw(path)
    filled = ("waits", "events", "items")
    assert [1, 1, 1] == [db.execute(f"SELECT count(*) FROM pregel_{name}").fetchone()[0] for name in filled]

    saver.delete_thread("secret-thread")

    tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    with_tno = [t for t in tables if any(c[1] == "tno" for c in db.execute(f"PRAGMA table_info({t})"))]
    assert 9 == len(with_tno)
    assert {0} == {db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in with_tno}
    assert "secret-thread" not in "\n".join(db.iterdump())


def test_reads_and_appends_use_indexes_only(saver: SqliteSaver) -> None:
    from pregel.checkpoint.sqlite.saver import STATEMENTS

    saver.setup()
    # these are about everything
    whole = {"threads", "page_all", "stale", "sweep_tombstones", "due", "unread", "backlog"}
    with saver.database.reading() as connection:
        for name, (text, _) in STATEMENTS.items():
            explain = connection.execute(f"EXPLAIN QUERY PLAN {text}", [None] * text.count("?"))
            plan = "; ".join(row[3] for row in explain)
            if name not in whole:
                assert "SCAN" not in plan.replace("SCAN w VIRTUAL TABLE", ""), (name, plan)
                assert "TEMP B-TREE" not in plan or name == "page_thread", (name, plan)


# -- durability settings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("synchronous", "level"), [("FULL", 2), ("NORMAL", 1)])
def test_the_write_ahead_log_and_synchronous_are_as_asked(path: Path, synchronous: str, level: int) -> None:
    saver = SqliteSaver.from_conn_string(path, synchronous=synchronous)  # type: ignore[arg-type]
    with saver as opened, opened.database.writing() as connection:
        settings = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "synchronous")]

    assert ["wal", level] == settings


def test_another_synchronous_is_refused(path: Path) -> None:
    with pytest.raises(InvalidInputError), SqliteSaver.from_conn_string(path, synchronous="OFF"):  # type: ignore[arg-type]
        pass


def test_closing_waits_for_the_read_that_is_under_way(saver: SqliteSaver) -> None:
    """A connection that is closed under a statement of another thread ends the process with SIGSEGV."""
    Run(saver).save({"a": 1})
    inside, go = threading.Event(), threading.Event()

    def slow() -> Flow[int]:
        yield Sql("thread", ("t",))
        inside.set()
        go.wait()
        return len((yield Sql("thread", ("t",))))

    with ThreadPoolExecutor(2) as threads:
        reading = threads.submit(lambda: saver.read(slow()))
        inside.wait()
        closing = threads.submit(saver.database.close)
        closed_early = wait([closing], timeout=0.05).done
        go.set()
        assert (reading.result(), closed_early, closing.result()) == (1, set(), None)


def test_closing_takes_no_writers_turn_away(saver: SqliteSaver) -> None:
    """Else the lock on the file's queue goes under a writer, and then nobody writes any more."""
    Run(saver).save({"a": 1})
    early: list[bool] = []

    with ThreadPoolExecutor(1) as threads:

        def hear(frame: object, event: str, arg: object) -> None:
            if event == "c_call" and arg is os.close:  # it leaves the queue: another thread begins to write now
                writing.append(threads.submit(saver.intern, ["name"]))
                early.append(bool(wait(writing, timeout=0.05).done))

        writing: list[Future[None]] = []
        sys.setprofile(hear)
        try:
            saver.database.close()
        finally:
            sys.setprofile(None)
        assert (early, [one.result() for one in writing]) == ([False], [None])


# -- a connection of the user ------------------------------------------------------------------------------------------


def test_a_connection_of_the_user_can_be_used(path: Path) -> None:
    connection = raw(path)
    saver = SqliteSaver(connection)

    Run(saver).save({"a": 1})

    saved = newest(saver)
    assert saved is not None
    assert {"a": 1} == saved.values
    saver.database.close()
    assert (1,) == connection.execute("SELECT count(*) FROM pregel_checkpoints").fetchone()


def test_a_connection_inside_a_transaction_is_refused(path: Path) -> None:
    connection = raw(path, isolation_level="DEFERRED")
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (1)")

    with pytest.raises(InvalidInputError, match="inside a transaction"):
        SqliteSaver(connection)


def test_a_database_in_memory_is_shared_by_readers_and_writers() -> None:
    saver = SqliteSaver(raw(":memory:"))

    Run(saver).save({"a": 1})

    assert 1 == len(everything(saver))


# -- trouble -----------------------------------------------------------------------------------------------------------


def test_an_append_that_fails_half_way_leaves_nothing_open(saver: SqliteSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    append = run.blank()
    run.add_save(append, {"a": 2})
    row = WriteRow(0, b"checkpoint", b"task", 0, 1, "msgpack", b"", "~x", 1)
    append.writes.append(row._replace(path=object()))  # type: ignore[arg-type]
    before = everything(saver)

    with pytest.raises(StoreError, match="SQLite"):
        saver.append(append)

    assert before == everything(saver)
    assert run.send(run.blank()).landed


def test_an_append_stores_bytes_as_blobs_and_what_is_absent_as_null(saver: SqliteSaver) -> None:
    run = Run(saver)
    run.save({"a": 1})
    append = run.blank()
    run.add_writes(append, [("a", b"xyz"), ("b", None)])
    run.add_save(append, {"a": 2}, metadata={"run_id": "r"})

    assert run.send(append).landed

    with saver.database.reading() as connection:
        kinds = "typeof(id), typeof(parent), typeof(base), typeof(lineage), run_id, typeof(metadata), typeof(manifest)"
        checkpoints = connection.execute(f"SELECT {kinds} FROM pregel_checkpoints ORDER BY id").fetchall()
        kinds = "typeof(checkpoint), typeof(task), typeof(blob), blob, typeof(child)"
        writes = connection.execute(f"SELECT {kinds} FROM pregel_writes ORDER BY idx").fetchall()
    assert checkpoints == [
        ("blob", "null", "null", "blob", None, "text", "blob"),
        ("blob", "blob", "null", "blob", "r", "text", "blob"),
    ]
    assert writes == [("blob", "blob", "blob", b"xyz", "null"), ("blob", "blob", "blob", b"", "null")]


def test_a_flow_that_is_interrupted_is_rolled_back(saver: SqliteSaver) -> None:
    def flow() -> Flow[None]:
        yield Sql("make_thread", ("t", b"digest", 0.0))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        saver.write(flow())

    assert [] == saver.threads()


def test_a_file_that_was_moved_takes_no_more_appends(saver: SqliteSaver, path: Path) -> None:
    run = Run(saver)
    run.save({"a": 1})
    path.rename(path.with_suffix(".old"))

    with pytest.raises(StoreMoved):
        run.save({"a": 2})


def test_a_file_that_was_replaced_takes_no_more_appends(saver: SqliteSaver, path: Path) -> None:
    run = Run(saver)
    run.save({"a": 1})
    path.unlink()
    raw(path).execute("CREATE TABLE other (a)")

    with pytest.raises(StoreMoved):
        run.save({"a": 2})


def test_a_foreign_writer_that_does_not_end_is_a_named_error(impatient: SqliteSaver, path: Path) -> None:
    run = Run(impatient)
    run.save({"a": 1})
    other = raw(path)
    other.execute("BEGIN IMMEDIATE")

    with pytest.raises(StoreError, match="locked"):
        run.save({"a": 2})

    other.execute("ROLLBACK")
    assert run.send(run.blank()).landed


def test_a_writer_of_ours_that_does_not_end_is_a_named_error(impatient: SqliteSaver, path: Path) -> None:
    run = Run(impatient)
    run.save({"a": 1})
    with open(f"{path}-queue", "rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match=r"has been writing to .* for 0\.05 s"):
            run.save({"a": 2})
        fcntl.flock(held, fcntl.LOCK_UN)

    assert run.send(run.blank()).landed


def test_the_log_of_a_new_file_is_made_in_turn(impatient: SqliteSaver, path: Path) -> None:
    with open(f"{path}-queue", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match=r"has been writing to .* for 0\.05 s"):
            impatient.setup()
        assert ("delete",) == raw(path).execute("PRAGMA journal_mode").fetchone()  # nothing was begun
        fcntl.flock(held, fcntl.LOCK_UN)

    impatient.setup()
    assert ("wal",) == raw(path).execute("PRAGMA journal_mode").fetchone()


def test_a_writer_waits_for_its_turn(path: Path) -> None:
    with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
        run = Run(saver)
        run.save({"a": 1})
        with open(f"{path}-queue", "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            landed: list[bool] = []
            waiting = threading.Thread(target=lambda: landed.append(run.send(run.blank()).landed))
            waiting.start()
            fcntl.flock(held, fcntl.LOCK_UN)
            waiting.join()

    assert [True] == landed


def test_a_page_read_leaves_no_cursor_that_holds_the_log(saver: SqliteSaver, path: Path) -> None:
    run = Run(saver)
    run.save({"a": 1})
    saver.page("t", Page())
    next(iter(saver.list({"configurable": {"thread_id": "t"}})))

    busy, *_ = raw(path).execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    assert 0 == busy


def test_a_lost_value_is_named_and_other_checkpoints_still_load(saver: SqliteSaver, path: Path) -> None:
    run = Run(saver)
    first = run.save({"a": "x" * 100})
    run.save({"a": "y" * 100})
    raw(path).execute("DELETE FROM pregel_channel_values WHERE at = 2")

    with pytest.raises(JournalDamaged, match="The value of 'a' at 2 is gone"):
        newest(saver)

    assert saver.load("t", [Load("", first)]).saved[0] is not None


def test_threads_of_one_process_share_a_saver(saver: SqliteSaver) -> None:
    def work(name: str) -> None:
        run = Run(saver, name)
        for i in range(20):
            run.save({"a": i})
            newest(saver, name)
        run.release()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [f"t{n}" for n in range(8)]))

    assert {f"t{n}": 21 for n in range(8)} == {row.thread: row.seq for row in saver.threads()}


# -- processes ---------------------------------------------------------------------------------------------------------


def test_after_a_fork_neither_process_harms_the_other(saver: SqliteSaver, path: Path) -> None:
    Run(saver).release()
    before = newest(saver)

    child = os.fork()
    if child == 0:
        status = 1
        try:
            run = Run(saver, "child")
            run.save({"a": "child"})
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    Run(saver, "parent").save({"a": "parent"})
    saver.database.close()

    assert (None, 0) == (before, status)
    assert [("child",), ("parent",), ("t",)] == raw(path).execute(
        "SELECT thread FROM pregel_threads ORDER BY thread"
    ).fetchall()
    assert 2 == len(everything(saver))


WORKER = """
import sys
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.flow import Flow
from tests.behaviour.journals import Run

with SqliteSaver.from_conn_string(sys.argv[1], synchronous="NORMAL") as saver:
    run = Run(saver, sys.argv[2])
    for i in range(int(sys.argv[3])):
        run.save({"a": i})
    run.release()
"""


def test_processes_write_one_file_at_once(saver: SqliteSaver, path: Path) -> None:
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, path, f"thread-{n}", "60"], cwd=ROOT) for n in range(4)]

    assert [0] * 4 == [worker.wait() for worker in workers]
    rows = {row.thread: (row.seq, row.status) for row in saver.threads()}
    assert {f"thread-{n}": (61, "idle") for n in range(4)} == rows
    for n in range(4):
        assert list(range(60))[::-1] == [saved.values["a"] for _, saved in saver.page(f"thread-{n}", Page())]


def test_a_thread_of_a_dead_process_is_taken_at_once(saver: SqliteSaver, path: Path) -> None:
    from pregel.checkpoint.lease import is_dead

    code = WORKER.replace("run.release()", "import os; os._exit(0)")
    subprocess.run([sys.executable, "-c", code, path, "t", "3"], cwd=ROOT, check=True)

    heir = Run(saver)
    row = heir.opened.thread
    assert row.owner is not None
    assert row.run is not None
    assert not row.lapsed
    assert is_dead(row.owner, row.run)
    assert heir.claim(dead=True).landed
    heir.save({"a": "heir"})
    saved = newest(saver)
    assert saved is not None
    assert (2, {"a": "heir"}) == (saved.step, saved.values)
