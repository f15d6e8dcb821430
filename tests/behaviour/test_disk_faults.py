"""SQLite on a disk that is full or broken: the run fails by name, the file stays sound, the thread goes on."""

from __future__ import annotations

import operator
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from pregel.checkpoint.records import Page
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import StoreError
from pregel.graph import START, StateGraph
from pregel.types import Durability
from tests.disk import AVAILABLE, FULL, IOERR_FSYNC, IOERR_READ, IOERR_WRITE, Disk, Fault, File, Operation, faulty

from .conftest import Runner
from .kept import Prepared
from .marks import Thread

ROOT = Path(__file__).parents[2]
NODES = ["x", "y", "z", "end"]
DONE = {"a": ["x", "y", "z", "end"]}
BREAKDOWNS: dict[str, tuple[File, Operation, int, str]] = {
    "no space": ("wal", "write", FULL, "database or disk is full"),
    "EIO at a write": ("wal", "write", IOERR_WRITE, "disk I/O error"),
    "EIO at fsync": ("wal", "sync", IOERR_FSYNC, "disk I/O error"),
}

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="this Python's SQLite does not show its functions")


class State(TypedDict, total=False):
    a: Annotated[list[str], operator.add]


def build(ran: list[str]) -> StateGraph[Any]:
    """Two nodes at once, then two one after the other; each tells when it starts."""

    def node(name: str) -> Any:
        def body(state: Any) -> dict[str, Any]:
            ran.append(name)
            return {"a": [name]}

        return body

    graph = StateGraph(State)
    for name in NODES:
        graph.add_node(name, node(name))
    return graph.add_edge(START, "x").add_edge(START, "y").add_edge(["x", "y"], "z").add_edge("z", "end")


def stored(saver: SqliteSaver) -> set[str]:
    """The nodes whose writes are in the file."""
    found = [saved for _, saved in saver.page("t", Page())]
    applied = {name for saved in found for name in saved.values.get("a", ())}
    return applied | {write.name for saved in found for write in saved.writes if write.name in NODES}


def is_sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return [("ok",)] == connection.execute("PRAGMA integrity_check").fetchall()
    finally:
        connection.close()


def failure_of(work: Callable[[], Any]) -> StoreError | None:
    """What the store failed with."""
    try:
        work()
    except StoreError as error:
        return error
    return None


def finish(run: Runner, app: Any, config: Any) -> Any:
    """Run the thread from wherever it is to its end."""
    return run.invoke(app, None if run.state(app, config).created_at else {}, config)


@pytest.fixture
def disk() -> Iterator[Disk]:
    with faulty() as made:
        yield made


@pytest.mark.parametrize(
    ("breakdown", "durability"),
    [
        pytest.param(
            breakdown, durability, marks=[] if (breakdown, durability) == ("no space", "sync") else pytest.mark.slow
        )
        for breakdown in BREAKDOWNS
        for durability in ("sync", "async", "exit")
    ],
)
def test_a_thread_goes_on_when_the_disk_is_back(
    run: Runner, disk: Disk, tmp_path: Path, prepared: Prepared, thread: Thread, breakdown: str, durability: Durability
) -> None:
    file, operation, code, message = BREAKDOWNS[breakdown]
    ran: list[str] = []
    for first in count(1):
        path, ran[:] = Path(prepared.copied(tmp_path, f"{first}.db")), []
        with SqliteSaver.from_conn_string(path) as saver:
            saver.setup()
            app = build(ran).compile(checkpointer=saver)
            disk.break_down(Fault(file, operation, code, first))
            failure = failure_of(lambda: run.invoke(app, {}, thread("t"), durability=durability))  # noqa: B023
            if failure is None:
                assert not disk.failed
                break
            disk.mend()

            assert message in failure.message
            assert failure.fix
            assert is_sound(path)
            kept, ran[:] = stored(saver), []
            assert DONE == finish(run, app, thread("t"))
            assert not kept & set(ran), f"ran again though stored, from the {first}. {operation} on"
            assert [] == saver.verify("t")
    assert first > (1 if durability == "exit" else 3)


@pytest.mark.parametrize("late", [False, True], ids=["not done", "done all the same"])
@pytest.mark.parametrize("breakdown", [pytest.param("EIO at a write", marks=pytest.mark.slow), "EIO at fsync"])
def test_an_error_that_passes_is_settled_and_nobody_notices(
    run: Runner, disk: Disk, tmp_path: Path, thread: Thread, breakdown: str, late: bool
) -> None:
    file, operation, code, _ = BREAKDOWNS[breakdown]
    ran: list[str] = []
    for first in count(1):
        ran[:] = []
        with SqliteSaver.from_conn_string(tmp_path / f"{first}.db") as saver:
            saver.setup()
            app = build(ran).compile(checkpointer=saver)
            disk.break_down(Fault(file, operation, code, first, times=1, late=late))

            assert DONE == run.invoke(app, {}, thread("t"))

            assert sorted(NODES) == sorted(ran)
            history = [saved for _, saved in saver.page("t", Page())]
            assert [*(saved.id for saved in history[1:]), None] == [saved.parent for saved in history]
            assert len({saved.step for saved in history}) == len(history)
            if not disk.failed:
                break
            disk.mend()
    assert first > 3


def left_by_a_kill(path: Path, copy: Path) -> None:
    """Copy what a process leaves that dies now: the file and its log, without the index in shared memory."""
    if not copy.exists():
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")


def test_a_commit_that_failed_may_be_there_after_a_crash_and_the_thread_goes_on_from_it(
    run: Runner, disk: Disk, tmp_path: Path, thread: Thread
) -> None:
    outcomes = set()
    ran: list[str] = []
    for first in range(3, 7):  # each of these commits
        path, copy, ran[:] = tmp_path / f"{first}.db", tmp_path / f"copy-{first}.db", []
        with SqliteSaver.from_conn_string(path) as saver:
            saver.setup()
            disk.break_down(Fault("wal", "sync", IOERR_FSYNC, first, seen=partial(left_by_a_kill, path, copy)))
            with pytest.raises(StoreError, match="disk I/O error"):
                run.invoke(build(ran).compile(checkpointer=saver), {}, thread("t"))
            disk.mend()
            kept = stored(saver)
        with SqliteSaver.from_conn_string(copy) as heir:
            landed, ran[:] = stored(heir), []
            outcomes.add(landed == kept)
            assert landed >= kept
            assert DONE == finish(run, build(ran).compile(checkpointer=heir), thread("t"))
            assert not landed & set(ran)
        assert is_sound(copy)
    assert False in outcomes


@pytest.mark.parametrize(("operation", "code"), [("write", FULL), ("write", IOERR_WRITE), ("sync", IOERR_FSYNC)])
def test_a_log_that_cannot_be_emptied_into_the_file_loses_nothing(
    run: Runner, disk: Disk, tmp_path: Path, thread: Thread, operation: Operation, code: int
) -> None:
    path = tmp_path / "threads.db"
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA wal_autocheckpoint = 1")
    saver = SqliteSaver(connection)
    saver.setup()
    disk.break_down(Fault("db", operation, code))

    assert DONE == run.invoke(build([]).compile(checkpointer=saver), {}, thread("t"))

    assert disk.failed
    saver.database.close()
    connection.close()
    disk.mend()
    assert is_sound(path)
    with SqliteSaver.from_conn_string(path) as again:
        assert set(NODES) == stored(again)


def test_a_read_error_is_named_and_passes(run: Runner, disk: Disk, tmp_path: Path, thread: Thread) -> None:
    path = tmp_path / "threads.db"
    with SqliteSaver.from_conn_string(path) as saver:
        run.invoke(build([]).compile(checkpointer=saver), {}, thread("t"))
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
        app = build([]).compile(checkpointer=saver)
        disk.break_down(Fault("db", "read", IOERR_READ))
        with pytest.raises(StoreError, match="disk I/O error"):
            run.state(app, thread("t"))
        disk.mend()

        assert DONE == run.state(app, thread("t")).values


def test_a_database_that_may_not_grow_is_a_named_error(run: Runner, tmp_path: Path, thread: Thread) -> None:
    connection = sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    ran: list[str] = []
    app = build(ran).compile(checkpointer=saver)
    config = thread("t")
    large: dict[str, Any] = {"a": ["-" * 100_000]}

    with pytest.raises(StoreError, match="full") as caught:
        run.invoke(app, large, config)

    assert "Make room" in caught.value.fix
    assert [] == ran
    connection.execute("PRAGMA max_page_count = 1000000")
    assert [*large["a"], *NODES] == run.invoke(app, large, config)["a"]
    saver.database.close()
    connection.close()


RUN = """
import resource, signal, sys
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.errors import StoreError
from tests.behaviour.test_disk_faults import DONE, build, is_sound, stored

path, config, ran = sys.argv[1], {"configurable": {"thread_id": "t"}}, []
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with SqliteSaver.from_conn_string(path) as saver:
    app = build(ran).compile(checkpointer=saver)
    app.get_state(config)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), most))
    try:
        app.invoke({}, config)
    except StoreError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        kept, ran[:] = stored(saver), []
        assert DONE == app.invoke(None if app.get_state(config).created_at else {}, config)
        assert not kept & set(ran)
        print(error)
assert is_sound(path)
"""


@pytest.mark.parametrize("room", [3_000, 90_000])  # bytes: less than the log has already, some steps more
def test_a_file_that_the_system_does_not_let_grow_is_a_named_error(tmp_path: Path, room: int) -> None:
    child = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path / "threads.db"), str(room)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ("", True) == (child.stderr, child.stdout.startswith("SQLite: "))
