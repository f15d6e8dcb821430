"""A process that is killed when the provider has accepted a call, and before anybody has heard of it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pregel.cli.demo.desk import ADDRESS, Desk, child_environment, open_provider
from pregel.cli.demo.trip import TOOLS, build_trip
from pregel.errors import OutcomeUnknownError, ThreadNotFoundError
from tests.kill.owners import ROOT, saver_at
from tests.kill.trips import CONFIG

MODES = [("sync", "sync"), ("async", "async"), ("sync", "exit"), ("async", "sync")]


@pytest.fixture
def desk() -> Iterator[Desk]:
    with open_provider() as desk:
        yield desk


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "trip.db" if request.param == "sqlite" else request.getfixturevalue("dsn"))


@pytest.fixture
def killed(request: pytest.FixtureRequest, desk: Desk, store: str) -> Iterator[Any]:
    """The trip of a process that was killed in the car node; flight and hotel were recorded before."""
    (driver, durability), idempotent = request.param
    with saver_at(store) as saver:
        app: Any = build_trip(desk.call, idempotent=idempotent).compile(checkpointer=saver)
        desk.hold("car")
        command = [sys.executable, "-m", "tests.kill.trips", store, driver, durability, str(idempotent)]
        child = subprocess.Popen(command, cwd=ROOT, env=child_environment(**{ADDRESS: desk.address}))
        while not (desk.held("car") == 1 and begun(app) == ["car"]):
            assert child.poll() is None  # each look is a call to the provider and a read of the store
        desk.release("car")
        assert -signal.SIGKILL == child.wait(60)
        assert dict.fromkeys(TOOLS, 1) == desk.accepted(*TOOLS)
        yield app


def begun(app: Any) -> list[str]:
    try:
        return [effect.key for effect in app.threads.effects("trip")]
    except ThreadNotFoundError:
        return []


@pytest.mark.acceptance("S0-4")
@pytest.mark.parametrize("killed", [(mode, True) for mode in MODES], indirect=True)
def test_with_a_stable_key_the_provider_is_asked_again_and_counts_one(killed: Any, desk: Desk) -> None:
    trip = killed.invoke(None, CONFIG)

    assert "confirmed" == trip["status"]
    assert {"status": "booked", "number": "CA-1001", "price": 180} == trip["bookings"]["car"]
    assert dict.fromkeys(TOOLS, 1) == desk.accepted(*TOOLS)
    assert [] == begun(killed)


@pytest.mark.acceptance("S0-4")
@pytest.mark.parametrize("killed", [(mode, False) for mode in MODES], indirect=True)
def test_without_one_the_run_stops_and_says_that_the_outcome_is_unknown(killed: Any, desk: Desk) -> None:
    assert ("abandoned", ["car"]) == (killed.threads.status("trip").status, begun(killed))
    for _ in range(2):  # nor is it asked when somebody insists
        with pytest.raises(OutcomeUnknownError, match="'car' of node 'car'"):
            killed.invoke(None, CONFIG)
    info = killed.threads.status("trip")
    assert ("failed", True) == (info.status, info.reason.startswith("OutcomeUnknownError: Effect 'car'"))
    assert dict.fromkeys(TOOLS, 1) == desk.accepted(*TOOLS)

    booked = {"status": "booked", "number": "CA-1001", "price": 180}  # as somebody found out
    killed.threads.settle("trip", "car", result=booked, operator="ann")
    trip = killed.threads.resume("trip")

    assert ("confirmed", booked) == (trip["status"], trip["bookings"]["car"])
    assert dict.fromkeys(TOOLS, 1) == desk.accepted(*TOOLS)


@pytest.mark.parametrize("killed", [(MODES[0], False)], indirect=True)
def test_it_can_be_settled_before_anybody_runs_the_thread_again(killed: Any, desk: Desk) -> None:
    killed.threads.settle("trip", "car", retry=True)
    info = killed.threads.status("trip")

    assert ("idle", True, []) == (info.status, info.can_resume, begun(killed))
    assert "confirmed" == killed.threads.resume("trip")["status"]
    assert {**dict.fromkeys(TOOLS, 1), "car": 2} == desk.accepted(*TOOLS)
