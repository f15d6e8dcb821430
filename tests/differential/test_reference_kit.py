"""The reference's own conformance kit finds every capability in our savers, and no fault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.checkpoint.sqlite import SqliteSaver
from pregel.checkpoint.sqlite.aio import AsyncSqliteSaver

kit = pytest.importorskip("langgraph.checkpoint.conformance", reason="not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")


async def memory(path: Path) -> AsyncIterator[Any]:
    yield InMemorySaver()


async def file(path: Path) -> AsyncIterator[Any]:
    with SqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
        yield saver


async def awaited(path: Path) -> AsyncIterator[Any]:
    async with AsyncSqliteSaver.from_conn_string(path, synchronous="NORMAL") as saver:
        yield saver


@pytest.mark.parametrize("saver", [memory, file, awaited])
def test_the_reference_finds_nothing_wrong(saver: Callable[[Path], AsyncIterator[Any]], tmp_path: Path) -> None:
    opened = iter(range(1000))
    registered = kit.checkpointer_test(name=saver.__name__)(lambda: saver(tmp_path / f"{next(opened)}.db"))

    report = asyncio.run(kit.validate(registered))

    assert {} == {name: found.failures for name, found in report.results.items() if found.failures}
    assert report.passed_all()
    assert {"prune", "copy_thread", "delete_for_runs"} <= {n for n, found in report.results.items() if found.passed}
