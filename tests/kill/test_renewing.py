"""Continue-as-new while processes are killed: the thread stands in the old execution or in the new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .points import thinned
from .test_agents import play


@pytest.fixture(params=["sqlite", "postgres"])
def life(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    store = str(tmp_path / "threads.db") if request.param == "sqlite" else request.getfixturevalue("dsn")

    def lived(*versions: str, kill_at: str = "") -> Any:
        """What a process said that served these versions; None when it died."""
        return play(tmp_path, store, *versions, kill_at=kill_at, program="renewing")

    return lived


@pytest.mark.acceptance("S3-10", "S2-24")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("append", thinned(range(1, 9)))
@pytest.mark.parametrize("versions", [("1", "2"), ("same",)], ids=["v1 to v2", "same"])
def test_one_execution_follows_the_other_wherever_a_process_dies(
    life: Any, versions: tuple[str, ...], when: str, append: int
) -> None:
    life(*versions, kill_at=f"{when} {append}")
    told = life(*versions)

    assert {
        "values": {"a": ["first", f"by {versions[-1]}"], "b": "2"},
        "status": "idle",
        "version": versions[-1],
        "executions": 2,
        "events": 0,
    } == told


@pytest.mark.acceptance("S3-10")
def test_a_process_of_the_old_version_leaves_the_new_execution_to_one_of_the_new(life: Any) -> None:
    assert ("pending", "2") == tuple(life("1")[key] for key in ("status", "version"))
    assert {"a": ["first", "by 2"], "b": "2"} == life("2")["values"]
