"""A run object shows what the reference's shows, for programs written by hand and for random graphs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from tests.differential.cases import CASES
from tests.differential.depth import examples
from tests.differential.differences import DIFFERING
from tests.differential.draw import graphs, nesting
from tests.differential.program import Program, Run
from tests.differential.run_objects import disagreement, run_object
from tests.differential.side import side

pytest.importorskip("langgraph.stream", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]  # what warns is not compared

REFERENCE, OURS = side("langgraph"), side("pregel")


def first(program: Program) -> Program:
    return replace(program, ops=(Run(),), durability="sync")


@pytest.mark.parametrize("name", [name for name in CASES if name.startswith("subgraph") and name not in DIFFERING])
def test_a_case_shows_the_same(name: str) -> None:
    program = first(CASES[name])

    found = disagreement(run_object(program, REFERENCE), run_object(program, OURS))

    assert not found, found


@examples(30)
@given(graphs())
def test_a_random_graph_shows_the_same(program: Program) -> None:
    program = first(program)
    expected = run_object(program, REFERENCE)

    assert not (found := disagreement(expected, run_object(program, OURS))), found
    assert not (found := disagreement(expected, run_object(program, OURS, awaiting=True))), found


@examples(20)
@given(nesting())
def test_a_random_graph_in_a_graph_shows_the_same(program: Program) -> None:
    program = first(program)

    found = disagreement(run_object(program, REFERENCE), run_object(program, OURS))

    assert not found, found
