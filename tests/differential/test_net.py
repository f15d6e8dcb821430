"""The comparison can fail: planted faults in one side are noticed by the hand-written programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.differential.cases import GROUPS
from tests.differential.compare import disagreement
from tests.differential.side import Side, side

pytest.importorskip("langgraph.graph", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # what warns is not compared

REFERENCE = side("langgraph")


def forgetful(saver_type: Any) -> Any:
    """A saver type that has lost what tasks wrote when a run goes on; a listing still shows it."""

    class Forgetful(saver_type):  # type: ignore[misc]
        def get_tuple(self, config: Any) -> Any:
            found = super().get_tuple(config)
            return found and found._replace(pending_writes=[])

    return Forgetful


FAULTS: dict[str, tuple[str, Callable[[Side], Side]]] = {
    "a Send's argument loses its log": (
        "shape",
        lambda good: replace(good, Send=lambda node, arg: good.Send(node, {**arg, "log": []})),
    ),
    "an Overwrite is reduced": ("shape", lambda good: replace(good, Overwrite=lambda value: value)),
    "a Command does not route": (
        "shape",
        lambda good: replace(good, Command=lambda goto=(), **rest: good.Command(**rest)),
    ),
    "a question is answered by itself": ("question", lambda good: replace(good, interrupt=lambda question: question)),
    "pending writes are lost": (
        "resume",
        lambda good: replace(good, InMemorySaver=forgetful(good.InMemorySaver)),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault: str) -> None:
    group, plant = FAULTS[fault]
    faulty = plant(REFERENCE)

    noticed = (name for name, program in GROUPS[group].items() if disagreement(program, REFERENCE, faulty))

    assert next(noticed, None) is not None
