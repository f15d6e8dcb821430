"""Every stream mode shows the same here and on the reference, for programs written by hand and for random graphs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from tests.differential.cases import CASES
from tests.differential.depth import examples
from tests.differential.differences import DIFFERING
from tests.differential.draw import graphs, nesting
from tests.differential.events import difference, events, steps
from tests.differential.program import Bulk, Program, Run, Update
from tests.differential.side import side

pytest.importorskip("langgraph.graph", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]  # what warns is not compared

REFERENCE, OURS = side("langgraph"), side("pregel")


def streams(name: str, program: Program) -> bool:
    """Whether some call of a program runs it and stores each step, and both sides are to do the same."""
    runs = not all(isinstance(op, Update | Bulk) for op in program.ops)
    return runs and program.durability == "sync" and name not in DIFFERING


@pytest.mark.parametrize("name", [name for name, program in CASES.items() if streams(name, program)])
@pytest.mark.parametrize("modes", [["tasks", "checkpoints"], ["debug"]], ids="+".join)
def test_a_case_streams_the_same(name: str, modes: list[str]) -> None:
    assert events(CASES[name], REFERENCE, modes) == events(CASES[name], OURS, modes)


@examples(100)
@given(graphs())
def test_a_random_graph_streams_the_same(program: Program) -> None:
    first = replace(program, ops=(Run(),), durability="sync")

    expected = steps(first, REFERENCE)

    assert not (found := difference(expected, steps(first, OURS))), found
    assert not (found := difference(expected, steps(first, OURS, awaiting=True))), found


@examples(50)
@given(nesting())
def test_a_random_graph_in_a_graph_streams_the_same(program: Program) -> None:
    first = replace(program, ops=(Run(),), durability="sync")

    assert not (found := difference(steps(first, REFERENCE), steps(first, OURS))), found
