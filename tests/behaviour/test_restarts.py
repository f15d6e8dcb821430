"""A run whose process keeps nothing from one step to the next comes to what a run in one go comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pregel.checkpoint.memory import InMemorySaver
from pregel.types import Command
from tests.kill.owners import saver_at
from tests.kill.story import CONFIG, DONE, build

from .conftest import Runner


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that can be opened again."""
    return str(tmp_path / "threads.db") if request.param == "sqlite" else str(request.getfixturevalue("dsn"))


def shown(run: Runner, app: Any) -> list[Any]:
    """The history without its ids and times."""
    return [
        (one.values, one.next, one.metadata["step"], one.metadata["source"], [task.name for task in one.tasks])
        for one in run.history(app, CONFIG)
    ]


@pytest.mark.acceptance("S4-18")
def test_a_run_that_is_loaded_anew_for_each_step_ends_the_same(run: Runner, where: str, tmp_path: Path) -> None:
    memory = InMemorySaver()
    app = build(tmp_path / "whole").compile(checkpointer=memory)
    run.invoke(app, {}, CONFIG)
    whole = run.invoke(app, Command(resume="yes"), CONFIG)
    given: Any = {}
    starts, pending = 0, True
    while pending:
        with saver_at(where) as saver:  # nothing that was read or made before is known to this one
            stepping = build(tmp_path / "steps").compile(checkpointer=saver, interrupt_after="*")
            run.invoke(stepping, given, CONFIG)
            state = run.state(stepping, CONFIG)
            pending, given = bool(state.next), Command(resume="yes") if state.interrupts else None
            starts += 1
    with saver_at(where) as saver:
        stepping = build(tmp_path / "steps").compile(checkpointer=saver)
        assert (DONE, DONE) == (whole, run.state(stepping, CONFIG).values)
        assert shown(run, app) == shown(run, stepping)
    assert starts > 3
    assert sorted((tmp_path / "whole").read_text().split()) == sorted((tmp_path / "steps").read_text().split())
