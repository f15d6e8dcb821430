"""Three levels of graphs in two Sends: every effect of every level."""

from __future__ import annotations

import pytest

from pregel.testing import crash_matrix, explore
from tests.simulation.graphs import IN, deep


def test_subgraphs_in_sends_survive_every_death_at_every_level() -> None:
    assert crash_matrix(deep(), IN).effects > 40


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_subgraphs_survive_every_death_in_many_orders() -> None:
    assert 24 == explore(deep(), IN, orders=24).orders
