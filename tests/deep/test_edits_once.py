"""An edit whose task is run again after a failure or a kill is done once, in a store and in a directory."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypedDict

import pregel
from pregel.agents.deep.backends import Backend, CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from pregel.agents.deep.backends.conformance import content_of
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.graph import START, StateGraph
from pregel.store.memory import InMemoryStore
from pregel.types import RetryPolicy

TOP = Path(pregel.__file__).parents[1]
Make = Callable[[], Backend]


class State(TypedDict):
    said: str


def has_attributes(directory: Path) -> bool:
    """Whether files can say who made them there."""
    if sys.platform != "linux":
        return False
    try:
        os.setxattr(directory, "user.pregel.tried", b"")
    except OSError:
        return False
    return True


@pytest.fixture(params=["store", "files", "routed files"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    if request.param == "store":
        return StoreBackend(namespace=("files",), store=InMemoryStore())
    if not has_attributes(tmp_path):
        pytest.skip("no extended attributes here")
    (tmp_path / "files").mkdir()
    files = FilesystemBackend(tmp_path / "files")
    return files if request.param == "files" else CompositeBackend(files, {"/state/": StateBackend()})


def run_twice(edits: Callable[[], Any], path: Path, *, awaits: bool) -> str:
    """What a node says that fails after its edits and is run again."""
    failures = iter([True, False])

    def node(state: State) -> dict[str, str]:
        said = edits()
        if next(failures):
            raise ConnectionError("after the edit, before the barrier")
        return {"said": str(said)}

    again = RetryPolicy(max_attempts=2, initial_interval=0.0)
    graph = StateGraph(State).add_node("node", node, retry_policy=again).add_edge(START, "node")
    with SqliteSaver.from_conn_string(str(path / "db")) as saver:
        app: Any = graph.compile(checkpointer=saver)
        given, config = {"said": ""}, {"configurable": {"thread_id": "1"}}
        state = asyncio.run(app.ainvoke(given, config)) if awaits else app.invoke(given, config)
    return str(state["said"])


@pytest.mark.parametrize("awaits", [False, True], ids=["sync", "async"])
def test_an_edit_of_a_task_that_is_run_again_is_done_once(backend: Backend, tmp_path: Path, awaits: bool) -> None:
    backend.write("/log.txt", "end")

    said = run_twice(lambda: backend.edit("/log.txt", "end", "one\nend").occurrences, tmp_path, awaits=awaits)

    assert said == "1"
    assert content_of(backend.read("/log.txt")) == "one\nend"


def test_the_same_edit_of_another_task_is_done(backend: Backend, tmp_path: Path) -> None:
    backend.write("/log.txt", "end")
    edit = lambda: backend.edit("/log.txt", "end", "one\nend").occurrences  # noqa: E731

    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        run_twice(edit, tmp_path / name, awaits=False)

    assert content_of(backend.read("/log.txt")) == "one\none\nend"


def test_an_edit_that_a_write_undid_is_done_again(backend: Backend, tmp_path: Path) -> None:
    def edits() -> Any:
        backend.write("/log.txt", "end")
        return backend.edit("/log.txt", "end", "one\nend").occurrences

    assert run_twice(edits, tmp_path, awaits=False) == "1"
    assert content_of(backend.read("/log.txt")) == "one\nend"


def test_an_edit_is_no_part_of_what_a_file_holds(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    files = FilesystemBackend(tmp_path / "files")
    files.write("/run.sh", "end")
    os.chmod(tmp_path / "files/run.sh", 0o750)

    run_twice(lambda: files.edit("/run.sh", "end", "one"), tmp_path, awaits=False)

    assert ["run.sh"] == os.listdir(tmp_path / "files")
    assert 0o750 == (tmp_path / "files/run.sh").stat().st_mode & 0o777


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["store", "files"])
def test_an_edit_of_a_process_that_was_killed_after_it_is_done_once(tmp_path: Path, kind: str) -> None:
    if kind == "files" and not has_attributes(tmp_path):
        pytest.skip("no extended attributes here")
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    command = [sys.executable, "-W", "error", "-m", "tests.kill.editing", str(tmp_path), kind]
    killed, resumed = (
        subprocess.run([*command, action], cwd=TOP, env=environment, capture_output=True, text=True, check=False)
        for action in ("run", "resume")
    )

    assert -signal.SIGKILL == killed.returncode, killed.stderr
    assert ("", "Replaced 1 place in /memories/log.txt.|'one\\nend'\n") == (resumed.stderr, resumed.stdout)
