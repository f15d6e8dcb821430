"""The tasks, checkpoints and debug streams of the hand-written programs show the same here and on the reference."""

from __future__ import annotations

import pytest

from tests.differential.cases import CASES
from tests.differential.events import events
from tests.differential.program import Bulk, Program, Update
from tests.differential.side import side

pytest.importorskip("langgraph.graph", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # what warns is not compared

REFERENCE, OURS = side("langgraph"), side("pregel")


def streams(program: Program) -> bool:
    """Whether some call of a program runs it, and stores each step."""
    return program.durability == "sync" and not all(isinstance(op, Update | Bulk) for op in program.ops)


@pytest.mark.parametrize("name", [name for name, program in CASES.items() if streams(program)])
@pytest.mark.parametrize("modes", [["tasks", "checkpoints"], ["debug"]], ids="+".join)
def test_a_case_streams_the_same(name: str, modes: list[str]) -> None:
    try:
        ours = events(CASES[name], OURS, modes)
    except NotImplementedError as missing:
        pytest.skip(f"not built yet: {missing}")

    assert events(CASES[name], REFERENCE, modes) == ours
