"""The provider of the demos: it counts what it accepts, holds what it is told to, and outlives nobody."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from pregel.cli.demo.desk import Desk, open_provider
from pregel.cli.demo.stage import Stage, open_stage
from pregel.cli.screen import PlainScreen


@pytest.fixture
def stage() -> Iterator[Stage]:
    with open_stage(PlainScreen()) as stage:
        yield stage


def test_a_call_is_counted_and_answered() -> None:
    with open_provider() as desk:
        first, second = desk.call("flight", to="Lisbon"), desk.call("flight", to="Lisbon")
        counts = desk.accepted("flight", "hotel")

    assert ["FL-1001", "FL-1002"] == [first["number"], second["number"]]
    assert {"flight": 2, "hotel": 0} == counts


def test_a_held_call_counts_when_it_is_released(stage: Stage) -> None:
    desk = stage.desk
    desk.hold("car")
    with ThreadPoolExecutor() as pool:
        calling = pool.submit(desk.call, "car")
        stage.until(lambda: desk.held("car") == 1, "the call is held")
        held = desk.accepted("car")
        desk.release("car")
        answer = calling.result()

    assert {"car": 0} == held
    assert "booked" == answer["status"]
    assert {"car": 1} == desk.accepted("car")
    assert 0 == desk.held("car")


def test_a_held_call_whose_client_is_gone_never_counts(stage: Stage) -> None:
    desk = stage.desk
    desk.hold("car")
    host, _, port = desk.address.rpartition(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(json.dumps({"order": "call", "tool": "car", "with": {}}).encode() + b"\n")
        stage.until(lambda: desk.held("car") == 1, "the call is held")
    stage.until(lambda: desk.dropped("car") == 1, "the call is dropped")
    desk.release("car")

    assert {"car": 0} == desk.accepted("car")


def test_calls_may_be_held_from_the_second_on(stage: Stage) -> None:
    desk = stage.desk
    desk.hold("flight", after=1)
    desk.call("flight")
    with ThreadPoolExecutor() as pool:
        calling = pool.submit(desk.call, "flight")
        stage.until(lambda: desk.held("flight") == 1, "the second call is held")
        desk.release("flight")
        calling.result()

    assert {"flight": 2} == desk.accepted("flight")


def test_the_provider_ends_with_its_owner() -> None:
    with open_provider() as desk:
        desk.hold("car")
        address = desk.address

    with pytest.raises(ConnectionRefusedError):
        Desk(address).call("flight")
