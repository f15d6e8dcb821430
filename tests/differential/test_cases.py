"""Programs written by hand show the same here and on the reference; the traces are stored the same as well."""

from __future__ import annotations

import pytest

from tests.differential.cases import CASES, TRACES
from tests.differential.compare import disagreement
from tests.differential.differences import DIFFERING
from tests.differential.play import play
from tests.differential.side import side
from tests.differential.stored import stored

pytest.importorskip("langgraph.graph", reason="the reference is not installed: pip install 'pregel[compare]'")
pytestmark = pytest.mark.filterwarnings("ignore")  # what warns is not compared

REFERENCE, OURS = side("langgraph"), side("pregel")


@pytest.mark.parametrize("name", [name for name in CASES if name not in DIFFERING])
def test_a_case_shows_the_same(name: str) -> None:
    assert not (difference := disagreement(CASES[name], REFERENCE, OURS)), difference


@pytest.mark.xfail(reason="told apart in differences.py", strict=True)
@pytest.mark.parametrize("name", sorted(DIFFERING))
def test_a_case_that_differs_still_does(name: str) -> None:
    assert not (difference := disagreement(CASES[name], REFERENCE, OURS)), difference


@pytest.mark.parametrize("name", TRACES)
def test_a_trace_is_stored_the_same(name: str) -> None:
    theirs, mine = REFERENCE.InMemorySaver(), OURS.InMemorySaver()

    play(TRACES[name], REFERENCE, theirs)
    play(TRACES[name], OURS, mine)

    assert stored(theirs) == stored(mine)
