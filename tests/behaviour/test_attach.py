"""`app.attach`: a process that did not start a run gets its handle, when it means the same run."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pregel.durable import RunHandle
from pregel.errors import AttachMismatchError, ThreadNotFoundError

from .conftest import Runner
from .marks import Saver, State, chain
from .test_authority import has_authority, row_of
from .test_starts import INPUT, start, work


def attach(run: Runner, app: Any, *args: Any) -> RunHandle:
    found: RunHandle = app.attach(*args) if run.name == "sync" else asyncio.run(app.aattach(*args))
    return found


@pytest.fixture(autouse=True)
def needs_a_status(request: pytest.FixtureRequest) -> None:
    if "saver" in request.fixturenames and not has_authority(request.getfixturevalue("saver")):
        pytest.skip("no status is kept there")


def old(state: State) -> dict[str, Any]:
    return {"a": ["old"]}


def new(state: State) -> dict[str, Any]:
    return {"a": ["new"]}


def orders(saver: Saver, node: Any = old, name: str = "orders", version: str | None = None, extra: str = "y") -> Any:
    return chain("x", extra, x=node).compile(checkpointer=saver, name=name, version=version)


@pytest.mark.acceptance("S0-18")
@pytest.mark.parametrize("after", ["the start", "the run"])
def test_a_run_that_another_started_is_attached_to(run: Runner, saver: Saver, after: str) -> None:
    config: Any = {"tags": ["t"]}
    handle = start(run, orders(saver), INPUT, config, key="1")
    if after == "the run":
        assert 1 == work(run, orders(saver))

    for given in ((), (INPUT, config)):
        found = attach(run, orders(saver), "1", *given)
        assert (handle.thread_id, handle.run_id, True) == (found.thread_id, found.run_id, found.existing)


@pytest.mark.acceptance("S0-18")
@pytest.mark.parametrize("began", ["the start", "the run"])
@pytest.mark.parametrize(
    ("field", "other", "given"),
    [
        ("graph", {"name": "returns"}, (INPUT,)),
        ("version", {"version": "2"}, (INPUT,)),
        ("input", {}, ({"a": ["other"]},)),
        ("config", {}, (INPUT, {"tags": ["t"]})),
        ("code", {"node": new}, (INPUT,)),
        ("code", {"extra": "z"}, ()),
    ],
)
def test_the_field_that_differs_is_named(
    run: Runner, saver: Saver, began: str, field: str, other: dict[str, Any], given: tuple[Any, ...]
) -> None:
    start(run, orders(saver), INPUT, key="1")
    if began == "the run":
        assert 1 == work(run, orders(saver))
    before = row_of(saver, "1")
    with pytest.raises(AttachMismatchError) as caught:
        attach(run, orders(saver, **other), "1", *given)

    assert field == caught.value.field
    assert field in str(caught.value)
    assert before == row_of(saver, "1")


@pytest.mark.acceptance("S0-18")
def test_where_a_branch_leads_is_code_too(run: Runner, saver: Saver) -> None:
    def compiled(path: Any) -> Any:
        graph = chain("x").add_node("end", old).add_conditional_edges("x", path, ["end", "__end__"])
        return graph.compile(checkpointer=saver, name="orders")

    start(run, compiled(lambda state: "end"), INPUT, key="1")
    with pytest.raises(AttachMismatchError) as caught:
        attach(run, compiled(lambda state: "__end__"), "1")

    assert "code" == caught.value.field


def test_a_version_stands_for_the_code(run: Runner, saver: Saver) -> None:
    start(run, orders(saver, version="1"), INPUT, key="1")

    assert "1" == attach(run, orders(saver, new, version="1"), "1").thread_id


def test_a_thread_that_is_not_there_is_not_attached_to(run: Runner, saver: Saver) -> None:
    with pytest.raises(ThreadNotFoundError):
        attach(run, orders(saver), "1")


PROGRAM = """
import sys
from pregel.checkpoint.sqlite import SqliteSaver
from tests.behaviour.test_attach import INPUT, orders

with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    app = orders(saver)
    print((app.start(INPUT, key="1") if sys.argv[2] == "start" else app.attach("1", INPUT)).run_id)
"""


@pytest.mark.acceptance("S0-18")
def test_code_is_the_same_in_another_process(tmp_path: Path) -> None:
    told = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / "threads.db"), what],
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for what in ("start", "attach")
    ]

    assert told[0] == told[1] != "\n"
