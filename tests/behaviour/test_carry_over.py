"""What one version carries over to the next is used when it keeps to the contract, and made anew when it does not."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from pregel.durable import ContinueAsNew
from pregel.graph import START, StateGraph

from .conftest import Runner
from .marks import Saver, Thread
from .test_authority import has_authority
from .test_starts import start, work
from .test_thread_api import Api

CONTRACT = "open-orders/2"


class Carried(TypedDict, total=False):
    contract: str
    count: int


class Orders(TypedDict, total=False):
    carried: Carried
    counted: int


@pytest.mark.acceptance("S3-11")
@pytest.mark.parametrize(
    ("carried", "recounted", "counted", "recounts"),
    [
        ({"contract": CONTRACT, "count": 0}, 7, 0, 0),
        ({"contract": CONTRACT, "count": 5}, 7, 5, 0),
        ({"contract": CONTRACT}, 7, 7, 1),
        ({"contract": CONTRACT, "count": -1}, 7, 7, 1),
        ({"contract": "open-orders/1", "count": 5}, 7, 7, 1),
        ({}, 0, 0, 1),
        ({}, -1, None, 1),
    ],
)
def test_a_count_is_carried_over_under_its_contract(
    run: Runner, saver: Saver, thread: Thread, carried: Carried, recounted: int, counted: int | None, recounts: int
) -> None:
    if not has_authority(saver):
        pytest.skip("no status is kept there")
    calls: list[int] = []

    def recount() -> int:
        calls.append(recounted)
        return recounted

    def hand_over(state: Orders) -> Orders:
        raise ContinueAsNew({"carried": carried}, version="2")

    def take_over(state: Orders) -> Orders:
        told = state.get("carried", {})
        count = told.get("count")
        if told.get("contract") != CONTRACT or count is None or count < 0:
            count = recount()
            if count < 0:
                raise ValueError(f"A recount gave {count}.")
        return {"counted": count}

    def compiled(version: str, node: Any) -> Any:
        graph = StateGraph(Orders).add_node("node", node).add_edge(START, "node")
        return graph.compile(checkpointer=saver, name="orders", version=version)

    v1, v2 = compiled("1", hand_over), compiled("2", take_over)
    start(run, v1, {}, key="1")
    while work(run, v1, v2):
        pass

    assert counted == run.state(v2, thread("1")).values.get("counted")
    assert recounts == len(calls)
    assert ("idle" if counted is not None else "failed") == Api(run, v2)("status", "1").status
