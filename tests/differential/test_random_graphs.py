"""Hundreds of random programs show the same here and on the reference.

The draw is the same in every run, and what fails is shown as drawn. ``PREGEL_DIFFERENTIAL=3000 pytest
tests/differential`` draws that many new ones per test, and makes what fails as small as it can, which takes minutes.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pregel.checkpoint.sqlite import SqliteSaver
from tests.differential.compare import disagreement, other_ways
from tests.differential.depth import examples
from tests.differential.draw import asking, failing, graphs, nesting, threads
from tests.differential.program import Program
from tests.differential.side import side

pytest.importorskip("langgraph.graph", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]  # what warns is not compared

REFERENCE, OURS = side("langgraph"), side("pregel")
ON_SQLITE = replace(OURS, InMemorySaver=lambda: SqliteSaver.at(":memory:"))


@examples(150)
@given(graphs())
def test_a_graph_shows_the_same(program: Program) -> None:
    assert not (difference := disagreement(program, REFERENCE, OURS, settled=True)), difference


@examples(100)
@given(threads())
def test_several_calls_on_a_thread_show_the_same(program: Program) -> None:
    assert not (difference := disagreement(program, REFERENCE, OURS, settled=True)), difference


@examples(70)
@given(failing())
def test_a_node_that_fails_and_is_mended_shows_the_same(program: Program) -> None:
    assert not (difference := disagreement(program, REFERENCE, OURS, settled=True)), difference


@examples(70)
@given(asking())
def test_questions_and_answers_show_the_same(program: Program) -> None:
    assert not (difference := disagreement(program, REFERENCE, OURS, settled=True)), difference


@examples(60)
@given(nesting())
def test_a_graph_in_a_graph_shows_the_same(program: Program) -> None:
    assert not (difference := disagreement(program, REFERENCE, OURS, settled=True)), difference


@examples(60)
@given(graphs())
def test_awaiting_and_without_a_saver_a_graph_shows_the_same(program: Program) -> None:
    assert not (difference := other_ways(program, REFERENCE, OURS)), difference


@examples(60)
@given(st.one_of(graphs(), threads(), failing(), asking(), nesting()))
def test_whatever_is_drawn_shows_the_same_on_sqlite(program: Program) -> None:
    assert not (difference := disagreement(program, REFERENCE, ON_SQLITE, settled=True)), difference
